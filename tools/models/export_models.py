#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Export full-size detectors with well-conditioned random weights, each with its contract.

Every export is checked (onnx.checker) and run with ONNX Runtime; the largest difference from
PyTorch is printed. Files: OUT/NAME_SIZE_EXPORTER.onnx and OUT/NAME_SIZE_EXPORTER.contract.json.
"""

from __future__ import annotations

import argparse
import collections
import logging
import os
import pathlib
import sys
import time
import traceback
import warnings

# transformers' check makes the dynamo exporter meet an operator that it cannot translate.
os.environ["TRANSFORMERS_DISABLE_TORCH_CHECK"] = "1"
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import numpy as np
import onnx
import onnxruntime as ort
import torch

from coco_classes import COCO_CLASSES
from contract_file import find_encoder_cut, write_contract
from deploy_form import INPUT_NAMES, OUTPUT_NAMES, DeployForm
from detectors import COCO_CLASS_COUNT, DETECTORS, TOP_K, Detector
from export_fixes import drop_host_metadata, float64_to_float32, patch_dinov3
from shapes import HELD_OUT_SEED, make_image
from well_conditioned import make_well_conditioned

OPSET = 17
EXPORTERS = ("ts", "dynamo")


def sample_images(count: int, first_seed: int, detector: Detector) -> torch.Tensor:
    """float32 [count,3,size,size], normalised as the detector wants it."""
    pixels = np.stack([make_image(first_seed + i).pixels for i in range(count)])
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255
    images = torch.nn.functional.interpolate(images, size=(detector.size, detector.size))
    mean = torch.tensor(detector.mean).reshape(1, 3, 1, 1)
    std = torch.tensor(detector.std).reshape(1, 3, 1, 1)
    return (images - mean) / std


def build_deploy_form(detector: Detector, seed: int) -> DeployForm:
    torch.manual_seed(seed)
    model = detector.build().eval()
    make_well_conditioned(model, sample_images(4, 0, detector), seed)
    patch_dinov3(model, detector.size)
    return DeployForm(detector.to_deploy(model), COCO_CLASS_COUNT, TOP_K).eval()


def dangling_inputs(model: onnx.ModelProto) -> list[str]:
    """Tensors that nodes of the main graph read although nothing makes, feeds or stores them."""
    graph = model.graph
    known = {t.name for t in graph.initializer} | {i.name for i in graph.input} | {""}
    known.update(name for node in graph.node for name in node.output)
    return [name for node in graph.node for name in node.input if name not in known]


@torch.no_grad()
def export(deploy: DeployForm, inputs, exporter: str, path: pathlib.Path) -> None:
    """Write `path`, mended and without documentation strings."""
    options = dict(
        input_names=INPUT_NAMES, output_names=OUTPUT_NAMES, opset_version=OPSET, dynamo=False
    )
    if exporter == "dynamo":
        # It writes opset 18 and converts that down to what is asked for, which leaves Deformable DETR
        # with an attribute of Split that opset 17 does not know, or with nodes out of order.
        options.update(dynamo=True, opset_version=18, external_data=False, verbose=False)
    torch.onnx.export(deploy, inputs, str(path), **options)
    model = onnx.load(path)
    if lost := dangling_inputs(model):
        # The optimiser of PyTorch 2.13's dynamo exporter drops the bounds of Deformable DETR's Clip.
        print(f"  {exporter}: its optimiser loses {lost[0]!r}; exported without it", flush=True)
        torch.onnx.export(deploy, inputs, str(path), **options, optimize=False)
        model = onnx.load(path)
    float64_to_float32(model)
    drop_host_metadata(model)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def compare_with_torch(path: pathlib.Path, inputs, reference, threads: int) -> str:
    """Run the export and say how its rows and scores differ from PyTorch's."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feed = dict(zip(INPUT_NAMES, (tensor.numpy() for tensor in inputs)))
    started = time.perf_counter()
    outputs = session.run(OUTPUT_NAMES, feed)
    elapsed = (time.perf_counter() - started) * 1e3
    rows, unmatched = _match_rows([t.numpy()[0] for t in reference], [o[0] for o in outputs])
    return (
        f"rows in another place {rows}, without a counterpart {unmatched}, "
        f"scores {np.abs(outputs[2] - reference[2].numpy()).max():.2g}, "
        f"top score {outputs[2].max():.4f}, {elapsed:.0f} ms"
    )


def _match_rows(expected, actual, pixels: float = 0.1) -> tuple[int, int]:
    """How many rows of `actual` stand elsewhere in `expected`, and how many stand nowhere.

    Each is (labels, boxes, scores). Among 300 scores some pair is so near that rounding swaps it;
    a swap is no error, a row without a counterpart of its label within `pixels` is one.
    """
    moved = unmatched = 0
    for row, (label, box) in enumerate(zip(actual[0], actual[1])):
        near = (expected[0] == label) & (np.abs(expected[1] - box).max(-1) <= pixels)
        if near[row]:
            continue
        moved, unmatched = (moved + 1, unmatched) if near.any() else (moved, unmatched + 1)
    return moved, unmatched


def export_one(
    name: str, exporters: list[str], out: pathlib.Path, seed: int | None, threads: int
) -> int:
    """Export one detector with each exporter; returns how many exports failed."""
    detector = DETECTORS[name]
    deploy = build_deploy_form(detector, detector.seed if seed is None else seed)
    parameters = sum(p.numel() for p in deploy.parameters()) / 1e6
    print(f"{name}: {detector.summary}, {parameters:.2f} M parameters", flush=True)
    image = sample_images(1, HELD_OUT_SEED, detector)
    inputs = (image, torch.tensor([[detector.size, detector.size]]))
    with torch.no_grad():
        reference = deploy(*inputs)
    failed = 0
    for exporter in exporters:
        path = out / f"{name}_{detector.size}_{exporter}.onnx"
        partial = path.with_suffix(".partial.onnx")
        started = time.monotonic()
        try:
            export(deploy, inputs, exporter, partial)
            comparison = compare_with_torch(partial, inputs, reference, threads)
            model = onnx.load(partial)
        except Exception as error:  # an exporter's defect must not stop the other exports
            traceback.print_exc(limit=2)
            print(f"  {exporter}: FAILED: {type(error).__name__}: {str(error)[-400:]}", flush=True)
            partial.unlink(missing_ok=True)
            failed += 1
            continue
        cut = find_encoder_cut(model) if exporter == "ts" else []
        contract = path.with_suffix("").with_suffix(".contract.json")
        write_contract(contract, detector.size, detector.mean, detector.std, COCO_CLASSES, cut)
        partial.replace(path)
        kinds = collections.Counter(node.op_type for node in model.graph.node)
        print(
            f"  {path.name}: {len(model.graph.node)} nodes, {path.stat().st_size / 1e6:.1f} MB, "
            f"{kinds['GridSample']} GridSample, opset {model.opset_import[0].version}, "
            f"{time.monotonic() - started:.0f} s; against PyTorch: {comparison}",
            flush=True,
        )
        print(f"  cut: {', '.join(cut) if cut else 'none found'}", flush=True)
    return failed


def main() -> int:
    cache = pathlib.Path(os.environ.get("TENONNX_CACHE", pathlib.Path.home() / ".cache/tenonnx"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="detectors to export (see --list)")
    parser.add_argument("--all", action="store_true", help="export every detector")
    parser.add_argument("--list", action="store_true", help="list the detectors and stop")
    parser.add_argument(
        "--exporter", choices=[*EXPORTERS, "both"], default="ts", help="default: %(default)s"
    )
    parser.add_argument(
        "--out", type=pathlib.Path, default=cache / "exports", help="default: %(default)s"
    )
    parser.add_argument("--seed", type=int, help="of the weights (default: each detector's own)")
    parser.add_argument("--threads", type=int, default=2, help="default: %(default)s")
    args = parser.parse_args()

    if args.list:
        for name, detector in DETECTORS.items():
            print(f"{name:24} {detector.size}  {detector.summary}")
        return 0
    names = list(DETECTORS) if args.all else args.names
    if not names:
        parser.error("name at least one detector, or give --all (--list shows them)")
    for name in names:
        if name not in DETECTORS:
            parser.error(f"unknown detector '{name}'; known: {', '.join(DETECTORS)}")
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    exporters = list(EXPORTERS) if args.exporter == "both" else [args.exporter]
    failed = sum(export_one(n, exporters, args.out, args.seed, args.threads) for n in names)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
