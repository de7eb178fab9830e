#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Export one encoder layer of Deformable DETR by itself, with random weights, for a 640 x 640 image:
deformable attention of every token to all levels, then the feed-forward network.

    --levels 3    80 x 80, 40 x 40, 20 x 20: 8,400 tokens
    --levels 4    and 10 x 10: 8,500 tokens

Inputs: tokens and positions, float32 [1, S, 256]. The file is as the TorchScript exporter leaves
it, checked against PyTorch with ONNX Runtime.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")

import numpy as np
import onnx
import onnxruntime as ort
import torch
from torch import Tensor, nn
from transformers import DeformableDetrConfig
from transformers.models.deformable_detr import modeling_deformable_detr as deformable_detr

from export_fixes import drop_host_metadata

SIZES = (80, 40, 20, 10)


class Layer(nn.Module):
    def __init__(self, levels: int):
        super().__init__()
        config = DeformableDetrConfig(num_feature_levels=levels)
        self.layer = deformable_detr.DeformableDetrEncoderLayer(config)
        # As published: each head looks in its own direction; the initialisation of a whole model
        # does that, and a little noise makes offsets and weights depend on the token.
        attention = self.layer.self_attn
        angles = torch.arange(config.encoder_attention_heads) * (2 * torch.pi / 8)
        directions = torch.stack([angles.cos(), angles.sin()], -1)
        directions = directions / directions.abs().max(-1, keepdim=True).values
        steps = torch.arange(1, config.encoder_n_points + 1)
        offsets = directions[:, None, None, :] * steps[None, None, :, None]
        attention.sampling_offsets.bias.copy_(offsets.expand(-1, levels, -1, -1).flatten())
        attention.sampling_offsets.weight.normal_(std=0.02)
        self.shapes = [(size, size) for size in SIZES[:levels]]
        self.register_buffer("ratios", torch.ones(1, levels, 2))
        areas = torch.tensor([h * w for h, w in self.shapes])
        self.register_buffer("starts", areas.cumsum(0) - areas)
        reference = deformable_detr.DeformableDetrEncoder.get_reference_points(
            self.shapes, self.ratios, device="cpu"
        )
        self.register_buffer("reference", reference.float())

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        return self.layer(
            tokens,
            attention_mask=None,
            spatial_position_embeddings=positions,
            reference_points=self.reference,
            spatial_shapes=torch.tensor(self.shapes),
            spatial_shapes_list=self.shapes,
            level_start_index=self.starts,
        )


def make_inputs(model: Layer, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    count = sum(h * w for h, w in model.shapes)
    return tuple(torch.randn(1, count, 256, generator=generator) for _ in range(2))


@torch.no_grad()
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=pathlib.Path, help="the .onnx to write")
    parser.add_argument("--levels", type=int, choices=(3, 4), default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    model = Layer(arguments.levels).eval()
    inputs = make_inputs(model, 0)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    names = dict(input_names=["tokens", "positions"], output_names=["encoded"])
    torch.onnx.export(
        model, inputs, str(arguments.out), dynamo=False, opset_version=17, **names
    )
    exported = onnx.load(arguments.out)
    drop_host_metadata(exported)
    onnx.checker.check_model(exported)
    onnx.save(exported, arguments.out)
    session = ort.InferenceSession(str(arguments.out), providers=["CPUExecutionProvider"])
    got = session.run(None, {i.name: x.numpy() for i, x in zip(session.get_inputs(), inputs)})[0]
    difference = float(np.abs(got - model(*inputs).numpy()).max())
    samples = sum(node.op_type == "GridSample" for node in exported.graph.node)
    print(
        f"{arguments.out.name}: {len(exported.graph.node)} nodes, {samples} GridSample, "
        f"{arguments.out.stat().st_size} bytes, largest difference {difference:.2g}"
    )
    if samples != arguments.levels or difference > 1e-4:
        print(f"{arguments.out}: not what was exported", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
