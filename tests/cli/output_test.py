# SPDX-License-Identifier: Apache-2.0
"""What the commands print, on the example: lines that fit, and grammar.

usage: output_test.py TENONNX SOURCE_DIR
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TENONNX = str(pathlib.Path(sys.argv[1]).resolve())
SOURCE = pathlib.Path(sys.argv[2]).resolve()
EXAMPLE = str(SOURCE / "examples/models/shapes_deimv2.onnx")
COLUMNS = 100
# "1 nodes", "1 of 1 inputs"; not "0.1 seconds", "opset 1 has", "1 pass", nor what "1" ends ("r1 nodes").
PLURAL = re.compile(r"(?<![\w.,:/-])1 (?!is\b|has\b|was\b|as\b|its\b|this\b|pass\b|less\b|class\b|"
                    r"bias\b|axis\b|across\b|where\b)(?:[a-z-]+ )?[a-z-]*[a-z]s\b(?!')")


def faults(text, prose=False):
    """Lines that are too long, and words that do not fit their number ('above 1 runs' of prose does)."""
    found = []
    for line in text.splitlines():
        # A path, a name or a command to be copied cannot be broken.
        longest = max((len(word) for word in line.split()), default=0)
        copied = re.match(r"\s*(\w+:\s+)?tenonnx ", line)
        if len(line) > COLUMNS and not copied and longest <= COLUMNS / 2:
            found.append(f"{len(line)} columns: {line}")
        plural = PLURAL.search(line)
        if plural and not prose:
            found.append(f"'{plural[0]}': {line}")
    return found


class Faults(unittest.TestCase):
    """The test itself can fail."""

    def test_long_lines(self):
        self.assertEqual(len(faults("a word " * 15)), 1)
        self.assertEqual(faults("a word " * 14), [])
        self.assertEqual(faults("in " + "/long" * 30), [])
        self.assertEqual(faults("  next:    tenonnx run " + "a word " * 15), [])

    def test_plurals(self):
        for wrong in ("1 nodes", "in 1 random inputs (seed 1)", "1 npz files of 'x'"):
            self.assertEqual(len(faults(wrong)), 1, wrong)
        for right in ("1 node", "0.1 nodes", "11 nodes", "image-1 holds", "1 is less", "1 pass"):
            self.assertEqual(faults(right), [], right)


class Output(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name)

    def output_of(self, *arguments, codes=(0, 3)):
        prose = "--help" in arguments or "--explain" in arguments
        # A vendor's library that somebody has installed writes lines of its own.
        result = subprocess.run([TENONNX, *arguments], capture_output=True, text=True, check=False,
                                timeout=300, cwd=self.scratch,
                                env={**os.environ, "TENONNX_QNN": str(self.scratch / "none")})
        print(f"--- {' '.join(arguments)}\n{result.stdout}{result.stderr}")
        self.assertIn(result.returncode, codes, result.stderr)
        self.assertEqual(faults(result.stdout, prose), [])
        self.assertEqual(faults(result.stderr), [])
        return result.stdout

    def images(self, count=1):
        folder = self.scratch / f"images{count}"
        if not folder.exists():
            self.output_of("data", "shapes", "--count", str(count), "--seed", "1000000", "-o",
                           folder.name)
        return folder.name

    def test_help(self):
        self.output_of("--help")
        commands = re.findall(r"^TENONNX_COMMAND\((\w+),", (SOURCE / "cli/commands.inc").read_text(), re.M)
        self.assertGreater(len(commands), 5)
        for command in commands:
            with self.subTest(command=command):
                self.output_of(command.replace("_", "-"), "--help")

    def test_errors(self):
        # Standard error is no terminal here.
        self.output_of("locate", EXAMPLE, "--on", "sim:no-such-device", codes=(2,))
        self.output_of("depoly", EXAMPLE, codes=(2,))
        self.output_of("deploy", EXAMPLE, codes=(2,))
        self.output_of("probe", EXAMPLE, "--node", "down_proj/MatMul", "--on", "sim:htp-v73",
                       codes=(2,))

    def test_look(self):
        self.output_of("inspect", EXAMPLE)
        self.output_of("doctor")

    def test_passes(self):
        self.output_of("optimize", "--list")
        for name in re.findall(r"^TENONNX_PASS\((\w+),", (SOURCE / "src/passes/passes.inc").read_text(), re.M):
            self.output_of("optimize", "--explain", name)

    def test_optimize(self):
        self.output_of("optimize", EXAMPLE, "-o", "random.onnx")
        text = self.output_of("optimize", EXAMPLE, "--images", self.images(), "-o", "small.onnx")
        self.assertIn("fold_constants", text)

    def test_rewrite(self):
        self.output_of("rewrite", EXAMPLE, "--pass",
                       "fold_constants,convert_opset,decompose_silu,narrow_index_types,sim_float16",
                       "--option", "convert_opset.target=20", "-o", "rewritten.onnx")
        # A named pass that declines is no PASS.
        self.output_of("rewrite", EXAMPLE, "--pass", "collapse_rank", "-o", "declined.onnx")

    def test_split_and_compare(self):
        self.output_of("split", EXAMPLE, "--list")
        self.output_of("split", EXAMPLE, "--at", "auto", "-o", "parts")
        self.output_of("compare", EXAMPLE, "--on", "sim:htp-v73", "--images", self.images(),
                       "--cache", "none", codes=(0, 1, 3))

    def test_package(self):
        self.output_of("deploy", EXAMPLE, "--target", "cpu", "-o", "random")
        self.output_of("deploy", EXAMPLE, "--target", "sim-htp", "--images", self.images(20), "-o",
                       "package")
        self.output_of("deploy", EXAMPLE, "--target", "cpu", "--images", self.images(), "-o", "one")
        self.output_of("verify", "package")
        self.output_of("verify", "package", "--images", self.images(20), "--model", EXAMPLE)
        self.output_of("bench", "package", "--warm-up", "1", "--runs", "3")
        self.output_of("run", "package", self.images(), "-o", "found")
        # What tries several cuts, or fails, has more to say. Without its contract, which names one.
        (self.scratch / "fragile.onnx").write_bytes(
            (SOURCE / "examples/models/shapes_deimv2_fragile.onnx").read_bytes())
        self.output_of("deploy", "fragile.onnx", "--target", "sim-htp", "--images", self.images(20),
                       "-o", "fragile", codes=(0, 1, 3))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
