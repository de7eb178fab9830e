# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Deformable attention: the measured shapes, their data, and the graph that exporters write."""
import numpy as np
from onnx import helper

import bounds
from case import Case, model

THREE, FOUR = ((80, 80), (40, 40), (20, 20)), ((80, 80), (40, 40), (20, 20), (10, 10))
BEVFORMER = dict(batch=6, queries=2500, levels=((58, 100), (29, 50), (15, 25), (8, 13)), points=(8,) * 4)
CASES = {
    "decoder, d 32, 3 levels, 4,4,4": dict(channels=32),
    "decoder, d 24, 3 levels, 4,4,4": dict(channels=24),
    "decoder, d 32, 3 levels, 3,6,3": dict(channels=32, points=(3, 6, 3)),
    "decoder, d 24, 3 levels, 3,6,3": dict(channels=24, points=(3, 6, 3)),
    "decoder, d 32, 4 levels": dict(channels=32, levels=FOUR, points=(4,) * 4),
    "decoder, d 32, batch 4": dict(channels=32, batch=4),
    "decoder, d 32, batch 4, values float16": dict(channels=32, batch=4, half=True),
    "encoder, 8,400 queries, 3 levels": dict(encoder=True),
    "encoder, 8,500 queries, 4 levels": dict(encoder=True, levels=FOUR, points=(4,) * 4),
    "BEVFormer spatial cross-attention": BEVFORMER,
    "BEVFormer spatial cross-attention, values float16": BEVFORMER | dict(half=True),
}


def data(channels=32, heads=8, queries=300, levels=THREE, points=(4, 4, 4), batch=1, encoder=False):
    """value, locations, weights. Decoder: points inside random boxes. Encoder: queries in the order of
    the pixels of all levels, points a few pixels away."""
    random = np.random.default_rng(0)
    keys, total = sum(h * w for h, w in levels), sum(points)
    value = random.standard_normal((batch, keys, heads, channels), np.float32)
    if encoder:
        grids = [np.meshgrid((np.arange(w) + .5) / w, (np.arange(h) + .5) / h) for h, w in levels]
        centre = np.concatenate([np.stack(g, -1).reshape(-1, 2) for g in grids])[None, :, None, None]
        size = np.repeat(np.array([(w, h) for h, w in levels]), points, axis=0)
        locations = centre + 2 * random.standard_normal((batch, keys, heads, total, 2)) / size
    else:
        centre = random.uniform(.05, .95, (batch, queries, 1, 1, 2))
        box = random.uniform(.03, .5, (batch, queries, 1, 1, 2))
        locations = centre + box * random.uniform(-.5, .5, (batch, queries, heads, total, 2))
    weights = np.exp(random.standard_normal(locations.shape[:-1]))
    weights /= weights.sum(-1, keepdims=True)
    return value, locations.astype(np.float32), weights.astype(np.float32)


def ours(arrays, levels, points):
    value = arrays["value"]
    batch, queries = arrays["locations"].shape[:2]
    node = helper.make_node("MSDeformAttn", list(arrays), ["out"], domain="tenonnx",
                            points=list(points), spatial_shapes=[n for level in levels for n in level])
    return model([node], arrays, [batch, queries, value.shape[2] * value.shape[3]], own_domain=True,
                 kind=helper.np_dtype_to_tensor_dtype(value.dtype))


def exported(arrays, levels, points):
    """Split, a GridSample a level, weights, sum: what exports of Deformable DETR hold."""
    batch, _, heads, d = arrays["value"].shape
    queries, total = arrays["locations"].shape[1], sum(points)
    nodes, constants = [], {}

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output] if isinstance(output, str) else output, **attributes))

    def constant(name, numbers, kind=np.int64):
        constants[name] = np.array(numbers, kind)
        return name

    count = range(len(levels))
    add("Split", ["value", constant("sizes", [h * w for h, w in levels])], [f"value_{i}" for i in count], axis=1)
    add("Mul", ["locations", constant("two", 2, np.float32)], "twice")
    add("Sub", ["twice", constant("one", 1, np.float32)], "grids")
    add("Split", ["grids", constant("points", points)], [f"grid_{i}" for i in count], axis=3)
    for i, (h, w) in enumerate(levels):
        add("Reshape", [f"value_{i}", constant(f"flat_{i}", [batch, h * w, heads * d])], f"rows_{i}")
        add("Transpose", [f"rows_{i}"], f"columns_{i}", perm=[0, 2, 1])
        add("Reshape", [f"columns_{i}", constant(f"image_shape_{i}", [batch * heads, d, h, w])], f"image_{i}")
        add("Transpose", [f"grid_{i}"], f"by_head_{i}", perm=[0, 2, 1, 3, 4])
        add("Reshape", [f"by_head_{i}", constant(f"grid_shape_{i}", [batch * heads, queries, points[i], 2])],
            f"sampling_{i}")
        add("GridSample", [f"image_{i}", f"sampling_{i}"], f"sampled_{i}", mode="bilinear",
            padding_mode="zeros", align_corners=0)
    add("Concat", [f"sampled_{i}" for i in count], "sampled", axis=3)
    add("Transpose", ["weights"], "weights_by_head", perm=[0, 2, 1, 3])
    add("Reshape", ["weights_by_head", constant("weights_shape", [batch * heads, 1, queries, total])], "scale")
    add("Mul", ["sampled", "scale"], "scaled")
    add("ReduceSum", ["scaled", constant("axis", [3])], "summed", keepdims=0)
    add("Reshape", ["summed", constant("out_shape", [batch, heads * d, queries])], "channels_first")
    add("Transpose", ["channels_first"], "out", perm=[0, 2, 1])
    return model(nodes, arrays, [batch, queries, heads * d], constants)


def torch_function(levels, points):
    def function(torch, value, locations, weights):
        batch, _, heads, d = value.shape
        queries = locations.shape[1]
        parts = value.split([h * w for h, w in levels], dim=1)
        grids = (2 * locations - 1).transpose(1, 2).flatten(0, 1).split(list(points), dim=2)
        sampled = torch.cat([torch.nn.functional.grid_sample(
            part.flatten(2).transpose(1, 2).reshape(batch * heads, d, h, w), grid, align_corners=False)
            for part, grid, (h, w) in zip(parts, grids, levels)], dim=-1)
        scale = weights.transpose(1, 2).reshape(batch * heads, 1, queries, -1)
        out = (sampled * scale).sum(-1).view(batch, heads * d, queries)
        return out.transpose(1, 2).contiguous()
    return function


def make(levels=THREE, points=(4, 4, 4), half=False, **kind):
    """half: our values are float16, those of the peers the same numbers in float32, which is faster for them."""
    value, locations, weights = data(levels=levels, points=points, **kind)
    if half:
        value = value.astype(np.float16).astype(np.float32)
    arrays = {"value": value, "locations": locations, "weights": weights}
    own = arrays | {"value": value.astype(np.float16)} if half else arrays
    d, output = value.shape[-1], [*locations.shape[:2], value.shape[2] * value.shape[3]]

    def bounds_of(library, places):
        offsets = bounds.attention_offsets(value, locations, levels, points)
        return library.chunks(places["value"], offsets, d) | library.gather(places["value"], offsets.size, d)

    # Coordinates in float32 are exact to 2e-5 of a pixel at 80 pixels, values differ by up to 8 between pixels,
    # weights sum to 1. Results in float16 round once: 2^-11 of up to 6.
    return Case(own, ours(own, levels, points), exported(arrays, levels, points), output,
                torch_function(levels, points), arrays if half else None, 1e-4 + half * 6 * 2 ** -11,
                bounds=None if half else bounds_of)
