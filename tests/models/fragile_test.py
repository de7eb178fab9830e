#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: fragile_test.py ROOT

The committed fragile model is what tools/models/make_fragile.py makes of the committed example, and
the script refuses what it cannot change.
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None
if ROOT is None:
    sys.exit(__doc__)
SCRIPT = ROOT / "tools/models/make_fragile.py"
EXAMPLE = ROOT / "examples/models/shapes_deimv2.onnx"
FRAGILE = ROOT / "examples/models/shapes_deimv2_fragile.onnx"


def run(source, target, *options):
    return subprocess.run(
        [sys.executable, SCRIPT, source, target, *options], capture_output=True, text=True
    )


class Fragile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.target = pathlib.Path(self.folder.name, "out.onnx")

    def tearDown(self):
        self.folder.cleanup()

    def changed_copy(self, change):
        """The example after change(graph), written to a file."""
        model = onnx.load(EXAMPLE)
        change(model.graph)
        path = pathlib.Path(self.folder.name, "source.onnx")
        onnx.save(model, path)
        return path

    def assert_refused(self, source, *words):
        done = run(source, self.target)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse(self.target.exists(), "a refusal must not write a file")

    def test_committed_file_is_what_the_script_makes(self):
        done = run(EXAMPLE, self.target)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("4 layers changed", done.stdout)
        # As messages: the wire form may differ between protobuf's versions.
        self.assertEqual(onnx.load(self.target), onnx.load(FRAGILE))

    def test_only_weights_of_the_projections_differ_and_by_powers_of_two(self):
        before, after = onnx.load(EXAMPLE), onnx.load(FRAGILE)
        self.assertEqual(list(before.graph.node), list(after.graph.node))
        ratios = {}
        for old, new in zip(before.graph.initializer, after.graph.initializer):
            self.assertEqual(old.name, new.name)
            if old == new:
                continue
            a, b = numpy_helper.to_array(old), numpy_helper.to_array(new)
            ratio = np.unique(b[a != 0] / a[a != 0])
            self.assertEqual(len(ratio), 1, f"'{old.name}' is not scaled by one factor")
            ratios[old.name] = float(ratio[0])
        self.assertEqual(sorted(set(ratios.values())), [2.0**-13, 2.0**13])
        self.assertEqual(sum(r == 2.0**-13 for r in ratios.values()), 4)

    def test_names_of_another_exporter_are_refused(self):
        def rename(graph):
            for index, node in enumerate(graph.node):
                node.name = f"node_{index}"

        self.assert_refused(self.changed_copy(rename), "0 up-projections", "4 of each expected")

    def test_a_missing_layer_is_refused(self):
        def hide_one(graph):
            node = next(n for n in graph.node if "layers.2/mlp/up_proj" in n.name)
            node.name = "elsewhere"

        self.assert_refused(self.changed_copy(hide_one), "3 up-projections", "4 down-projections")

    def test_a_shared_weight_is_refused(self):
        def share(graph):
            node = next(n for n in graph.node if "layers.0/mlp/down_proj/MatMul" in n.name)
            graph.node.append(helper.make_node("Abs", [node.input[1]], ["shared"], name="sharer"))

        self.assert_refused(self.changed_copy(share), "is used by 2 nodes", "sharer")

    def test_a_missing_file_is_an_error(self):
        self.assert_refused(pathlib.Path(self.folder.name, "none.onnx"), "no such file", "none.onnx")


if __name__ == "__main__":
    unittest.main()
