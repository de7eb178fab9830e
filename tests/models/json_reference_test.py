#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: json_reference_test.py ROOT TENONNX

docs/reference/json.md names exactly the fields that each command prints with --json.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

if len(sys.argv) < 3:
    sys.exit(__doc__)
ROOT, TENONNX = pathlib.Path(sys.argv.pop(1)), sys.argv.pop(1)
MODEL = ROOT / "examples/models/shapes_deimv2.onnx"


def documented_fields(text):
    """{command: names in the first column of the table below '<!-- keys: command, command -->'}."""
    found = {}
    for match in re.finditer(r"<!-- keys: ([\w ,-]+) -->\n((?:\|.*\n)+)", text):
        rows = match[2].splitlines()[2:]
        names = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in rows]
        for command in match[1].split(", "):
            found[command] = {name for row in names for name in row}
    return found


class JsonReference(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.documented = documented_fields((ROOT / "docs/reference/json.md").read_text())
        cls.folder = tempfile.TemporaryDirectory()
        cls.work = pathlib.Path(cls.folder.name)
        # The two that the others need.
        cls.printed = {}
        cls.call("data shapes", "data", "shapes", "--count", "2", "--seed", "1000000", "-o", "images")
        cls.call("deploy", "deploy", MODEL, "--target", "cpu", "--images", "images", "-o", "package")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def call(cls, name, *arguments, codes=(0,)):
        command = [TENONNX, *map(str, arguments), "--json", "--quiet"]
        done = subprocess.run(command, cwd=cls.work, capture_output=True, text=True)
        if done.returncode not in codes:
            raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stderr}")
        cls.printed[name] = json.loads(done.stdout)

    def compare(self, name, optional=()):
        printed = self.printed[name]
        self.assertEqual(printed["schema_version"], 1)
        documented = self.documented[name] - set(optional)
        self.assertEqual(set(printed) - set(optional), documented)

    def test_data(self):
        # The table of data has its fields in one row.
        self.compare("data shapes")

    def test_deploy(self):
        self.compare("deploy")
        check = self.printed["deploy"]["manifest"]["checks"][0]
        self.assertLessEqual(
            {"name", "value", "comparison", "limit", "limit_origin", "verdict"}, set(check)
        )

    def test_inspect(self):
        self.call("inspect", "inspect", MODEL)
        self.compare("inspect")

    def test_optimize(self):
        arguments = ("--only", "eliminate_identities", "--images", "images")
        self.call("optimize", "optimize", MODEL, "-o", "smaller.onnx", *arguments)
        self.compare("optimize")
        written = json.loads((self.work / "smaller.passes.json").read_text())
        self.assertEqual(set(written), set(self.printed["optimize"]))

    def test_rewrite(self):
        arguments = ("--pass", "fold_constants,eliminate_noop_casts")
        self.call("rewrite", "rewrite", MODEL, "-o", "rewritten.onnx", *arguments)
        self.compare("rewrite")

    def test_split(self):
        cut = json.loads(MODEL.with_suffix(".contract.json").read_text())["cut"]
        self.call("split", "split", MODEL, "--at", ",".join(cut), "-o", "parts")
        self.compare("split")
        self.assertEqual(
            set(self.printed["split"]["boundaries"][0]),
            {"name", "source", "dtype", "shape", "bytes"},
        )
        described = {"tensors", "width", "elements", "bytes", "nodes_before", "nodes_behind",
                     "sampling_behind", "selections_behind", "normalizations_behind",
                     "layers_behind"}
        self.assertEqual(set(self.printed["split"]["cut"]),
                         described | {"origin", "kind", "reason", "alternatives"})
        self.call("split auto", "split", MODEL, "--at", "auto", "-o", "automatic")
        automatic = self.printed["split auto"]
        self.assertEqual([b["source"] for b in automatic["boundaries"]], cut)
        self.assertEqual(automatic["cut"]["origin"], "auto")
        self.call("split list", "split", MODEL, "--list")
        self.compare("split list")
        marked = [c for c in self.printed["split list"]["candidates"] if c["mark"] == "auto"]
        self.assertEqual([t["name"] for t in marked[0]["tensors"]], cut)
        self.assertEqual(set(marked[0]), described | {"mark", "kind", "reason"})

    def test_compare(self):
        self.call("compare", "compare", MODEL, "--on", "sim:htp-v73", "--images", "images",
                  "--max-images", "1", "--tensors", "boundary", "--cache", "none", codes=(0, 1, 3))
        self.compare("compare")
        compared = [t for t in self.printed["compare"]["tensors"] if t["state"] == "compared"]
        self.assertLessEqual({"name", "ratio", "check", "figures"}, set(compared[0]))

    def test_probe(self):
        self.call("probe", "probe", MODEL, "--op", "Softmax", "--on", "sim:htp-v73", "--images",
                  "images", "--max-images", "1")
        self.compare("probe")
        output = self.printed["probe"]["pieces"][0]["outputs"][0]
        self.assertLessEqual({"tensor", "ratio", "distribution", "softmax_sum_error"}, set(output))

    def test_device_agree(self):
        self.call("device agree", "device", "agree", "--on", "sim:htp-v73", "--against", "cpu", "--only",
                  "MatMul,Relu")
        self.compare("device agree")
        cases = {case["case"]: case for case in self.printed["device agree"]["cases"]
                 if case["range"] == "normal"}
        # One rounding of exact halves of a step at most; the float32 sums of float16 products are exact
        # to much less than a step.
        self.assertGreater(cases["Relu"]["share"], 0.999)
        self.assertGreater(cases["MatMul, K = 16"]["share"], 0.5)

    def test_device_show(self):
        self.call("device show", "device", "show", "htp-v73")
        self.compare("device show")
        agreement = self.printed["device show"]["agreement"]
        self.assertGreater(agreement["operators"]["MatMul"]["share"], 0.99)

    def test_inject(self):
        self.call("inject", "inject", MODEL, "--at", "/model/model/decoder/layers.0/mlp/Mul_output_0",
                  "--error", "scale:2", "--images", "images")
        self.compare("inject", optional=("least_moving_dose",))
        self.assertEqual([d["dose"] for d in self.printed["inject"]["doses"]], [0.25, 0.5, 1, 2, 4])
        self.assertIn("moves", self.printed["inject"]["doses"][0]["task"])

    def test_locate(self):
        fragile = MODEL.with_name("shapes_deimv2_fragile.onnx")
        self.call("locate", "locate", fragile, "--on", "sim:htp-v73", "--images", "images",
                  "--max-images", "1", "--max-cuts", "1", "--budget", "16", "--cache", "none",
                  codes=(1,))
        self.compare("locate")
        printed = self.printed["locate"]
        self.assertLessEqual(printed["trials"]["used"], 16)
        self.assertEqual({s["kind"] for s in printed["suspects"]}, {"range"})
        # The four products before the decoder's down-projections.
        products = {s.get("value_made_by") for s in printed["suspects"][:4]}
        self.assertEqual(products, {f"Mul '/model/model/decoder/layers.{i}/mlp/Mul'" for i in range(4)})
        self.assertEqual(len(printed["keep"]["nodes"]), 4)
        self.assertTrue(printed["keep"]["minimal"])

    def test_placement(self):
        self.call("placement", "placement", MODEL, "--on", "provider:simnpu", "--allow-fallback")
        self.compare("placement")
        printed = self.printed["placement"]
        self.assertEqual(set(printed["partitions"][0]), {"name", "place", "nodes", "duration_us"})
        self.assertEqual(set(printed["boundaries"][0]), {"from", "to", "tensors", "bytes"})
        self.assertLessEqual({"node", "op_type", "place"}, set(printed["nodes"][0]))

    def test_verify(self):
        self.call("verify", "verify", "package")
        self.compare("verify", optional=("summary",))
        self.call("verify", "verify", "package", "--images", "images", "--model", MODEL)
        self.compare("verify")

    def test_run(self):
        self.call("run", "run", "package", "images", "-o", "out")
        self.compare("run")
        image = self.printed["run"]["images"][0]
        self.assertEqual(
            set(image), {"name", "image_id", "width", "height", "drawn", "detections"}
        )
        self.assertEqual(set(image["detections"][0]), {"label", "class", "score", "box"})

    def test_bench(self):
        self.call("bench", "bench", "package", "--runs", "3", "--warm-up", "1")
        self.compare("bench")
        forward = self.printed["bench"]["forward"]
        self.assertEqual(
            set(forward), {"scope", "first_run", "latency", "segments", "boundaries"}
        )
        self.assertEqual(set(forward["latency"]), {"runs", "min", "p50", "p95", "p99"})

    def test_grid_from_camera(self):
        camera = {"K": [[560, 0, 352], [0, 560, 140], [0, 0, 1]],
                  "R": [[0, -1, 0], [0, 0, -1], [1, 0, 0]], "t": [0, 1.5, 0]}
        (self.work / "camera.json").write_text(json.dumps(camera))
        self.call("grid-from-camera", "grid-from-camera", "camera.json", "--image", "704x256",
                  "--values", "44x16", "--x", "4:54", "--y", "25:-25", "-o", "grid.npz")
        self.compare("grid-from-camera")
        storages = {s["storage"]: s for s in self.printed["grid-from-camera"]["storages"]}
        self.assertEqual(storages["float32"]["bytes"], 200 * 200 * 8)

    def test_doctor(self):
        self.call("doctor", "doctor", codes=(0, 1))
        self.compare("doctor")

    def test_every_command_is_documented(self):
        table = (ROOT / "cli/commands.inc").read_text()
        commands = {c.replace("_", "-") for c in re.findall(r"^TENONNX_COMMAND\((\w+),", table, re.M)}
        self.assertEqual({name.split()[0] for name in self.documented}, commands)

    def test_readme_lists_every_command_once(self):
        table = (ROOT / "cli/commands.inc").read_text()
        commands = [c.replace("_", "-") for c in re.findall(r"^TENONNX_COMMAND\((\w+),", table, re.M)]
        readme = (ROOT / "README.md").read_text()
        section = readme.split("\n## Commands\n")[1].split("\n## ")[0]
        listed = [name.split()[0] for name in re.findall(r"^\| `([\w -]+)` \|", section, re.M)]
        self.assertEqual(sorted(listed), sorted(commands))


if __name__ == "__main__":
    unittest.main()
