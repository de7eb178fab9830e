# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""GridSample: the measured shapes and modes, their data, and the models."""
import numpy as np
from onnx import helper

from case import Case, aligned, model

DECODER, ENCODER, BEV = "300 x 4 points", "8,400 x 4 points", "[6,256,16,44] to 200 x 200"


def name_of(mode, padding, align, last=False):
    return f"{mode}, {padding}, align_corners {align}" + (", channels last" if last else "")


def _cases():
    made = {}
    for channels in (32, 24):
        for side in (80, 40, 20):
            made[f"[8,{channels},{side},{side}], {DECODER}"] = dict(channels=channels, side=side)
    for side in (80, 40, 20):
        made[f"[8,32,{side},{side}], {ENCODER}"] = dict(side=side, kind="encoder")
    made[BEV] = dict(kind="bev")
    made[f"{BEV}, output 16 bytes past 64"] = dict(kind="bev", output_offset=16)
    made[f"[8,32,80,80], {DECODER}, channels last"] = dict(side=80, last=True)
    made[f"{BEV}, channels last"] = dict(kind="bev", last=True)
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (0, 1):
                if (mode, padding, align) == ("linear", "zeros", 0):
                    continue
                options = dict(mode=mode, padding=padding, align=align)
                made[f"[8,32,40,40], {DECODER}, {name_of(mode, padding, align)}"] = dict(side=40, **options)
                if align == (padding == "reflection"):
                    made[f"[8,32,80,80], {ENCODER}, {name_of(mode, padding, align)}"] = dict(
                        side=80, kind="encoder", **options)
    for mode, padding, align in (("linear", "zeros", 0), ("linear", "border", 1), ("linear", "reflection", 0),
                                 ("nearest", "zeros", 0), ("nearest", "border", 1)):
        made[f"[1,32,8,50,50] to 8 x 100 x 100, {name_of(mode, padding, align)}"] = dict(
            kind="volume", mode=mode, padding=padding, align=align)
    return made


CASES = _cases()


def grid_of(kind, images, size):
    """In -1..1, of (x, y) or (x, y, z). Decoder: points inside of random boxes. Encoder: around the pixels
    of three levels. bev: what cameras around a car see of a plane, about a third of it outside."""
    random = np.random.default_rng(0)
    if kind == "bev":
        grid = np.zeros((images, 200, 200, 2), np.float32)
        y, x = np.meshgrid(np.linspace(-1, 1, 200), np.linspace(-1, 1, 200), indexing="ij")
        for n in range(images):
            angle = n * np.pi / 3
            u, v = np.cos(angle) * x - np.sin(angle) * y, np.sin(angle) * x + np.cos(angle) * y
            grid[n, ..., 0], grid[n, ..., 1] = u / (0.6 + 0.3 * v), 0.9 * v - 0.2 * u * u
        return grid
    if kind == "volume":
        axes = np.meshgrid(*(np.linspace(-1.05, 1.05, n) for n in (8, 100, 100)), indexing="ij")
        return (np.stack(axes[::-1], -1)[None] + random.normal(0, .02, (images, 8, 100, 100, 3))).astype(np.float32)
    if kind == "encoder":
        centre = np.concatenate([
            np.stack(np.meshgrid((np.arange(w) + .5) / w, (np.arange(w) + .5) / w), -1).reshape(-1, 2)
            for w in (80, 40, 20)])[None, :, None]
        at = centre + random.standard_normal((images, centre.shape[1], 4, 2)) * 2 / size[0]
    else:
        centre, box = random.uniform(.05, .95, (1, 300, 1, 2)), random.uniform(.03, .5, (1, 300, 1, 2))
        at = centre + random.uniform(-.5, .5, (images, 300, 4, 2)) * box
    return (2 * at - 1).astype(np.float32)


def away_from_ties(grid, size, align):
    """No coordinate within 1/1000 of the middle between two pixels, where nearest is a matter of rounding."""
    size = np.array(size[::-1], np.float64)
    pixel = (grid + 1) / 2 * (size - 1) if align else ((grid + 1) * size - 1) / 2
    pixel = np.where(np.abs(pixel - np.floor(pixel) - .5) < 1e-3, np.floor(pixel) + .498, pixel)
    return ((pixel / (size - 1) * 2 if align else (2 * pixel + 1) / size) - 1).astype(np.float32)


def data(kind="decoder", channels=32, side=80, mode="linear", align=0):
    images, size = {"bev": (6, (16, 44)), "volume": (1, (8, 50, 50))}.get(kind, (8, (side, side)))
    if kind == "bev":
        channels = 256
    value = np.random.default_rng(1).standard_normal((images, channels, *size), np.float32)
    grid = grid_of(kind, images, size)
    return value, away_from_ties(grid, size, align) if mode == "nearest" else grid


def torch_function(mode, padding, align, last):
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)

    def function(torch, X, grid):
        X = X.permute(0, 3, 1, 2) if last else X
        out = torch.nn.functional.grid_sample(X, grid, mode=mode, padding_mode=padding, align_corners=bool(align))
        return out.permute(0, 2, 3, 1) if last else out
    return function


def make(kind="decoder", channels=32, side=80, mode="linear", padding="zeros", align=0, last=False,
         output_offset=0):
    value, grid = data(kind, channels, side, mode, align)
    output = [*value.shape[:2], *grid.shape[1:-1]]
    volume = kind == "volume"
    if last:
        value, output = np.ascontiguousarray(np.moveaxis(value, 1, -1)), [output[0], *output[2:], output[1]]
    arrays = {"X": value, "grid": grid}
    options = dict(padding_mode=padding, align_corners=align)
    ours = model([helper.make_node("GridSample", ["X", "grid"], ["out"], domain="tenonnx", mode=mode,
                                   **options, **({"layout": "NHWC"} if last else {}))],
                 arrays, output, own_domain=True)
    # Only opset 20 has volumes; more runtimes read 16, whose names of the modes are others.
    name = mode if volume else {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    sample = helper.make_node("GridSample", ["planes" if last else "X", "grid"], ["sampled" if last else "out"],
                              mode=name, **options)
    nodes = [helper.make_node("Transpose", ["X"], ["planes"], perm=[0, 3, 1, 2]), sample,
             helper.make_node("Transpose", ["sampled"], ["out"], perm=[0, 2, 3, 1])] if last else [sample]
    peer = model(nodes, arrays, output, opset=20 if volume else 16)

    def bounds(library, arrays):
        """With at most 4 points for each pixel it does not pay to bring the values into another order first, so
        that a pair of neighbours in each of two rows is read. Else, and where channels are last, reading can be
        made fast, and what is left is to write the output."""
        if not volume and not last and grid[0, ..., 0].size <= 4 * value[0, 0].size:
            return library.pairs(arrays["X"], arrays["grid"])
        return library.write(aligned(output))
    plain = (mode, padding, align) == ("linear", "zeros", 0)
    # Coordinates in float32 are exact to 2e-5 of a pixel at 80 pixels; neighbours differ by up to 8. Cubic
    # weights change about twice as fast and taps are 16.
    return Case(arrays, ours, peer, output, torch_function(mode, padding, align, last),
                tolerance=1e-3 if mode == "cubic" else 2e-4, bounds=bounds if plain else None, output_offset=output_offset)
