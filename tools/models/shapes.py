# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Labelled synthetic images: the Python twin of `tenonnx data shapes`.

An image is a function of its seed alone: a colour gradient with noise and one to seven objects
(circle, rectangle, triangle, cross) that overlap little. Integer arithmetic only, so that this
file and src/eval give the same bits on every machine. Images for training have seeds from 0;
held-out images have seeds from HELD_OUT_SEED.
"""

from __future__ import annotations

import dataclasses

import numpy as np

SIZE = 160
CLASSES = ("circle", "rectangle", "triangle", "cross")
HELD_OUT_SEED = 1_000_000

CIRCLE, RECTANGLE, TRIANGLE, CROSS = range(4)

_MASK64 = (1 << 64) - 1
_NOISE_BITS = 5  # noise is the sum of two values of 5 bits, centred: -31 to 31
_MIN_CONTRAST = 120  # sum over channels of |object - background|, so that no object is invisible


@dataclasses.dataclass(frozen=True)
class LabelledImage:
    """pixels: uint8 [SIZE,SIZE,3], RGB. boxes: int32 [n,4], xyxy in pixels, right and bottom
    exclusive. labels: int32 [n], an index into CLASSES."""

    pixels: np.ndarray
    boxes: np.ndarray
    labels: np.ndarray


class SplitMix64:
    """The splitmix64 generator; the first state is spread so that near seeds give unlike images."""

    def __init__(self, seed: int):
        self._state = (seed * 0xD1B54A32D192ED03 + 0x2545F4914F6CDD1D) & _MASK64

    def below(self, limit: int) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK64
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK64
        return ((z ^ (z >> 31)) >> 33) % limit

    def between(self, low: int, high: int) -> int:
        """A value from low to high, both included."""
        return low + self.below(high - low + 1)


_Y, _X = np.mgrid[0:SIZE, 0:SIZE].astype(np.int32)
_PIXEL_HASH = (
    (_X[..., None].astype(np.uint32) * np.uint32(73856093))
    ^ (_Y[..., None].astype(np.uint32) * np.uint32(19349663))
    ^ (np.arange(1, 4, dtype=np.uint32) * np.uint32(83492791))
)


def _noise(seed: int) -> np.ndarray:
    """int32 [SIZE,SIZE,3] from -31 to 31, triangular, from a hash of position, channel and seed."""
    h = _PIXEL_HASH ^ np.uint32((seed * 2654435761) & 0xFFFFFFFF)
    h = (h ^ (h >> 15)) * np.uint32(0x2C1B3C6D)
    h = (h ^ (h >> 12)) * np.uint32(0x297A2D39)
    h = h ^ (h >> 15)
    mask = np.uint32((1 << _NOISE_BITS) - 1)
    return (h & mask).astype(np.int32) + ((h >> 8) & mask).astype(np.int32) - int(mask)


def _mask(kind: int, cx: int, cy: int, half_width: int, half_height: int) -> np.ndarray:
    dx, dy = np.abs(_X - cx), _Y - cy
    inside = (dx <= half_width) & (np.abs(dy) <= half_height)
    if kind == CIRCLE:
        return dx * dx + dy * dy <= half_width * half_width
    if kind == RECTANGLE:
        return inside
    if kind == TRIANGLE:  # the apex is at the top
        return inside & (dx * (2 * half_height) <= (dy + half_height) * half_width)
    return inside & ((dx * 3 <= half_width) | (np.abs(dy) * 3 <= half_height))


def _overlaps_little(a, b) -> bool:
    """IoU at most 1/6, in integers."""
    width = max(0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0, min(a[3], b[3]) - max(a[1], b[1]))
    intersection = width * height
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - intersection
    return intersection * 6 <= union


def make_image(seed: int) -> LabelledImage:
    """The image of `seed`. The order in which random values are drawn is part of the format."""
    random = SplitMix64(seed)
    base = [random.between(48, 207) for _ in range(3)]
    slope_x = [random.between(-64, 64) for _ in range(3)]
    slope_y = [random.between(-64, 64) for _ in range(3)]
    image = np.stack(
        [
            base[c]
            + ((slope_x[c] * (_X - SIZE // 2)) >> 8)
            + ((slope_y[c] * (_Y - SIZE // 2)) >> 8)
            for c in range(3)
        ],
        -1,
    )
    boxes: list[tuple[int, int, int, int]] = []
    labels: list[int] = []
    for _ in range(random.between(1, 7)):
        kind = random.below(4)
        half_width = random.between(5, 13) if random.below(2) else random.between(14, 32)
        half_height = half_width
        if kind in (RECTANGLE, TRIANGLE):
            half_height = max(5, min(32, half_width * random.between(10, 20) // 15))
        for _ in range(20):
            cx = random.between(half_width, SIZE - 1 - half_width)
            cy = random.between(half_height, SIZE - 1 - half_height)
            box = (cx - half_width, cy - half_height, cx + half_width + 1, cy + half_height + 1)
            if all(_overlaps_little(box, other) for other in boxes):
                break
        else:
            continue  # no room for this object
        while True:
            colour = [random.below(256) for _ in range(3)]
            if sum(abs(colour[c] - base[c]) for c in range(3)) >= _MIN_CONTRAST:
                break
        image[_mask(kind, cx, cy, half_width, half_height)] = colour
        boxes.append(box)
        labels.append(kind)
    pixels = np.clip(image + _noise(seed), 0, 255).astype(np.uint8)
    return LabelledImage(
        pixels, np.array(boxes, np.int32).reshape(-1, 4), np.array(labels, np.int32)
    )


def fnv1a64(data: bytes) -> int:
    """The 64-bit FNV-1a hash, by which tests compare images across languages."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & _MASK64
    return value
