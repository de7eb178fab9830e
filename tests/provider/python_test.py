#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: python_test.py ROOT LIBRARY

The simulated provider in Python's onnxruntime (1.29 and newer), which knows nothing of tenonnx.
"""
import json
import pathlib
import sys
import tempfile
import unittest

import numpy as np
import onnxruntime as ort

if len(sys.argv) < 3:
    sys.exit(__doc__)
ROOT = pathlib.Path(sys.argv.pop(1))
LIBRARY = str(pathlib.Path(sys.argv.pop(1)).resolve())  # a relative one is looked for beside onnxruntime
MODEL = ROOT / "examples/models/shapes_deimv2.onnx"
PROVIDER = "SimNpuExecutionProvider"


class Provider(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        ort.register_execution_provider_library("simnpu.virtual", LIBRARY)
        cls.devices = [d for d in ort.get_ep_devices() if d.ep_name == PROVIDER]
        cls.folder = tempfile.TemporaryDirectory()
        cls.work = pathlib.Path(cls.folder.name)
        random = np.random.default_rng(1)
        cls.feeds = {"images": random.random((1, 3, 160, 160), np.float32),
                     "orig_target_sizes": np.array([[320, 320]], np.int64)}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def session(self, model=MODEL, options=(), entries=()):
        so = ort.SessionOptions()
        so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        so.enable_profiling = True
        so.profile_file_prefix = str(self.work / "profile")
        for key, value in dict(entries).items():
            so.add_session_config_entry(key, value)
        so.add_provider_for_devices(self.devices, dict(options))
        return ort.InferenceSession(str(model), so)

    def places(self, session):
        """provider: number of kernels that ran there"""
        events = json.loads(pathlib.Path(session.end_profiling()).read_text())
        counts = {}
        for event in events:
            if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
                provider = event["args"]["provider"]
                counts[provider] = counts.get(provider, 0) + 1
        return counts

    def test_it_is_one_device(self):
        self.assertEqual(len(self.devices), 1)
        self.assertEqual(self.devices[0].device.type, ort.OrtHardwareDeviceType.NPU)

    def test_it_takes_nodes_and_computes_in_float16(self):
        cpu = ort.InferenceSession(str(MODEL), providers=["CPUExecutionProvider"])
        expected = dict(zip([o.name for o in cpu.get_outputs()], cpu.run(None, self.feeds)))
        session = self.session()
        got = dict(zip([o.name for o in session.get_outputs()], session.run(None, self.feeds)))
        self.assertGreater(self.places(session)[PROVIDER], 0)
        self.assertFalse(np.array_equal(expected["scores"], got["scores"]))
        # On noise the order of scores is that of rounding; the best score is not.
        self.assertLess(abs(expected["scores"].max() - got["scores"].max()), 0.05)

    def test_a_wrong_chip_is_silent(self):
        session = self.session(options={"soc": "v68"})
        self.assertIn(PROVIDER, session.get_providers())
        session.run(None, self.feeds)
        self.assertEqual(set(self.places(session)), {"CPUExecutionProvider"})

    def test_fallback_is_refused(self):
        with self.assertRaisesRegex(Exception, "fallback"):
            self.session(entries={"session.disable_cpu_ep_fallback": "1"})

    def test_an_option_that_cannot_be_read(self):
        try:
            session = self.session(options={"device": "no-such"})
        except Exception as error:
            self.assertIn("no device 'no-such'", str(error))
        else:  # onnxruntime 1.29 prints the error and takes the CPU alone
            self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])

    def test_a_context_reloads(self):
        for embed in ("0", "1"):
            path = self.work / f"context_{embed}.onnx"
            made = self.session(entries={"ep.context_enable": "1", "ep.context_embed_mode": embed,
                                         "ep.context_file_path": str(path)})
            expected = made.run(None, self.feeds)
            self.assertEqual((self.work / "context_0_1.bin").exists(), True)
            reloaded = self.session(path)
            for a, b in zip(expected, reloaded.run(None, self.feeds)):
                np.testing.assert_array_equal(a, b)
            self.assertGreater(self.places(reloaded)[PROVIDER], 0)

    def test_a_context_without_its_binary(self):
        path = self.work / "dropped.onnx"
        self.session(options={"drop_binary": "2"},
                     entries={"ep.context_enable": "1", "ep.context_file_path": str(path)})
        with self.assertRaisesRegex(Exception, "dropped_2.bin"):
            self.session(path)


if __name__ == "__main__":
    unittest.main()
