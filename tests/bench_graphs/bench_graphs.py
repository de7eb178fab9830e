#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many times as long ONNX Runtime's default takes on a graph as on the same graph rewritten.

usage: bench_graphs.py TENONNX OPS_LIBRARY MODEL... [--rounds N] [--whole] [--json FILE] [--check]

Of each detector: what 'tenonnx split --at auto' cuts off as its decoder, with its features of a random image;
--whole: the model itself too. Of a graph without such a cut: the graph. Rewritten two ways, by passes that prove
themselves; all sessions live in one process and run in turns, 1 thread: the ratio of processor times in each of N rounds,
its median and quartiles. A MODEL that is not there is left out and said to be. --check: exit code 1 where outputs do not agree.
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

FUSED = ["replace_ms_deform_attn", "fuse_sampling_locations"]
WAYS = {"fused": FUSED, "rows first and fused": ["hoist_gather", *FUSED]}


def tenonnx(command, *arguments):
    """Whether it wrote what it should; a refusal is printed, not raised."""
    done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode in (0, 3):
        return True
    print(f"  {' '.join(map(str, arguments[:2]))}: {' '.join(done.stderr.split())[-300:]}", file=sys.stderr)
    return False


def session(path, library):
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.register_custom_ops_library(str(library))
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def random_inputs(graph):
    generator = np.random.default_rng(1)
    made = {}
    for one in graph.get_inputs():
        shape = [n if isinstance(n, int) else 1 for n in one.shape]
        if one.type == "tensor(int64)":  # the size of an image
            made[one.name] = np.full(shape, 640, np.int64)
        else:
            made[one.name] = generator.random(shape, np.float32)
    return made


def processor_times(sessions, inputs, rounds):
    """[rounds, sessions] in seconds, the sessions in turns."""
    feeds = [{i.name: inputs[i.name] for i in s.get_inputs()} for s in sessions]
    times = np.zeros([rounds + 1, len(sessions)])
    for row in times:
        for at, (one, feed) in enumerate(zip(sessions, feeds)):
            begin = time.process_time()
            one.run(None, feed)
            row[at] = time.process_time() - begin
    return times[1:]  # the first run allocates


def largest_difference(a, b):
    """Of the outputs that are no detections (those come in the order of nearly equal scores), over their range."""
    worst = 0.0
    for left, right in zip(a, b):
        if left.shape != right.shape:
            return float("inf")
        if np.issubdtype(left.dtype, np.floating) and left.size:
            left, right = np.sort(left, axis=None), np.sort(right, axis=None)
            worst = max(worst, float(np.max(np.abs(left - right)) / max(np.max(np.abs(left)), 1e-6)))
    return worst


def rewrite(arguments, model, passes, out):
    wanted = [flag for one in passes for flag in ("--pass", one)]
    return tenonnx(arguments.tenonnx, "rewrite", model, *wanted, "--proof", "whole", "-o", out)


def measure(arguments, name, model, inputs, work, ways, rounds):
    files, names = [model], ["original"]
    for way in ways:
        out = work / f"{name.rsplit(' ', 1)[-1]}_{way.replace(' ', '_')}.onnx"
        if rewrite(arguments, model, WAYS[way], out):
            files.append(out)
            names.append(way)
    sessions = [session(file, arguments.library) for file in files]
    inputs = inputs or random_inputs(sessions[0])
    results = [s.run(None, {i.name: inputs[i.name] for i in s.get_inputs()}) for s in sessions]
    times = processor_times(sessions, inputs, rounds)
    row = {"graph": name, "rounds": rounds, "original_ms": round(float(np.median(times[:, 0])) * 1e3, 1), "times": {},
           "difference": {}}
    for at in range(1, len(names)):
        # Neighbours in time: what else the machine does moves both.
        low, middle, high = np.quantile(times[:, 0] / times[:, at], [0.25, 0.5, 0.75])
        row["times"][names[at]] = [round(float(n), 2) for n in (middle, low, high)]
        row["difference"][names[at]] = largest_difference(results[0], results[at])
    print(f"{name}: {row['original_ms']} ms; " +
          ", ".join(f"{way} {m} ({l} to {h})" for way, (m, l, h) in row["times"].items()), flush=True)
    return row


def rows_of(arguments, model):
    name = model.stem
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        if tenonnx(arguments.tenonnx, "split", model, "--at", "auto", "-o", work / "parts"):
            encoder = session(work / "parts/encoder.onnx", arguments.library)
            inputs = random_inputs(encoder)
            features = dict(zip([o.name for o in encoder.get_outputs()], encoder.run(None, inputs)))
            decoder = session(work / "parts/decoder.onnx", arguments.library)
            given = {**random_inputs(decoder), **inputs, **features}
            del encoder, decoder
            yield measure(arguments, f"{name}, decoder", work / "parts/decoder.onnx", given, work, WAYS,
                          arguments.rounds)
            if arguments.whole:
                yield measure(arguments, f"{name}, whole model", model, None, work, ["rows first and fused"],
                              max(3, arguments.rounds // 4))
        else:
            yield measure(arguments, name, model, None, work, ["fused"], arguments.rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenonnx")
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    rows = []
    for model in arguments.models:
        if not model.exists():
            print(f"{model.name}: not there, left out", file=sys.stderr)
            continue
        rows.extend(rows_of(arguments, model))
    if arguments.json:
        processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line), "")
        record = {"schema_version": 1, "date": time.strftime("%Y-%m-%d"), "onnxruntime": ort.__version__,
                  "machine": f"{platform.machine()}, {processor}", "load_before": load, "threads": 1,
                  "what": "ratios of processor times of the same round, in turns in one process: median, quartiles", "rows": rows}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")
    # Sums in another order: 1e-7 of the range each, over some hundred of them and six layers.
    wrong = [row["graph"] for row in rows if any(not d < 1e-3 for d in row["difference"].values())]
    if wrong:
        print(f"outputs differ: {', '.join(wrong)}", file=sys.stderr)
    return 1 if arguments.check and (wrong or not rows or not all(row["times"] for row in rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
