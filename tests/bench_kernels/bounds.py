# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Lower bounds of a sampling kernel's time: bounds.cc with the addresses that the kernel has.

Each function returns {name: call}; the fastest of one kind counts, since the kernel may choose its width too.
"""
import ctypes
import os

import numpy as np

QUERY_BLOCK = 1


class Library:
    def __init__(self, path):
        self.library = ctypes.CDLL(os.path.abspath(path))
        self.library.tenonnx_instruction_set.restype = ctypes.c_char_p

    def instruction_set(self):
        return self.library.tenonnx_instruction_set().decode()

    @staticmethod
    def check(total, read):
        """Values of both signs nearly cancel: the limit is relative to the sum of magnitudes."""
        error = abs(total - sum(part.sum(dtype=np.float64) for part in read))
        if not error <= 1e-4 * sum(np.abs(part).sum(dtype=np.float64) for part in read):
            raise RuntimeError(f"the sum of a bound is off by {error}: it reads something else")

    def chunks(self, value, offsets, channels, name="chunks"):
        """Every width that there is. `offsets` in elements of `value`."""
        calls, total = {}, ctypes.c_float()
        for width in (16, 8, 4):
            def call(width=width, keep=(value, offsets)):
                return self.library.tenonnx_bound_chunks(
                    ctypes.c_void_p(value.ctypes.data), ctypes.c_void_p(offsets.ctypes.data),
                    ctypes.c_int64(offsets.size), ctypes.c_int64(channels), ctypes.c_int64(width),
                    ctypes.byref(total))
            if call():
                self.check(total.value, [value.reshape(-1, channels)[offsets // channels]])
                calls[f"bound: {name}, {width} floats wide"] = call
        return calls

    def gather(self, value, count, channels):
        """As many chunks, at addresses that are uniformly random in all of `value`, known before."""
        random = np.random.default_rng(0)
        offsets = random.integers(0, value.size // channels, count, np.int32) * np.int32(channels)
        return self.chunks(value, offsets, channels, "gather")

    def pairs(self, value, grid):
        """Of bilinear sampling with zeros. value [N, C, H, W], grid [N, Ho, Wo, 2]."""
        images, planes, height, width = value.shape
        parts = [pair_offsets(one, height, width) for one in grid]
        starts = np.cumsum([0] + [part.size for part in parts]).astype(np.int64)
        offsets, total, calls = np.concatenate(parts), ctypes.c_float(), {}
        for gather, how in enumerate(("8-byte loads", "gather instruction")):
            def call(gather=gather, keep=(value, offsets, starts)):
                self.library.tenonnx_bound_pairs(
                    ctypes.c_void_p(value.ctypes.data), *map(ctypes.c_int64, (images, planes, height * width)),
                    ctypes.c_void_p(offsets.ctypes.data), ctypes.c_void_p(starts.ctypes.data),
                    ctypes.c_int64(gather), ctypes.byref(total))
            call()
            first = value.reshape(images, planes, -1)
            both = [plane[:, part + k] for plane, part in zip(first, parts) for k in (0, 1)]
            self.check(total.value, both)
            calls[f"bound: pairs, {how}"] = call
        return calls

    def write(self, out):
        if out.ctypes.data % 64:
            raise ValueError("the output has to be aligned to 64 bytes")
        count = out.size // 16 * 16
        return {f"bound: {how}": lambda stream=stream, keep=out: self.library.tenonnx_bound_write(
            ctypes.c_void_p(out.ctypes.data), ctypes.c_int64(count), ctypes.c_int64(stream))
            for stream, how in enumerate(("write", "write past the caches"))}


def neighbours(x, size):
    """floor(x) and the next, and which of them are sampled: inside of the axis, with a weight."""
    low = np.floor(x)
    both = np.stack([low, low + 1], -1)
    sampled = (both >= 0) & (both < size[..., None]) & (np.stack([np.ones_like(x), x - low], -1) > 0)
    return both.astype(np.int64), sampled


def attention_offsets(value, locations, levels, points):
    """Of the chunks that MSDeformAttn samples, in its order: blocks of queries, heads, queries of the
    block, points, the four neighbours."""
    batch, keys, heads, d = value.shape
    size = np.repeat(np.array([(w, h) for h, w in levels], np.float32), points, axis=0)
    start = np.repeat(np.cumsum([0] + [h * w for h, w in levels])[:-1], points)
    at = (locations * size - np.float32(0.5)).reshape(-1, heads, sum(points), 2)
    (x, has_x), (y, has_y) = (neighbours(at[..., i], size[:, i]) for i in (0, 1))
    pixel = start[:, None, None] + y[..., :, None] * size[:, 0].astype(np.int64)[:, None, None] + x[..., None, :]
    image = np.arange(pixel.shape[0]) // (pixel.shape[0] // batch)
    row = (image[:, None, None, None, None] * keys + pixel) * heads + np.arange(heads)[:, None, None, None]
    offsets = np.where(has_y[..., :, None] & has_x[..., None, :], row * d, -1)
    spare = -offsets.shape[0] % QUERY_BLOCK
    offsets = np.pad(offsets, [(0, spare)] + [(0, 0)] * 4, constant_values=-1)
    offsets = offsets.reshape(-1, QUERY_BLOCK, *offsets.shape[1:]).swapaxes(1, 2).ravel()
    offsets = offsets[offsets >= 0]
    if offsets.max() > np.iinfo(np.int32).max:
        raise ValueError("the values exceed 2^31 elements")
    return offsets.astype(np.int32)


def pair_offsets(grid, height, width):
    """Of one image: of each point the one or two rows' pairs that bilinear sampling with zeros reads, in
    a plane. Where only one pixel of a pair is sampled, the pair lies beside the edge."""
    size = np.array([width, height], np.float32)
    at = ((grid.reshape(-1, 2) + 1) * size - 1) / 2
    (x, has_x), (y, has_y) = (neighbours(at[:, i], np.broadcast_to(size[i], at.shape[:1])) for i in (0, 1))
    column = np.clip(x[:, :1], 0, max(width - 2, 0))
    offsets = np.where(has_y & has_x.any(-1, keepdims=True), y * width + column, -1).ravel()
    return offsets[offsets >= 0].astype(np.int32)
