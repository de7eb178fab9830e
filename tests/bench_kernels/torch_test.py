#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: torch_test.py OPS_LIBRARY CACHE

GridSample against torch.nn.functional.grid_sample, and MSDeformAttn against the function of transformers. With
77 where CACHE holds no environment with PyTorch (tools/models/setup_torch_cpu.sh).

Values lie in -1..1. Limit: 1e-6 times the larger of 1 and the value's magnitude. Where coordinates are the same
bits, only sums are left: bilinear, 4 or 8 products of weights that sum to 1, is about 6 roundings of 2^-24 on
either side.
PyTorch's order of steps is followed, and its 2-D kernels for bilinear and nearest give the same bits. Its 3-D
and its cubic kernels round the product with the size, which a fused multiply-add does not. There grids are
tested whose steps are exact (multiples of 2^-12 and sizes that are powers of 2), and any grid with the
rounding of a pixel coordinate more: 2^-24 * 1.3 * size (the largest coordinate), times the largest slope
(2 from pixel to pixel; cubic 4.2: the magnitudes of the weights' derivatives sum to 3.0 halfway, the weights
of the other axis to 1.38), times the number of axes. Cubic with exact steps is compared with PyTorch in
float64, as its float32 weights alone are off by up to 5e-7.
Attention: transformers computes 2 * location - 1 first and then the pixel, we location * size - 0.5. Locations that
are multiples of 2^-12 in levels of powers of 2 are exact in both. Elsewhere its pixel is off by three
roundings of numbers up to `size` and ours by one: 2^-22 * size * 2 more for each of the two axes.
"""
import glob
import sys

import numpy as np
from onnx import helper

import attention
import peers
from case import model

LIMIT = 1e-6


def sampled(ops, value, grid, mode, padding, align, last):
    arrays = {"X": np.ascontiguousarray(np.moveaxis(value, 1, -1)) if last else value, "grid": grid}
    output = [value.shape[0], value.shape[1], *grid.shape[1:-1]]
    if last:
        output = [output[0], *output[2:], output[1]]
    node = helper.make_node("GridSample", ["X", "grid"], ["out"], domain="tenonnx", mode=mode, padding_mode=padding,
                            align_corners=align, layout="NHWC" if last else "NCHW")
    session = peers.ort_session(model([node], arrays, output, own_domain=True), 1, ops)
    out = session.run(None, arrays)[0]
    return np.moveaxis(out, -1, 1) if last else out


def random_case(random, dimensions, align, exact):
    size = 2 ** random.integers(0, 7 if dimensions == 2 else 5, dimensions) + align if exact else (
        random.integers(1, 90 if dimensions == 2 else 20, dimensions))
    images, channels = random.integers(1, 3), random.integers(1, 40)
    value = random.uniform(-1, 1, (images, channels, *size)).astype(np.float32)
    grid = random.uniform(-1.6, 1.6, (images, *random.integers(1, 40 if dimensions == 2 else 12, dimensions), dimensions))
    return value, (np.rint(grid * 4096) / 4096 if exact else grid).astype(np.float32)


def grid_sample(torch, ops, random):
    """{name: the share of the limit that is used}"""
    worst = {}
    kinds = [(2, mode, exact) for mode in ("bilinear", "nearest", "bicubic") for exact in (True, False)]
    kinds += [(3, "bilinear", True), (3, "bilinear", False), (3, "nearest", True)]
    for dimensions, mode, exact in kinds:
        for padding in ("zeros", "border", "reflection"):
            for align in (0, 1):
                used = 0
                for _ in range(6):
                    value, grid = random_case(random, dimensions, align, exact)
                    kind = torch.float64 if exact and mode == "bicubic" else torch.float32
                    theirs = torch.nn.functional.grid_sample(
                        torch.from_numpy(value).to(kind), torch.from_numpy(grid).to(kind), mode=mode,
                        padding_mode=padding, align_corners=bool(align)).numpy()
                    ours = sampled(ops, value, grid, mode, padding, align, random.integers(2))
                    limit = LIMIT * np.maximum(1, np.abs(theirs))
                    if not exact and (dimensions == 3 or mode == "bicubic"):
                        slope = 4.2 if mode == "bicubic" else 2
                        limit += 2.0 ** -24 * 1.3 * max(value.shape[2:]) * slope * dimensions
                    used = max(used, float((np.abs(ours - theirs) / limit).max()))
                exactly = ", exact coordinates" if exact else ""
                worst[f"{dimensions}-D {mode}, {padding}, align_corners {align}{exactly}"] = used
    return worst


def attend(torch, function, ops, random):
    worst = {}
    for kind, levels in (("exact coordinates", ((64, 64), (32, 32), (16, 8))), ("any", attention.THREE)):
        for heads, d, points in ((8, 32, 4), (3, 24, 2), (1, 7, 5)):
            keys, total = sum(h * w for h, w in levels), 3 * points
            value = random.uniform(-1, 1, (2, keys, heads, d)).astype(np.float32)
            locations = random.uniform(-.1, 1.1, (2, 50, heads, total, 2))
            if kind != "any":
                locations = np.rint(locations * 4096) / 4096
            weights = random.uniform(0, 1, (2, 50, heads, total))
            weights /= weights.sum(-1, keepdims=True)
            arrays = {"value": value, "locations": locations.astype(np.float32), "weights": weights.astype(np.float32)}
            session = peers.ort_session(attention.ours(arrays, levels, (points,) * 3), 1, ops)
            ours = session.run(None, arrays)[0]
            split = [torch.from_numpy(a.reshape(2, 50, heads, 3, points, *a.shape[4:])) for a in
                     (arrays["locations"], arrays["weights"])]
            theirs = function(torch.from_numpy(value), levels, *split)
            limit = 0 if kind != "any" else 2 * 2.0 ** -22 * max(max(level) for level in levels) * 2
            used = float((np.abs(ours - theirs.numpy()) / (LIMIT + limit)).max())
            worst[f"attention, {kind}, {heads} heads of {d}"] = used
    return worst


def main():
    ops, cache = sys.argv[1:]
    sites = glob.glob(f"{cache}/venv-torch-*/lib/python3*/site-packages/torch")
    if not sites:
        print("skipped: no environment with PyTorch")
        return 77
    modules, versions = peers.available(sites[-1].removesuffix("/torch"))
    torch = modules["PyTorch"]
    torch.set_num_threads(1)
    random = np.random.default_rng(7)
    worst = grid_sample(torch, ops, random)
    from transformers.models.deformable_detr.modeling_deformable_detr import MultiScaleDeformableAttention
    layer = MultiScaleDeformableAttention()

    def function(value, levels, locations, weights):
        shapes = torch.tensor(levels)
        starts = torch.cat([shapes.new_zeros(1), shapes.prod(1).cumsum(0)[:-1]])
        return layer(value, shapes, [tuple(level) for level in levels], starts, locations, weights, 64)
    worst |= attend(torch, function, ops, random)
    print(versions)
    for name, used in worst.items():
        print(f"{name}: {100 * used:.0f} % of the limit")
    return 1 if any(not used <= 1 for used in worst.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
