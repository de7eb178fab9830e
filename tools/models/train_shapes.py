#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Train a small DEIMv2, D-FINE or RT-DETRv2 on synthetic shapes and export it.

examples/models/shapes_deimv2.onnx was made by

    train_shapes.py --arch deimv2 --steps 2600 --out DIR/deimv2

in about 22 minutes on two idle cores: mAP 0.840 on 200 held-out images. Writes OUT_ts.onnx,
OUT_dynamo.onnx (each with its contract), the weights in OUT/ and the figures in OUT.json. On a
machine with other load set OMP_WAIT_POLICY=PASSIVE and GOMP_SPINCOUNT=0.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import logging
import math
import os
import pathlib
import sys
import time
import warnings

os.environ["TRANSFORMERS_DISABLE_TORCH_CHECK"] = "1"  # see export_models.py
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import numpy as np
import onnx
import torch
import transformers as tf
from transformers.loss import loss_d_fine, loss_deimv2, loss_rt_detr

from coco_ap import average_precision
from contract_file import find_encoder_cut, write_contract
from deploy_form import INPUT_NAMES, OUTPUT_NAMES, DeployForm
from export_fixes import drop_host_metadata
from shapes import CLASSES, HELD_OUT_SEED, SIZE, make_image

HELD_OUT_IMAGES = 200
QUICK_EVAL_IMAGES = 100
QUICK_EVAL_SECONDS = 240
WARM_UP_STEPS = 200
FLAT_FRACTION = 0.4  # of all steps, at the full rate; then a cosine down to 2 %
EMA_DECAY = 0.998
OPSET = 17


@dataclasses.dataclass(frozen=True)
class Images:
    pixels: np.ndarray  # uint8 [n,SIZE,SIZE,3]
    boxes: list[np.ndarray]
    labels: list[np.ndarray]

    @staticmethod
    def make(count: int, first_seed: int) -> Images:
        made = [make_image(first_seed + i) for i in range(count)]
        return Images(
            np.stack([m.pixels for m in made]), [m.boxes for m in made], [m.labels for m in made]
        )


def make_losses_cheap() -> None:
    """Use losses that a CPU can afford.

    DEIMv2 keeps the losses that its published smallest variants use (MAL and boxes, no local
    distillation). Pairwise IoU, of which the losses read the diagonal alone, is computed for
    matching pairs only.
    """
    original_init = loss_deimv2.Deimv2Loss.__init__

    def init(self, config):
        original_init(self, config)
        self.losses = ["mal", "boxes"]

    loss_deimv2.Deimv2Loss.__init__ = init
    for module in (loss_d_fine, loss_deimv2, loss_rt_detr):
        if hasattr(module, "box_iou"):
            module.box_iou = _diagonal_iou(module.box_iou)
        if hasattr(module, "generalized_box_iou"):
            module.generalized_box_iou = _diagonal_giou(module.generalized_box_iou)


def _pair_overlap(a, b):
    """Intersection and union of a[i] with b[i]."""
    size = torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])
    intersection = size.clamp(min=0).prod(1)
    area_a, area_b = ((t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1]) for t in (a, b))
    return intersection, area_a + area_b - intersection


def _diagonal_iou(full):
    def box_iou(a, b):
        if len(a) != len(b) or len(a) < 2:
            return full(a, b)
        intersection, union = _pair_overlap(a, b)
        return torch.diag_embed(intersection / union), torch.diag_embed(union)

    return box_iou


def _diagonal_giou(full):
    def generalized_box_iou(a, b):
        if len(a) != len(b) or len(a) < 2:
            return full(a, b)
        intersection, union = _pair_overlap(a, b)
        hull = torch.maximum(a[:, 2:], b[:, 2:]) - torch.minimum(a[:, :2], b[:, :2])
        hull_area = hull.clamp(min=0).prod(1)
        return torch.diag_embed(intersection / union - (hull_area - union) / hull_area)

    return generalized_box_iou


def build_model(arch: str, queries: int, layers: int) -> torch.nn.Module:
    backbone = tf.HGNetV2Config(
        stem_channels=[3, 16, 16],
        stage_in_channels=[16, 32, 64, 96],
        stage_mid_channels=[16, 16, 32, 48],
        stage_out_channels=[32, 64, 96, 128],
        stage_num_blocks=[1, 1, 1, 1],
        stage_numb_of_layers=[2, 2, 2, 2],
        stage_downsample=[False, True, True, True],
        stage_light_block=[False, False, False, False],
        stage_kernel_size=[3, 3, 3, 3],
        out_indices=[2, 3, 4],
        use_learnable_affine_block=False,
        embedding_size=16,
        hidden_sizes=[32, 64, 96, 128],
    )
    common = dict(
        backbone_config=backbone,
        num_labels=len(CLASSES),
        freeze_backbone_batch_norms=False,
        encoder_in_channels=[64, 96, 128],
        encoder_hidden_dim=64,
        encoder_ffn_dim=128,
        encoder_attention_heads=4,
        d_model=64,
        hidden_expansion=0.5,
        decoder_in_channels=[64] * 3,
        decoder_ffn_dim=128,
        decoder_attention_heads=4,
        decoder_layers=layers,
        num_queries=queries,
        num_denoising=40,
    )
    if arch == "deimv2":
        config = tf.Deimv2Config(
            **common,
            depth_mult=0.34,
            decoder_n_points=[3, 6, 3],
            decoder_activation_function="silu",
            encoder_has_trailing_conv=False,
            use_dense_one_to_one=False,
        )
        return tf.Deimv2ForObjectDetection(config)
    if arch == "dfine":
        config = tf.DFineConfig(**common, depth_mult=0.34, decoder_n_points=[3, 6, 3])
        return tf.DFineForObjectDetection(config)
    return tf.RTDetrV2ForObjectDetection(tf.RTDetrV2Config(**common))


def make_batch(images: Images, indices: list[int], rng: np.random.Generator):
    """Images float32 [n,3,SIZE,SIZE] from 0 to 1, and targets. Augmented by a mirror, a permutation
    of the channels and inverted colours: what a shape is does not hang on them."""
    pixels, targets = [], []
    for i in indices:
        image, boxes = images.pixels[i], images.boxes[i].astype(np.float32)
        if rng.random() < 0.5:
            image = image[:, ::-1]
            boxes = np.stack([SIZE - boxes[:, 2], boxes[:, 1], SIZE - boxes[:, 0], boxes[:, 3]], 1)
        image = image[..., rng.permutation(3)]
        if rng.random() < 0.5:
            image = 255 - image
        pixels.append(np.ascontiguousarray(image.transpose(2, 0, 1)))
        centres, sizes = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
        cxcywh = np.concatenate([centres, sizes], 1) / SIZE
        targets.append(
            {
                "class_labels": torch.from_numpy(images.labels[i].astype(np.int64)),
                "boxes": torch.from_numpy(cxcywh.astype(np.float32)),
            }
        )
    return torch.from_numpy(np.stack(pixels)).float() / 255, targets


@torch.no_grad()
def evaluate(model: torch.nn.Module, images: Images, count: int, k: int):
    """mAP, mAP50, mAP75 on the first `count` images."""
    deploy = DeployForm(copy.deepcopy(model), len(CLASSES), k).eval()
    detections = []
    for start in range(0, count, 50):
        chunk = images.pixels[start : min(start + 50, count)]
        batch = torch.from_numpy(chunk.transpose(0, 3, 1, 2).copy()).float() / 255
        labels, boxes, scores = deploy(batch, torch.full((len(batch), 2), SIZE))
        detections += zip(labels.numpy(), boxes.numpy(), scores.numpy())
    truths = list(zip(images.boxes[:count], images.labels[:count]))
    return average_precision(detections, truths, len(CLASSES))


def learning_rate(base: float, step: int, steps: int) -> float:
    warm_up = min(1.0, (step + 1) / WARM_UP_STEPS)
    fraction = step / steps
    if fraction < FLAT_FRACTION:
        return base * warm_up
    cosine = math.cos(math.pi * (fraction - FLAT_FRACTION) / (1 - FLAT_FRACTION))
    return base * warm_up * (0.02 + 0.98 * 0.5 * (1 + cosine))


@torch.no_grad()
def update_average(average: torch.nn.Module, model: torch.nn.Module, step: int) -> None:
    decay = min(EMA_DECAY, (step + 1) / (step + 20))
    for mean, value in zip(average.state_dict().values(), model.state_dict().values()):
        if mean.dtype.is_floating_point:
            mean.lerp_(value, 1 - decay)
        else:
            mean.copy_(value)


def train(model, images: Images, held_out: Images, args, rng) -> tuple[torch.nn.Module, float]:
    """Returns the moving average of the weights and the smoothed last loss."""
    average = copy.deepcopy(model).eval()
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": 1e-4},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=args.lr,
    )
    started = last_evaluation = time.monotonic()
    order: list[int] = []
    smoothed = float("nan")
    for step in range(args.steps):
        rate = learning_rate(args.lr, step, args.steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        if len(order) < args.batch:
            order = list(rng.permutation(len(images.pixels)))
        pixels, targets = make_batch(images, [order.pop() for _ in range(args.batch)], rng)
        model.train()
        loss = model(pixel_values=pixels, labels=targets).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        update_average(average, model, step + 1)
        smoothed = loss.item() if step == 0 else 0.98 * smoothed + 0.02 * loss.item()
        if (step + 1) % 50 == 0:
            elapsed = time.monotonic() - started
            print(f"{elapsed:7.0f} s step {step + 1}/{args.steps} loss {smoothed:.3f}", flush=True)
        if time.monotonic() - last_evaluation > QUICK_EVAL_SECONDS:
            figures = evaluate(average, held_out, QUICK_EVAL_IMAGES, args.topk)
            print("    mAP {:.3f} mAP50 {:.3f} mAP75 {:.3f}".format(*figures), flush=True)
            last_evaluation = time.monotonic()
    return average, smoothed


@torch.no_grad()
def export(model: torch.nn.Module, out: pathlib.Path, k: int) -> None:
    deploy = DeployForm(copy.deepcopy(model), len(CLASSES), k).eval()
    inputs = (torch.zeros(1, 3, SIZE, SIZE), torch.tensor([[SIZE, SIZE]]))
    names = dict(input_names=INPUT_NAMES, output_names=OUTPUT_NAMES, opset_version=OPSET)
    exporters = {
        "ts": dict(dynamo=False),
        "dynamo": dict(dynamo=True, external_data=False, verbose=False),
    }
    for exporter, options in exporters.items():
        path = out.with_name(f"{out.name}_{exporter}.onnx")
        try:
            torch.onnx.export(deploy, inputs, str(path), **names, **options)
        except Exception as error:  # one exporter's defect must not cost the other's file
            print(f"{exporter}: FAILED: {type(error).__name__}: {str(error)[-300:]}", flush=True)
            continue
        exported = onnx.load(path)
        drop_host_metadata(exported)
        onnx.save(exported, path)
        cut = find_encoder_cut(exported) if exporter == "ts" else []
        contract = path.with_suffix(".contract.json")
        write_contract(contract, SIZE, (0, 0, 0), (1, 1, 1), CLASSES, cut)
        print(f"{path}: {path.stat().st_size} bytes", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=pathlib.Path, required=True, help="prefix of what is written")
    parser.add_argument("--arch", choices=["deimv2", "dfine", "rtdetrv2"], default="deimv2")
    parser.add_argument("--steps", type=int, default=2600)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--images", type=int, default=6000, help="training images")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--layers", type=int, default=4, help="decoder layers")
    parser.add_argument("--topk", type=int, default=300, help="detections per image")
    parser.add_argument("--lr", type=float, default=1.5e-3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if min(args.steps, args.batch, args.queries, args.layers) < 1 or args.images < args.batch:
        parser.error("--steps, --batch, --queries, --layers must be positive, --images >= --batch")
    if args.topk > args.queries * len(CLASSES):
        parser.error(
            f"--topk {args.topk} is more than {args.queries} queries x {len(CLASSES)} classes"
        )

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    make_losses_cheap()
    images, held_out = Images.make(args.images, 0), Images.make(HELD_OUT_IMAGES, HELD_OUT_SEED)
    model = build_model(args.arch, args.queries, args.layers)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{args.arch}: {parameters / 1e6:.3f} M parameters", flush=True)

    started = time.monotonic()
    average, loss = train(model, images, held_out, args, rng)
    seconds = round(time.monotonic() - started)
    figures = evaluate(average, held_out, HELD_OUT_IMAGES, args.topk)
    print("{} s, mAP {:.4f} mAP50 {:.4f} mAP75 {:.4f}".format(seconds, *figures), flush=True)
    average.save_pretrained(str(args.out))
    export(average, args.out, args.topk)
    record = dict(zip(("mAP", "mAP50", "mAP75"), figures))
    record |= dict(arch=args.arch, steps=args.steps, seconds=seconds, loss=loss, seed=args.seed)
    summary = args.out.with_name(args.out.name + ".json")
    summary.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
