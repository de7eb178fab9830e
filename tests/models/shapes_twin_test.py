#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: shapes_twin_test.py ROOT TENONNX

`tenonnx data shapes` and tools/models/shapes.py give the same pixels and the same labels.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from PIL import Image

if len(sys.argv) < 3:
    sys.exit(__doc__)
ROOT, TENONNX = pathlib.Path(sys.argv.pop(1)), sys.argv.pop(1)
sys.dont_write_bytecode = True  # nothing is written into the source tree
sys.path.insert(0, str(ROOT / "tools/models"))
from shapes import CLASSES, HELD_OUT_SEED, make_image  # noqa: E402


class ShapesTwin(unittest.TestCase):
    def check(self, seed, count):
        with tempfile.TemporaryDirectory() as folder:
            command = [TENONNX, "data", "shapes", "--count", str(count), "--seed", str(seed)]
            done = subprocess.run(
                [*command, "-o", f"{folder}/images"], capture_output=True, text=True
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            images = pathlib.Path(folder, "images")
            coco = json.loads((images / "annotations.json").read_text())
            self.assertEqual([c["name"] for c in coco["categories"]], list(CLASSES))
            self.assertEqual(len(coco["images"]), count)
            first_category = min(c["id"] for c in coco["categories"])
            for offset, entry in enumerate(sorted(coco["images"], key=lambda i: i["id"])):
                expected = make_image(seed + offset)
                pixels = np.asarray(Image.open(images / entry["file_name"]))
                np.testing.assert_array_equal(pixels, expected.pixels)
                found = [a for a in coco["annotations"] if a["image_id"] == entry["id"]]
                boxes = [
                    [x, y, x + w, y + h] for x, y, w, h in (a["bbox"] for a in found)
                ]
                self.assertEqual(boxes, expected.boxes.tolist())
                labels = [a["category_id"] - first_category for a in found]
                self.assertEqual(labels, expected.labels.tolist())

    def test_held_out_images(self):
        self.check(HELD_OUT_SEED, 20)

    def test_training_images(self):
        self.check(0, 10)

    def test_large_seeds(self):
        self.check(2**40 + 7, 3)


if __name__ == "__main__":
    unittest.main()
