# SPDX-License-Identifier: Apache-2.0
"""A pass that is wrong, through the command: what is said, what is written, and what is not.

usage: wrong_pass_test.py TENONNX_WITH_WRONG_PASSES TENONNX SOURCE_DIR
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
import zipfile

WRONG = str(pathlib.Path(sys.argv[1]).resolve())
RIGHT = str(pathlib.Path(sys.argv[2]).resolve())
SOURCE = pathlib.Path(sys.argv[3]).resolve()
EXAMPLE = str(SOURCE / "examples/models/shapes_deimv2.onnx")
# Passes that are right, beside the wrong one: what they do is kept.
GOOD = "fold_constants,eliminate_identities,eliminate_noop_reshapes"


class WrongPass(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def run_in(self, folder, *command, code):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                              timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def optimize(self, program, only, out, *options, code):
        return self.run_in(self.scratch, program, "optimize", EXAMPLE, "--only", only, "-o", out,
                           *options, code=code)

    def expect_last_good_model(self, out):
        """What was written is what the right passes alone write."""
        self.optimize(RIGHT, GOOD, "good.onnx", code=0)
        self.assertEqual((self.scratch / out).read_bytes(),
                         (self.scratch / "good.onnx").read_bytes())

    def expect_case(self, case):
        """The files are there, and what the README says shows the difference."""
        self.assertEqual(sorted(path.name for path in case.iterdir()),
                         ["README.md", "expected.npz", "inputs.npz", "new.onnx", "old.onnx"])
        for name in ("inputs.npz", "expected.npz"):
            self.assertNotEqual(zipfile.ZipFile(case / name).namelist(), [])
        readme = (case / "README.md").read_text()
        commands = re.findall(r"^ {4}(tenonnx .*)$", readme, re.M)
        self.assertEqual(len(commands), 1, readme)
        command = [RIGHT, *shlex.split(commands[0])[1:]]
        said = self.run_in(case, *command, "--cache", "none", code=1)
        self.assertIn("FAIL", said.splitlines()[0])
        # It is the pass that makes the difference, not what the region is run on.
        self.assertEqual(command.count("new.onnx"), 1)
        command[command.index("new.onnx")] = "old.onnx"
        self.run_in(case, *command, "--cache", "none", code=0)
        return readme

    def test_wrong_values(self):
        text = self.optimize(WRONG, GOOD + ",wrong_sigmoid", "out.onnx", code=1)
        self.assertIn("out.onnx: FAIL", text.splitlines()[0])
        self.assertRegex(text, r"wrong_sigmoid +algebraic +0 .*FAIL")
        self.assertRegex(text, r"before: +Sigmoid '")
        self.assertRegex(text, r"after: +HardSigmoid '")
        self.assertIn("wrong_sigmoid was undone: its proof failed", text)
        self.assertIn("out.onnx.failed/wrong_sigmoid_0", text)
        self.expect_last_good_model("out.onnx")
        self.assertEqual([path.name for path in (self.scratch / "out.onnx.failed").iterdir()],
                         ["wrong_sigmoid_0"])
        readme = self.expect_case(self.scratch / "out.onnx.failed/wrong_sigmoid_0")
        self.assertIn("Pass wrong_sigmoid (algebraic), region around Sigmoid '", readme)

    def test_the_record_says_so_too(self):
        printed = json.loads(self.optimize(WRONG, GOOD + ",wrong_sigmoid", "out.onnx", "--json",
                                           code=1))
        self.assertEqual(printed, json.loads((self.scratch / "out.passes.json").read_text()))
        self.assertEqual(printed["verdict"], "FAIL")
        self.assertTrue(printed["written"])
        wrong = [one for one in printed["passes"] if one["name"] == "wrong_sigmoid"][0]
        self.assertTrue(wrong["undone"])
        self.assertEqual(wrong["applied"], 0)
        failure = wrong["proofs"][0]["failures"][0]
        self.assertEqual(failure["minimal_case"], "out.onnx.failed/wrong_sigmoid_0")
        self.assertIn("Sigmoid", failure["before"][0])
        self.assertGreater(failure["check"]["value"], failure["check"]["limit"])
        for right in printed["passes"]:
            self.assertTrue(right["name"] == "wrong_sigmoid" or not right["undone"])

    def test_wrong_graph(self):
        text = self.optimize(WRONG, GOOD + ",wrong_graph", "out.onnx", code=1)
        self.assertRegex(" ".join(text.split()), r"wrong_graph was undone: .*'nothing'")
        self.expect_last_good_model("out.onnx")

    def test_wrong_shape(self):
        text = self.optimize(WRONG, GOOD + ",wrong_shape", "out.onnx", code=1)
        self.assertRegex(text, r"wrong_shape was undone: ")
        self.expect_last_good_model("out.onnx")

    def test_without_proofs_of_regions_nothing_is_written(self):
        self.run_in(self.scratch, RIGHT, "data", "shapes", "--count", "2", "--seed", "1000000", "-o",
                    "images", code=0)
        text = self.optimize(WRONG, GOOD + ",wrong_sigmoid", "out.onnx", "--proof", "whole",
                             "--images", "images", code=1)
        self.assertIn("Nothing was written", text)
        self.assertEqual(list(self.scratch.glob("out*")), [])

    def test_rewrite(self):
        text = self.run_in(self.scratch, WRONG, "rewrite", EXAMPLE, "--pass", "wrong_sigmoid", "-o",
                           "out.onnx", code=1)
        self.assertIn("wrong_sigmoid was undone", text)
        self.expect_case(self.scratch / "out.onnx.failed/wrong_sigmoid_0")

    def test_wrong_sampling(self):
        text = self.run_in(self.scratch, WRONG, "rewrite", EXAMPLE, "--pass", "wrong_corners", "-o",
                           "out.onnx", code=1)
        self.assertIn("wrong_corners was undone: its proof failed", text)
        self.assertIn("\nsampling\n  wrong_corners: GridSample '", text)
        self.assertIn("first point that breaks: pixel (", text)
        record = json.loads((self.scratch / "out.passes.json").read_text())
        sampling = record["passes"][0]["proofs"][0]["sampling"]
        self.assertEqual(len(sampling), 1)
        level = sampling[0]["levels"][0]
        self.assertGreater(level["wrong_taps"], 0)
        self.assertLessEqual(level["wrong_taps"], level["taps"])
        self.assertGreater(level["index_difference"], 0)
        self.assertEqual(len(sampling[0]["first_break"]["pixel"]), 2)
        for kind in ("centre", "corner", "border", "tie", "outside_less", "outside_more", "far"):
            self.assertGreater(level["made"][kind], 0, kind)
        # 1/2 of a step of 2^-11, in pixels of half the width.
        self.assertAlmostEqual(level["grid_rounding_pixels"]["float16"],
                               max(level["size"]) / 2 / 4096)
        self.expect_case(self.scratch / "out.onnx.failed/wrong_corners_0")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
