#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: record_torch_test.py ROOT TENONNX

tools/record_torch.py records what ONNX Runtime computes: for a small module with everything that
makes names difficult, and for a full-size detector. Needs PyTorch (tools/models/setup_torch_cpu.sh).
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np
import onnx
import onnxruntime as ort
import torch
from torch import nn

if len(sys.argv) < 3:
    sys.exit(__doc__)
TENONNX = sys.argv.pop(2)
ROOT = pathlib.Path(sys.argv.pop(1))
SCRIPT = ROOT / "tools/record_torch.py"
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/models")]
from record_torch import Graph, Recorder, fold_scope  # noqa: E402

warnings.filterwarnings("ignore")


class Block(nn.Module):
    """A folded BatchNormalization, an activation in place that is called twice, two results."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.act = nn.ReLU(inplace=True)
        self.tail = nn.Sequential(nn.Conv2d(4, 4, 1), nn.Sigmoid())

    def forward(self, x):
        x = self.act(self.norm(self.conv(x)))
        y = self.act(self.tail(x) - 0.5)
        return y, x.mean((2, 3))


class Toy(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.conv_1 = nn.Conv2d(4, 3, 1)  # a name that looks like a second call
        self.idle = nn.Identity()

    def forward(self, x):
        y, m = self.blocks[0](x)
        z, n = self.blocks[1](self.idle(self.conv_1(y)))
        return z * 2, m + n


def run_all(model, inputs, names):
    """Tensors of a model, by ONNX Runtime without fusions."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    outputs = {value.name for value in model.graph.output}
    for name in names:
        if name not in outputs:
            model.graph.output.add().name = name
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options)
    return dict(zip(names, session.run(names, inputs)))


class RecordTorch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_recorded(self, model, recording, case, tolerance):
        """Every recorded tensor is ONNX Runtime's to `tolerance` (relative L2); returns how many."""
        names = json.loads((recording / "names.json").read_text())["tensors"]
        arrays = np.load(recording / f"{case}.npz")
        outputs = [value.name for value in model.graph.output]
        inputs = {value.name: arrays[value.name] for value in model.graph.input}
        for name, value in run_all(model, inputs, [*outputs, *names]).items():
            recorded = arrays[names.get(name, name)]
            self.assertEqual((recorded.dtype, recorded.shape), (value.dtype, value.shape), name)
            if value.dtype.kind == "f":
                error = np.linalg.norm((recorded - value).astype(np.float64))
                self.assertLessEqual(error, tolerance * np.linalg.norm(recorded), name)
        return names

    def toy(self):
        torch.manual_seed(1)
        toy = Toy().eval()
        for module in toy.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.uniform_(-1, 1)
                module.running_var.uniform_(0.5, 2)
        path = self.folder / "toy.onnx"
        torch.onnx.export(toy, (torch.zeros(1, 3, 8, 8),), str(path), input_names=["x"],
                          output_names=["z", "s"], opset_version=17, dynamo=False)
        return toy, path

    def test_difficult_names(self):
        toy, path = self.toy()
        model = onnx.load(path)
        recorder = Recorder(toy, model)
        x = torch.rand(1, 3, 8, 8)
        recorder.record({"x": x}, "one")
        recorder.record({"x": x * 2}, "two")
        recorder.save(self.folder / "out")
        # Single precision, sums of at most 36 terms: 1e-5 is some 40 roundings.
        for case in ("one", "two"):
            names = self.assert_recorded(model, self.folder / "out", case, 1e-5)
        keys = set(names.values())
        for i in (0, 1):
            # The convolution's tensor holds what the folded normalisation returned.
            self.assertIn(f"blocks.{i}.conv", keys)
            self.assertIn(f"blocks.{i}.act", keys)
            self.assertIn(f"blocks.{i}.tail.0", keys)
            self.assertIn(f"blocks.{i}:1", keys)
        self.assertIn("blocks.0.act#1", keys)
        self.assertIn("conv_1", keys)
        self.assertIn("idle", recorder.left_out)

    def test_scopes(self):
        modules = dict.fromkeys(
            ["a", "a.b", "layer2", "layer2.0", "layer2.0.relu", "conv_1", "l.0", "l.0.n"])
        for scope, expected in (("/a/b", ("a.b", 0)), ("/layer2/layer2.0/relu_1", ("layer2.0.relu", 1)),
                                ("/conv_1", ("conv_1", 0)), ("/l.0_2/n", ("l.0.n", 2)),
                                ("/l.0_2/n_1", None), ("/c", None), ("/a/c", None)):
            self.assertEqual(fold_scope(scope, modules), expected, scope)

    def test_errors(self):
        toy, path = self.toy()
        np.savez(self.folder / "wrong.npz", y=np.zeros((1, 3, 8, 8), np.float32))
        (self.folder / "toy.py").write_text("import torch\nnet = torch.nn.ReLU()\nnone = 3\n")

        def run(*arguments):
            done = subprocess.run([sys.executable, SCRIPT, "--model", path, "-o", self.folder / "out",
                                   *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertFalse((self.folder / "out").exists(), "an error must not write")
            return done.stderr

        net = f"{self.folder / 'toy.py'}:net"
        self.assertIn("the model takes ['x']",
                      run("--module", net, "--inputs", self.folder / "wrong.npz"))
        np.savez(self.folder / "x.npz", x=np.zeros((1, 3, 8, 8), np.float32))
        self.assertIn("is it the module that was exported",
                      run("--module", net, "--inputs", self.folder / "x.npz"))
        self.assertIn("no torch.nn.Module", run("--module", net[:-3] + "none", "--inputs",
                                                self.folder / "x.npz"))
        self.assertIn("FILE.py:EXPRESSION", run("--module", "nothing", "--inputs",
                                                self.folder / "x.npz"))

    def test_a_detector(self):
        from detectors import DETECTORS
        from export_models import HELD_OUT_SEED, build_deploy_form, export, sample_images

        detector = DETECTORS["deimv2_n"]
        image = sample_images(1, HELD_OUT_SEED, detector)
        size = torch.tensor([[detector.size, detector.size]])
        path = self.folder / "deimv2_n.onnx"
        export(build_deploy_form(detector, detector.seed), (image, size), "ts", path)
        np.savez(self.folder / "image.npz", images=image.numpy(), orig_target_sizes=size.numpy())
        build = 'build_deploy_form(DETECTORS["deimv2_n"], DETECTORS["deimv2_n"].seed)'
        done = subprocess.run(
            [sys.executable, SCRIPT, "--module", f"{ROOT}/tools/models/export_models.py:{build}",
             "--model", path, "--inputs", self.folder / "image.npz", "-o", self.folder / "out"],
            capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        # PyTorch and ONNX Runtime sum in other orders; the worst tensor was at 6e-5 when this was
        # written, and a tensor under a wrong name is at 0.1 and more.
        names = self.assert_recorded(onnx.load(path), self.folder / "out", "image", 1e-3)
        self.assertGreater(len(names), 250)

        # The recording stands on one side of a comparison, on its own inputs.
        done = subprocess.run(
            [TENONNX, "compare", path, "--ref", f"files:{self.folder / 'out'}", "--on", "cpu",
             "--inputs", self.folder / "out/image.npz", "--tensors", "all", "--cache", "none",
             "--json"], capture_output=True, text=True)
        # Most tensors were not recorded: nothing is wrong, and not everything is known.
        self.assertEqual(done.returncode, 3, done.stderr)
        checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertEqual(checks["tensors beyond their limit"]["verdict"], "PASS")


if __name__ == "__main__":
    unittest.main()
