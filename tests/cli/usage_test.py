# SPDX-License-Identifier: Apache-2.0
"""Wrong usage and bad input at the command line: what is said, and the exit code 2.

usage: usage_test.py TENONNX SOURCE_DIR
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TENONNX = str(pathlib.Path(sys.argv[1]).resolve())
SOURCE = pathlib.Path(sys.argv[2]).resolve()
EXAMPLE = str(SOURCE / "examples/models/shapes_deimv2.onnx")


def run(*arguments, **options):
    return subprocess.run(
        [TENONNX, *arguments], capture_output=True, text=True, check=False, timeout=120, **options
    )


class Usage(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def refuses(self, arguments, *parts):
        result = run(*arguments, cwd=self.scratch)
        self.assertEqual(result.returncode, 2, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(list(self.scratch.glob("out*")), [], "something was left behind")

    def test_unknown_command_lists_the_commands(self):
        self.refuses(["deplyo", "m.onnx"], "there is no command 'deplyo'", "deploy", "inspect")

    def test_unknown_option_names_the_help(self):
        self.refuses(["inspect", EXAMPLE, "--colour"], "--colour", "tenonnx inspect --help")

    def test_missing_target(self):
        self.refuses(["deploy", EXAMPLE, "-o", "out"], "--target")

    def test_unknown_target_lists_the_targets(self):
        self.refuses(["deploy", EXAMPLE, "--target", "no-such-npu", "-o", "out"],
                     "no-such-npu", "sim-htp")

    def test_missing_model(self):
        self.refuses(["deploy", "absent.onnx", "--target", "cpu", "-o", "out"], "absent.onnx")

    def test_model_that_is_not_onnx(self):
        (self.scratch / "text.onnx").write_text("this is not a model\n")
        self.refuses(["inspect", "text.onnx"], "text.onnx")

    def test_input_shape_without_a_name(self):
        self.refuses(["deploy", EXAMPLE, "--target", "cpu", "-o", "out", "--input-shape", "1x3"],
                     "'1x3' is not NAME=DIMS")

    def test_frame_size(self):
        self.refuses(["run", "p", "-", "-o", "out", "--size", "640,480"],
                     "'640,480' is not WIDTHxHEIGHT")

    def test_pixel_format(self):
        self.refuses(["run", "p", "-", "-o", "out", "--pixel-format", "yuyv"], "yuyv")

    def test_cut_at_an_unknown_tensor(self):
        self.refuses(["split", EXAMPLE, "--at", "no_such_tensor", "-o", "out"], "no_such_tensor")

    def test_package_that_is_none(self):
        (self.scratch / "empty").mkdir()
        for command in (["verify", "empty"], ["bench", "empty"], ["run", "empty", ".", "-o", "out"]):
            with self.subTest(command=command[0]):
                self.refuses(command, "manifest.json")

    def test_help_and_version_pass(self):
        for arguments in (["--help"], ["--version"], ["deploy", "--help"], ["data", "--help"]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 0)
            self.assertNotIn("{false}", result.stdout)
        self.assertIn("Exit codes: 0 done and passed, 1 a gate failed", run("--help").stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
