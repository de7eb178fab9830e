#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Export a small camera-to-bird's-eye-view encoder after BEVFormer (Li et al. 2022), with random
weights: what its two kinds of deformable attention look like in a graph.

    temporal   each query of the bird's eye view samples the last view and the present one: two
               value maps of one level, whose results are averaged
    spatial    each query is lifted to several heights, projected into every camera, and samples
               that camera's feature pyramid around each projection; averaged over the cameras that
               see the point. Without the gathering of visible queries, which has no static shape.

Files: OUT/bevformer_ts.onnx and OUT/bevformer_dynamo.onnx, as the exporters leave them. Each is
checked against PyTorch with ONNX Runtime.
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
import torch.nn.functional as F
from torch import Tensor, nn

from export_fixes import drop_host_metadata

CAMERAS, CHANNELS, HEADS = 2, 16, 2
BEV_HEIGHT, BEV_WIDTH = 6, 5
LEVELS = ((8, 12), (4, 6), (2, 3))  # height, width of the cameras' features
HEIGHTS, POINTS_PER_HEIGHT = 4, 2  # spatial: 8 points a level
TEMPORAL_POINTS = 4
IMAGE = (64.0, 96.0)  # height, width in pixels
EPSILON = 1e-5  # the least depth, in metres


def sample_levels(value: Tensor, shapes, locations: Tensor, weights: Tensor) -> Tensor:
    """Weighted sum of bilinear samples.

    value [B, S, M, D]; locations [B, Q, M, L, P, 2], 0..1; weights [B, Q, M, L, P];
    returns [B, Q, M * D].
    """
    batch, _, heads, depth = value.shape
    queries = locations.shape[1]
    grids = 2 * locations - 1
    sampled = []
    for level, part in enumerate(value.split([h * w for h, w in shapes], dim=1)):
        height, width = shapes[level]
        image = part.flatten(2).transpose(1, 2).reshape(batch * heads, depth, height, width)
        grid = grids[:, :, :, level].transpose(1, 2).flatten(0, 1)
        sampled.append(F.grid_sample(image, grid, align_corners=False))
    weights = weights.transpose(1, 2).reshape(batch * heads, 1, queries, -1)
    total = (torch.stack(sampled, dim=-2).flatten(-2) * weights).sum(-1)
    return total.view(batch, heads * depth, queries).transpose(1, 2)


class TemporalAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.value = nn.Linear(CHANNELS, CHANNELS)
        self.offsets = nn.Linear(2 * CHANNELS, 2 * HEADS * TEMPORAL_POINTS * 2)
        self.weights = nn.Linear(2 * CHANNELS, 2 * HEADS * TEMPORAL_POINTS)
        self.output = nn.Linear(CHANNELS, CHANNELS)

    def forward(self, query: Tensor, previous: Tensor, reference: Tensor) -> Tensor:
        batch, queries, _ = query.shape
        maps = torch.stack([previous, query], 1).reshape(2 * batch, queries, CHANNELS)
        value = self.value(maps).reshape(2 * batch, queries, HEADS, -1)
        both = torch.cat([previous, query], -1)
        offsets = self.offsets(both).view(batch, queries, HEADS, 2, 1, TEMPORAL_POINTS, 2)
        weights = self.weights(both).view(batch, queries, HEADS, 2, TEMPORAL_POINTS).softmax(-1)
        offsets = offsets.permute(0, 3, 1, 2, 4, 5, 6).reshape(
            2 * batch, queries, HEADS, 1, TEMPORAL_POINTS, 2
        )
        weights = weights.permute(0, 3, 1, 2, 4).reshape(
            2 * batch, queries, HEADS, 1, TEMPORAL_POINTS
        )
        size = torch.tensor([BEV_WIDTH, BEV_HEIGHT], dtype=torch.float32)
        locations = reference[:, :, None, None, None, :] + offsets / size
        sampled = sample_levels(value, ((BEV_HEIGHT, BEV_WIDTH),), locations, weights)
        sampled = sampled.permute(1, 2, 0).view(queries, CHANNELS, batch, 2).mean(-1)
        return query + self.output(sampled.permute(2, 0, 1))


class SpatialAttention(nn.Module):
    def __init__(self):
        super().__init__()
        points = HEIGHTS * POINTS_PER_HEIGHT
        self.value = nn.Linear(CHANNELS, CHANNELS)
        self.offsets = nn.Linear(CHANNELS, HEADS * len(LEVELS) * points * 2)
        self.weights = nn.Linear(CHANNELS, HEADS * len(LEVELS) * points)
        self.output = nn.Linear(CHANNELS, CHANNELS)

    def forward(self, query: Tensor, features: Tensor, places: Tensor, visible: Tensor) -> Tensor:
        """features [cameras, S, C]; places [cameras, Q, heights, 2]; visible [cameras, Q]."""
        queries, levels, points = query.shape[1], len(LEVELS), HEIGHTS * POINTS_PER_HEIGHT
        each = query.expand(CAMERAS, -1, -1)
        value = self.value(features).view(CAMERAS, -1, HEADS, CHANNELS // HEADS)
        offsets = self.offsets(each).view(CAMERAS, queries, HEADS, levels, points, 2)
        weights = self.weights(each).view(CAMERAS, queries, HEADS, levels * points).softmax(-1)
        weights = weights.view(CAMERAS, queries, HEADS, levels, points)
        size = torch.tensor([[w, h] for h, w in LEVELS], dtype=torch.float32)
        offsets = offsets / size[None, None, None, :, None, :]
        offsets = offsets.view(
            CAMERAS, queries, HEADS, levels, POINTS_PER_HEIGHT, HEIGHTS, 2
        )
        locations = places[:, :, None, None, None, :, :] + offsets
        locations = locations.reshape(CAMERAS, queries, HEADS, levels, points, 2)
        sampled = sample_levels(value, LEVELS, locations, weights)
        seen = visible.unsqueeze(-1)
        mean = (sampled * seen).sum(0, keepdim=True) / seen.sum(0, keepdim=True).clamp(min=1)
        return query + self.output(mean)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.temporal, self.spatial = TemporalAttention(), SpatialAttention()
        self.norms = nn.ModuleList(nn.LayerNorm(CHANNELS) for _ in range(3))
        self.up, self.down = nn.Linear(CHANNELS, 2 * CHANNELS), nn.Linear(2 * CHANNELS, CHANNELS)

    def forward(self, query, previous, reference, features, places, visible):
        query = self.norms[0](self.temporal(query, previous, reference))
        query = self.norms[1](self.spatial(query, features, places, visible))
        return self.norms[2](query + self.down(F.relu(self.up(query))))


class BevEncoder(nn.Module):
    def __init__(self, layers: int = 2):
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, BEV_HEIGHT * BEV_WIDTH, CHANNELS))
        self.camera = nn.Parameter(torch.randn(CAMERAS, 1, CHANNELS) * 0.1)
        self.level = nn.Parameter(torch.randn(len(LEVELS), CHANNELS) * 0.1)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        x = (torch.arange(BEV_WIDTH) + 0.5) / BEV_WIDTH
        y = (torch.arange(BEV_HEIGHT) + 0.5) / BEV_HEIGHT
        y, x = torch.meshgrid(y, x, indexing="ij")
        self.register_buffer("reference", torch.stack([x, y], -1).view(1, -1, 2))
        # Metres: 20 to each side, -2 to 2 in height, as homogeneous points [heights, Q, 4].
        flat = (self.reference[0] - 0.5) * 40
        z = torch.linspace(-2, 2, HEIGHTS)[:, None, None].expand(-1, flat.shape[0], 1)
        points = torch.cat([flat.expand(HEIGHTS, -1, -1), z, torch.ones_like(z)], -1)
        self.register_buffer("points", points)

    def forward(self, previous, projection, *levels):
        """previous [1, Q, C]; projection [cameras, 4, 4], metres to pixels times depth; levels
        [cameras, C, H, W]."""
        features = torch.cat(
            [
                level.flatten(2).transpose(1, 2) + self.camera + self.level[i]
                for i, level in enumerate(levels)
            ],
            1,
        )
        projected = torch.einsum("cij,zqj->cqzi", projection, self.points)
        depth = projected[..., 2:3]
        places = projected[..., :2] / depth.clamp(min=EPSILON)
        places = places / torch.tensor([IMAGE[1], IMAGE[0]])
        inside = (depth[..., 0] > EPSILON) & (places > 0).all(-1) & (places < 1).all(-1)
        visible = inside.any(-1).float()
        query = self.query
        for layer in self.layers:
            query = layer(query, previous, self.reference, features, places, visible)
        return query


def cameras(seed: int) -> Tensor:
    """Cameras that look ahead and back, with a little noise: [cameras, 4, 4]."""
    generator = torch.Generator().manual_seed(seed)
    matrices = []
    for i in range(CAMERAS):
        angle = torch.tensor(np.pi * i) + 0.1 * torch.randn((), generator=generator)
        c, s = torch.cos(angle), torch.sin(angle)
        # Camera axes (right, down, ahead) of the world's (ahead, left, up).
        turn = torch.zeros(4, 4)
        turn[0, :2] = torch.stack([s, -c])
        turn[1, 2] = -1
        turn[2, :2] = torch.stack([c, s])
        turn[2, 3], turn[3, 3] = 0.5, 1
        lens = torch.eye(4)
        lens[0, 0], lens[1, 1] = 50, 50
        lens[0, 2], lens[1, 2] = IMAGE[1] / 2, IMAGE[0] / 2
        matrices.append(lens @ turn)
    return torch.stack(matrices)


def make_inputs(seed: int) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    previous = torch.randn(1, BEV_HEIGHT * BEV_WIDTH, CHANNELS, generator=generator)
    levels = [torch.randn(CAMERAS, CHANNELS, h, w, generator=generator) for h, w in LEVELS]
    return (previous, cameras(seed), *levels)


def largest_difference(path: pathlib.Path, model: nn.Module, seed: int) -> float:
    inputs = make_inputs(seed)
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {i.name: x.numpy() for i, x in zip(session.get_inputs(), inputs, strict=True)}
    return float(np.abs(session.run(None, feeds)[0] - model(*inputs).numpy()).max())


@torch.no_grad()
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=pathlib.Path, help="the directory to write to")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    model = BevEncoder().eval()
    names = ["previous", "projection"] + [f"features_{i}" for i in range(len(LEVELS))]
    arguments.out.mkdir(parents=True, exist_ok=True)
    for exporter in ("ts", "dynamo"):
        path = arguments.out / f"bevformer_{exporter}.onnx"
        options = dict(dynamo=False, opset_version=17)
        if exporter == "dynamo":
            options = dict(dynamo=True, opset_version=18, external_data=False, verbose=False)
        torch.onnx.export(
            model, make_inputs(0), str(path), input_names=names, output_names=["bev"], **options
        )
        exported = onnx.load(path)
        drop_host_metadata(exported)
        onnx.checker.check_model(exported)
        onnx.save(exported, path)
        difference = largest_difference(path, model, arguments.seed + 1)
        count = sum(node.op_type == "GridSample" for node in exported.graph.node)
        print(
            f"{path.name}: {len(exported.graph.node)} nodes, {count} GridSample, "
            f"{path.stat().st_size} bytes, largest difference {difference:.2g}"
        )
        if difference > 1e-4:
            print(f"{path}: differs from PyTorch by {difference}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
