# SPDX-License-Identifier: Apache-2.0
"""deploy --keep-on-cpu: what it refuses, and that every command takes such a package.

usage: keep_on_cpu_test.py TENONNX SOURCE_DIR
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TENONNX = str(pathlib.Path(sys.argv[1]).resolve())
MODELS = pathlib.Path(sys.argv[2]).resolve() / "examples/models"
MODEL = str(MODELS / "shapes_deimv2_fragile.onnx")
LAYER = "/model/model/decoder/layers.{}/{}"
# What `probe` names on the simulated device: the operand is beyond what it holds.
PRODUCTS = [LAYER.format(i, "mlp/down_proj/MatMul") for i in range(4)]


class KeepOnCpu(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def run_command(self, *arguments):
        return subprocess.run([TENONNX, *arguments], capture_output=True, text=True, check=False,
                              timeout=300, cwd=self.scratch)

    def succeeds(self, *arguments):
        result = self.run_command(*arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def list_of(self, *lines, end="\n"):
        (self.scratch / "kept.txt").write_bytes("".join(line + end for line in lines).encode())
        return "kept.txt"

    def deploy(self, *more, target="sim-htp"):
        return ("deploy", MODEL, "--target", target, "-o", "out", *more)

    def refuses(self, arguments, *parts):
        result = self.run_command(*arguments)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        for part in parts:
            self.assertIn(part, " ".join(result.stderr.split()))
        self.assertEqual(list(self.scratch.glob("out*")), [], "something was left behind")

    def test_every_command_takes_the_package(self):
        self.succeeds("data", "shapes", "--count", "2", "-o", "images")
        kept = self.list_of("# of probe", "", *PRODUCTS, end="\r\n")
        result = json.loads(self.succeeds(
            *self.deploy("--keep-on-cpu", kept, "--images", "images", "--json")))
        segments = result["manifest"]["segments"]
        self.assertEqual([s["name"] for s in segments], [f"segment_{i}" for i in range(9)])
        self.assertEqual([s["executor"] for s in segments], (["sim:htp-v73", "cpu"] * 5)[:9])
        self.assertEqual(result["verdict"], "PASS")
        self.assertEqual(result["manifest"]["settings"]["kept_on_cpu"], PRODUCTS)
        self.assertTrue(any("9 segments; " in note and "in a run" in note
                            for note in result["notes"]), result["notes"])
        crossing = {b["source"]: b["name"] for b in result["boundaries"]}
        for i in range(4):
            self.assertIn(LAYER.format(i, "mlp/Mul_output_0"), crossing)
            self.assertIn(PRODUCTS[i] + "_output_0", crossing)
        # The rows of the decoder are those that TopK chose; the encoder's features are gated.
        tensors = result["manifest"]["summary"]["tensors"]
        gated = {c["name"].split(":")[0] for c in result["manifest"]["checks"]}
        for source, name in crossing.items():
            if name in tensors and tensors[name].get("selected"):
                self.assertIn("/decoder/", source)
                self.assertNotIn(name, gated)
        self.assertNotIn("selected",
                         tensors[crossing[LAYER.format(1, "encoder_attn/Reshape_3_output_0")]])
        self.succeeds("verify", "out", "--images", "images", "--model", MODEL)
        self.succeeds("verify", "out", "--images", "images")
        self.succeeds("run", "out", "images", "-o", "detections")
        timed = json.loads(self.succeeds("bench", "out", "--runs", "5", "--json"))
        self.assertEqual(len(timed["forward"]["segments"]), 9)

    def test_a_cut_beside_it(self):
        self.refuses(self.deploy("--keep-on-cpu", self.list_of(*PRODUCTS), "--cut", "auto"),
                     "--cut auto", "--keep-on-cpu kept.txt", "give one of them")

    def test_bad_lists(self):
        self.refuses(self.deploy("--keep-on-cpu", ""), "it names no file")
        self.refuses(self.deploy("--keep-on-cpu", "absent.txt"), "absent.txt")
        self.refuses(self.deploy("--keep-on-cpu", self.list_of("# nothing")), "names no node")
        self.refuses(self.deploy("--keep-on-cpu", self.list_of(PRODUCTS[0], PRODUCTS[1] + "s")),
                     "kept.txt, line 2", PRODUCTS[1] + "s", f"near it: '{PRODUCTS[1]}'")

    def test_a_target_without_a_device(self):
        self.refuses(self.deploy("--keep-on-cpu", self.list_of(*PRODUCTS), target="cpu"),
                     "target 'cpu'", "has no device")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
