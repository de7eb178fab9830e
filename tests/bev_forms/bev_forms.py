#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Every form of AffineGrid + GridSample from [1,256,16,44] to 200 x 200, beside the original.

usage: bev_forms.py TENONNX OPS_LIBRARY [--seconds S] [--check] [--json FILE]

Time: one thread, CPU time of the process, forms in turn for S seconds (default 60) after two runs each; minimum and
median. Error: against the original, on values of normal noise (rms 1) and on the same smoothed twice by 1 2 1 along
rows and columns and scaled back to rms 1, as an image of features is smooth. --check: one run each; fails where a form
that its class says is equal is not.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

IMAGES, CHANNELS, HEIGHT, WIDTH, SIDE = 1, 256, 16, 44, 200
SHAPE, OUT = [IMAGES, CHANNELS, HEIGHT, WIDTH], [IMAGES, CHANNELS, SIDE, SIDE]
TURNED = [[0.9, 0.2, 0.05], [-0.15, 0.8, 0.1]]
STRAIGHT = [[1, 0, 0], [0, 1, 0]]

# Name: model, passes with options, largest error on noise that the class allows (None: another model). Coordinates
# are float32 of up to 44 pixels: three roundings of 2^-19 each move a value of rms 1, up to 5, by 1e-4 at most.
EQUAL = 1e-4
FORMS = {
    "turned": {
        "original": (),
        "grid folded, GridSample": ("fold_constants",),
        "Gather, columns": ("fold_static_grid", "form=columns"),
        "Gather, rows": ("fold_static_grid", "form=rows"),
        "StaticSample, taps": ("fold_static_grid", "form=operator"),
        "StaticSample, int16": ("quantize_static_grid", "storage=int16"),
        "StaticSample, blocks": ("quantize_static_grid", "storage=blocks"),
        "Gather of a dynamic grid, rows": ("replace_grid_sample_gather", "form=rows"),
        "Gather of a dynamic grid, elements": ("replace_grid_sample_gather", "form=elements"),
        "DeformConv": ("replace_grid_sample_deform_conv", "padding=allow"),
        "Int8LutGridSample": ("replace_grid_sample_int8_lut", "range=5.5"),
        "discrete, nearest": ("replace_grid_sample_discrete", "formula=nearest"),
        "discrete, historical": ("replace_grid_sample_discrete", "formula=historical"),
    },
    "straight, zeros": {
        "original": (),
        "two MatMul": ("replace_grid_sample_resize", "form=auto"),
        "Gather, columns": ("fold_static_grid", "form=columns"),
    },
    "straight, border": {
        "original": (),
        "Resize": ("replace_grid_sample_resize", "form=resize"),
        "two MatMul": ("replace_grid_sample_resize", "form=matmul"),
        "Gather, columns": ("fold_static_grid", "form=columns"),
    },
}
OTHER_MODEL = {"StaticSample, int16", "StaticSample, blocks", "Int8LutGridSample", "discrete, nearest",
               "discrete, historical"}


def article_model(theta, padding):
    nodes = [helper.make_node("AffineGrid", ["theta", "size"], ["grid"], name="affine", align_corners=0),
             helper.make_node("GridSample", ["value", "grid"], ["out"], name="sample", mode="linear",
                              padding_mode=padding, align_corners=0)]
    graph = helper.make_graph(
        nodes, "bev", [helper.make_tensor_value_info("value", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, OUT)],
        [numpy_helper.from_array(np.array([theta], np.float32), "theta"),
         numpy_helper.from_array(np.array(OUT, np.int64), "size")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    made.ir_version = 9
    return made


def values():
    noise = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    smooth = noise
    for _ in range(2):
        for axis in (2, 3):
            smooth = (np.roll(smooth, 1, axis) + 2 * smooth + np.roll(smooth, -1, axis)) / 4
    return {"noise": noise, "smooth": np.ascontiguousarray(smooth / smooth.std())}


def rewritten(tenonnx, source, passes, folder, index):
    """The model with the passes run, or why there is none."""
    if not passes:
        return source
    out = folder / f"{index}.onnx"
    options = [part for option in passes[1:] for part in ("--option", f"{passes[0]}.{option}")]
    command = [tenonnx, "rewrite", source, "--pass", passes[0], *options, "--proof", "none", "-o", out, "--force"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if not out.exists() or "DECLINED" in done.stdout + done.stderr:
        return (done.stdout + done.stderr).strip()
    return out


class Form:
    def __init__(self, path, ops, feed):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.register_custom_ops_library(str(ops))
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.out = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(OUT, np.float32))
        self.binding.bind_ortvalue_output("out", self.out)
        self.give(feed)
        self.times = []

    def give(self, feed):
        self.feed = onnxruntime.OrtValue.ortvalue_from_numpy(feed)
        self.binding.bind_ortvalue_input("value", self.feed)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def result(self, feed):
        self.give(feed)
        self.run()
        return self.out.numpy().copy()


def measure(forms, seconds):
    for form in forms.values():
        form.run()
        form.run()
    end = time.monotonic() + seconds
    while time.monotonic() < end or not all(form.times for form in forms.values()):
        for form in forms.values():
            start = time.process_time_ns()
            form.run()
            form.times.append((time.process_time_ns() - start) / 1e6)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenonnx", type=pathlib.Path)
    parser.add_argument("ops", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    feeds, rows, wrong = values(), [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number, (group, wanted) in enumerate(FORMS.items()):
            source = folder / f"group{number}.onnx"
            theta = TURNED if group == "turned" else STRAIGHT
            onnx.save(article_model(theta, "border" if "border" in group else "zeros"), str(source))
            forms = {}
            for index, (label, passes) in enumerate(wanted.items()):
                path = rewritten(given.tenonnx.resolve(), source, passes, folder, f"{number}_{index}")
                if isinstance(path, str):
                    wrong.append(f"{group}, {label}: not written: {path}")
                    continue
                forms[label] = Form(path, given.ops.resolve(), feeds["noise"])
            reference = {kind: forms["original"].result(feed) for kind, feed in feeds.items()}
            errors = {}
            for label, form in forms.items():
                off = {kind: form.result(feed) - reference[kind] for kind, feed in feeds.items()}
                errors[label] = {kind: {"max": float(np.abs(e).max()), "rms": float(np.sqrt((e * e).mean()))}
                                 for kind, e in off.items()}
                if label not in OTHER_MODEL and errors[label]["noise"]["max"] > EQUAL:
                    wrong.append(f"{group}, {label}: largest error {errors[label]['noise']['max']:.3g}")
                if label in OTHER_MODEL and errors[label]["noise"]["rms"] > 1:
                    wrong.append(f"{group}, {label}: rms error {errors[label]['noise']['rms']:.3g} of values of rms 1")
            if not given.check:
                measure(forms, given.seconds)
            print(f"\n{group}: onnxruntime {onnxruntime.__version__}, 1 thread\n"
                  f"  {'form':36} {'min':>8} {'median':>8}  runs   times {'max error: noise':>18} {'smooth':>9}")
            for label, form in forms.items():
                t = sorted(form.times) or [0.0]
                first = min(forms["original"].times or [0.0])
                e = errors[label]
                print(f"  {label:36} {t[0]:8.1f} {statistics.median(t):8.1f} {len(form.times):5} "
                      f"{first / t[0] if t[0] else 0:7.2f} {e['noise']['max']:18.2g} {e['smooth']['max']:9.2g}")
                rows.append({"group": group, "form": label, "min_ms": t[0], "median_ms": statistics.median(t),
                             "runs": len(form.times), "errors": e})
    if given.json:
        given.json.write_text(json.dumps({"onnxruntime": onnxruntime.__version__, "rows": rows}, indent=2) + "\n")
    for line in wrong:
        print("wrong:", line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
