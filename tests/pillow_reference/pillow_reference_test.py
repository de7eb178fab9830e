# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Decoding, resizing and preprocessing against Pillow and numpy, bit for bit.

usage: pillow_reference_test.py resize|files|tensors PATH_OF_image_cases

Every case is made from its seed or name alone. Needs numpy and Pillow. The comparison is exact: both
sides compute with integers (resize) or with the same float32 operations (tensors). JPEG decoding is
the exception: Pillow brings a libjpeg-turbo of its own version, whose pixels may differ by 1.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import PIL
from PIL import Image, ImageOps

RESIZE_CASES = 500
BILINEAR = Image.Resampling.BILINEAR


class Cases:
    """Jobs for image_cases, run in one process, and what each must give."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.jobs, self.expected = [], []

    def path(self, name):
        return os.path.join(self.folder, name)

    def add(self, name, job, expected, tolerance=0):
        out = self.path(f"out{len(self.jobs)}.npy")
        self.jobs.append(f"{job} {out}")
        self.expected.append((name, out, expected, tolerance))

    def run(self):
        # Pillow 13 changed the order of the passes (pipeline/resize.h).
        version = min(13, max(12, int(PIL.__version__.split(".")[0])))
        jobs = [f"pillow {version}", *self.jobs]
        done = subprocess.run(
            [self.program], input="\n".join(jobs) + "\n", text=True, capture_output=True
        )
        if done.returncode != 0:
            sys.exit(f"image_cases failed: {done.stderr}")
        bad = 0
        for name, out, expected, tolerance in self.expected:
            got = np.load(out)
            if got.shape != expected.shape or got.dtype != expected.dtype:
                print(f"{name}: {got.dtype}{got.shape}, not {expected.dtype}{expected.shape}")
                bad += 1
                continue
            if tolerance == 0:
                wrong = got.view(f"u{got.itemsize}") != expected.view(f"u{got.itemsize}")
            else:
                wrong = np.abs(got.astype(int) - expected.astype(int)) > tolerance
            if wrong.any():
                at = tuple(int(i) for i in np.argwhere(wrong)[0])
                print(f"{name}: {wrong.sum()} of {got.size} differ, first {at}: "
                      f"{got[at]}, not {expected[at]}")
                bad += 1
        print(f"{len(self.jobs)} cases, {bad} failed")
        return bad == 0


def random_pixels(rng, height, width, channels):
    """Noise, or a gradient with noise, or two values: rounding errors and saturation show."""
    kind = rng.integers(3)
    shape = (height, width, channels)
    if kind == 0:
        return rng.integers(0, 256, shape, dtype=np.uint8)
    if kind == 1:
        ramp = np.linspace(0, 250, width)[None, :, None] + rng.integers(0, 6, shape)
        return ramp.astype(np.uint8)
    return (rng.integers(0, 2, shape) * 255).astype(np.uint8)


def test_resize(cases):
    for seed in range(RESIZE_CASES):
        rng = np.random.default_rng(seed)
        # From 1 pixel to hundreds, so that ratios go far in both directions.
        sizes = [int(round(np.exp(rng.uniform(0, np.log(700))))) for _ in range(4)]
        if seed % 25 == 0:
            sizes[int(rng.integers(4))] = 1
        if seed % 40 == 0:
            sizes[2] = sizes[0]  # one direction only
        width, height, to_width, to_height = sizes
        channels = int(rng.choice([1, 3, 3, 4]))
        pixels = random_pixels(rng, height, width, channels)
        image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
        expected = np.asarray(image.resize((to_width, to_height), BILINEAR))
        raw = cases.path(f"in{seed}.raw")
        pixels.tofile(raw)
        cases.add(
            f"seed {seed}: {width}x{height}x{channels} to {to_width}x{to_height}",
            f"resize {raw} {width} {height} {channels} {to_width} {to_height}",
            expected.reshape(to_height, to_width, channels),
        )


def as_training_code_loads(path):
    return ImageOps.exif_transpose(Image.open(path)).convert("RGB")


def test_files(cases):
    rng = np.random.default_rng(1)

    def add(name, path, tolerance=0):
        image = as_training_code_loads(path)
        cases.add(name, f"file {path} 0 0", np.asarray(image), tolerance)
        if tolerance == 0:
            for size in ((160, 160), (37, 91), (1, 1)):
                cases.add(f"{name} to {size}", f"file {path} {size[0]} {size[1]}",
                          np.asarray(image.resize(size, BILINEAR)))

    def save(name, image, **options):
        path = cases.path(name)
        image.save(path, **options)
        return path

    colour = Image.fromarray(rng.integers(0, 256, (41, 67, 3), dtype=np.uint8))
    grey = colour.convert("L")
    alpha = Image.fromarray(rng.integers(0, 256, (23, 31, 4), dtype=np.uint8))
    add("RGB PNG", save("rgb.png", colour))
    add("grey PNG", save("grey.png", grey))
    add("RGBA PNG", save("rgba.png", alpha))
    add("grey and alpha PNG", save("la.png", alpha.convert("LA")))
    add("palette PNG", save("p.png", colour.quantize(200)))
    add("palette of 4 PNG", save("p4.png", colour.quantize(4), bits=2))
    add("palette PNG, transparent", save("pt.png", colour.quantize(16), transparency=3))
    add("RGB PNG, transparent colour", save("rt.png", colour, transparency=(1, 2, 3)))
    add("1 bit PNG", save("one.png", grey.convert("1")))
    add("PPM", save("rgb.ppm", colour))
    add("PGM", save("grey.pgm", grey))
    add("1 x 1 PNG", save("tiny.png", colour.crop((0, 0, 1, 1))))
    # 16 bits: the high byte. Pillow clips grey at 255; see pipeline/image_file.h.
    deep = rng.integers(0, 65536, (19, 21), dtype=np.uint16)
    path = save("grey16.png", Image.fromarray(deep))
    high = (deep >> 8).astype(np.uint8)[..., None].repeat(3, 2)
    cases.add("16 bit grey PNG", f"file {path} 0 0", high)

    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        add(f"PNG, orientation {orientation}", save(f"o{orientation}.png", colour, exif=exif))
        smooth = colour.resize((120, 90), Image.Resampling.BICUBIC)
        for name, options in (("444", {"subsampling": 0}), ("420", {"subsampling": 2}),
                              ("progressive", {"progressive": True})):
            path = save(f"o{orientation}_{name}.jpg", smooth, exif=exif, quality=90, **options)
            add(f"JPEG {name}, orientation {orientation}", path, tolerance=1)
    add("grey JPEG", save("grey.jpg", grey, quality=95), tolerance=1)
    add("CMYK JPEG", save("cmyk.jpg", colour.convert("CMYK"), quality=95), tolerance=2)


def test_tensors(cases):
    rng = np.random.default_rng(2)
    pixels = rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)
    pixels[:16, :16, :] = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)  # every value
    path = cases.path("image.png")
    Image.fromarray(pixels).save(path)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

    def add(name, expected, shape, **image):
        contract = cases.path(f"{name.replace(' ', '_')}.json")
        with open(contract, "w", encoding="utf-8") as file:
            json.dump({"schema_version": 1, "image": {"shape": shape, **image},
                       "outputs": {"kind": "detections"}}, file)
        cases.add(name, f"tensor {contract} {path}", np.ascontiguousarray(expected[None]))

    # x.float() / 255 of PyTorch, (x - mean) / std of torchvision: float32 throughout.
    unit = pixels.astype(np.float32) / np.float32(255)
    normal = (unit - np.array(mean, np.float32)) / np.array(std, np.float32)
    planar, same = [1, 3, 48, 64], [1, 48, 64, 3]
    add("RGB by 255", unit.transpose(2, 0, 1), planar)
    add("BGR by 255", unit[..., ::-1].transpose(2, 0, 1), planar, color="BGR")
    add("NHWC", unit, same, layout="NHWC")
    add("mean and std", normal.transpose(2, 0, 1), planar, mean=mean, std=std)
    add("normalized by the model", unit.transpose(2, 0, 1), planar, mean=mean, std=std,
        normalized_by="model")
    add("scale 1 in 128", (pixels * np.float64(1 / 128)).astype(np.float32).transpose(2, 0, 1),
        planar, scale=1 / 128)
    add("float16", unit.transpose(2, 0, 1).astype(np.float16), planar, dtype="float16")
    add("uint8", pixels.transpose(2, 0, 1), planar, dtype="uint8", scale=1, normalized_by="model")

    stretched = np.asarray(Image.open(path).resize((40, 80), BILINEAR), np.float32) / np.float32(255)
    add("stretched", stretched.transpose(2, 0, 1), [1, 3, 80, 40])
    # 64 x 48 on 100 x 100: 100 x 75, with 12 rows of the fill above and 13 below.
    canvas = np.full((100, 100, 3), (10, 20, 30), np.uint8)
    canvas[12:87] = np.asarray(Image.open(path).resize((100, 75), BILINEAR))
    boxed = canvas.astype(np.float32) / np.float32(255)
    add("letterbox", boxed.transpose(2, 0, 1), [1, 3, 100, 100], fit="letterbox",
        letterbox_fill=[10, 20, 30])


def main():
    part, program = sys.argv[1:3]
    tests = {"resize": test_resize, "files": test_files, "tensors": test_tensors}
    with tempfile.TemporaryDirectory() as folder:
        cases = Cases(program, folder)
        tests[part](cases)
        sys.exit(0 if cases.run() else 1)


if __name__ == "__main__":
    main()
