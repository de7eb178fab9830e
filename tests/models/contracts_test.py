#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: contracts_test.py ROOT

The contracts in examples/models/ fit their models, their cut is the one that the structure of the
graph gives, and no file names a path of the machine on which it was made.
"""
import json
import pathlib
import re
import sys
import unittest

import onnx

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None
if ROOT is None:
    sys.exit(__doc__)
sys.dont_write_bytecode = True  # nothing is written into the source tree
sys.path.insert(0, str(ROOT / "tools/models"))
from contract_file import find_encoder_cut  # noqa: E402
from shapes import CLASSES  # noqa: E402

MODELS = sorted((ROOT / "examples/models").glob("*.onnx"))
HOST_PATH = re.compile(rb"/(?:home|root|tmp|usr|opt|mnt)/|site-packages|\.py\b")


class Contracts(unittest.TestCase):
    def test_there_are_models(self):
        self.assertGreaterEqual(len(MODELS), 2)

    def test_contract_fits_model(self):
        for path in MODELS:
            with self.subTest(path.name):
                contract = json.loads(path.with_suffix(".contract.json").read_text())
                graph = onnx.load(path).graph
                shapes = {
                    value.name: [d.dim_value for d in value.type.tensor_type.shape.dim]
                    for value in graph.input
                }
                self.assertEqual(shapes[contract["image"]["name"]], contract["image"]["shape"])
                self.assertEqual(shapes[contract["size"]["name"]], [1, 2])
                outputs = {contract["outputs"][k] for k in ("labels", "boxes", "scores")}
                self.assertEqual(outputs, {o.name for o in graph.output})
                self.assertEqual(contract["classes"], list(CLASSES))

    def test_cut_is_what_the_structure_gives(self):
        for path in MODELS:
            with self.subTest(path.name):
                contract = json.loads(path.with_suffix(".contract.json").read_text())
                # find_encoder_cut returns a set of tensors only if it separates the image from
                # every output and none of it can be spared.
                self.assertEqual(contract["cut"], find_encoder_cut(onnx.load(path)))
                self.assertEqual(len(contract["cut"]), 3)

    def test_no_path_of_the_build_machine(self):
        for path in MODELS:
            match = HOST_PATH.search(path.read_bytes())
            self.assertIsNone(match, f"{path.name} holds {match}")


if __name__ == "__main__":
    unittest.main()
