#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: peer_optimize_test.py TENONNX MODEL-OR-DIRECTORY...

`tenonnx optimize` with its default passes against onnxsim and onnxslim, on the same files, in one run.

Scope of a time: a process of its own from the path of the model to the written file. Python's start and
its imports are measured apart and taken off, so that they do not count against the peers; so is the start
of tenonnx (`--version`). The three take
turns; the minimum of all rounds is compared, since interference only adds. A peer that takes twice as long as the
other is timed once: the faster one decides.

  unchecked  --proof none           against simplify(check_n=0) and slim()
  checked    --proof whole, random  against simplify(check_n=1) and slim(model_check=True)

Fails, for a model, where
- our nodes are more than those of the better peer whose file is not smaller than ours,
- the time is more than half of the faster peer's, unchecked or checked,
- our result does not compute what the model does although the peers' results do (ONNX Runtime, one random
  input, bodies of the outputs compared by their largest difference and to a cosine of 0.999).
A peer that breaks a model, or does not end within TIMEOUT, is reported and left out.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROUNDS = 3
TIMEOUT = 1200  # seconds

PEERS = {
    "onnxsim": """
import onnx, onnxsim, sys
model, ok = onnxsim.simplify(onnx.load(sys.argv[1]), check_n={check})
assert ok
onnx.save(model, sys.argv[2])
""",
    "onnxslim": """
import onnx, onnxslim, sys
onnx.save(onnxslim.slim(onnx.load(sys.argv[1]), model_check={check_bool}), sys.argv[2])
""",
    "imports onnxsim": "import onnx, onnxsim",
    "imports onnxslim": "import onnx, onnxslim",
}


def timed(command):
    begin = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return None, f"not done within {TIMEOUT} s"
    if done.returncode not in (0, 3):  # 3: random inputs settle nothing behind a selection
        return None, (done.stderr or done.stdout)[-500:]
    return time.perf_counter() - begin, ""


def nodes(path):
    import onnx

    def count(graph):
        return sum(
            1 + sum(count(a.g) for a in node.attribute if a.HasField("g")) for node in graph.node
        )

    return count(onnx.load(path, load_external_data=False).graph)


def same(before, after):
    """The largest 1 - cosine over the outputs, on one random input."""
    import numpy as np
    import onnxruntime as ort

    runs = []
    for path in (before, after):
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        random = np.random.default_rng(0)
        feed = {}
        for value in session.get_inputs():
            shape = [d if isinstance(d, int) else 1 for d in value.shape]
            feed[value.name] = (
                random.random(shape, dtype=np.float32)
                if value.type == "tensor(float)"
                else np.full(shape, 640, dtype=np.int64)
            )
        runs.append(session.run(None, feed))
    worst = 0.0
    for a, b in zip(*runs):
        a, b = (np.sort(x.astype(np.float64).ravel()) for x in (a, b))  # rows may change places
        norm = np.linalg.norm(a) * np.linalg.norm(b)
        worst = max(worst, 1 - float(a @ b / norm) if norm else float(np.abs(a - b).max()))
    return worst


def measure(tenonnx, model, folder):
    commands = {}
    for checked in (False, True):
        label = "checked" if checked else "unchecked"
        commands["tenonnx", label] = [
            tenonnx, "optimize", model, "-o", folder / "tenonnx.onnx", "--force", "--quiet",
            "--proof", "whole" if checked else "none",
        ]
        for peer in ("onnxsim", "onnxslim"):
            script = PEERS[peer].format(check=int(checked), check_bool=checked)
            commands[peer, label] = [
                sys.executable, "-c", script, model, folder / f"{peer}.onnx"]
    commands["tenonnx", "imports"] = [tenonnx, "--version"]
    for peer in ("onnxsim", "onnxslim"):
        commands[peer, "imports"] = [sys.executable, "-c", PEERS[f"imports {peer}"]]
    best, problems = {}, {}

    def decides(tool, label):
        others = [best.get((other, label)) for other in ("onnxsim", "onnxslim") if other != tool]
        return tool == "tenonnx" or (tool, label) not in best or any(
            other is None or best[tool, label] < 2 * other for other in others)

    for _ in range(ROUNDS):
        for key, command in commands.items():
            if key in problems or not decides(*key):
                continue
            seconds, problem = timed(command)
            if seconds is None:
                problems[key] = problem
            else:
                best[key] = min(best.get(key, seconds), seconds)
    return best, problems


def judge(tenonnx, model):
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        best, problems = measure(tenonnx, model, folder)
        for (tool, label), problem in problems.items():
            print(f"  {tool} {label}: {problem}")
            if tool == "tenonnx":
                failures.append(f"{tool} {label}: {problem}")
        figures = {}
        for tool in ("tenonnx", "onnxsim", "onnxslim"):
            path = folder / f"{tool}.onnx"
            if not path.exists():
                continue
            figures[tool] = {"nodes": nodes(path), "bytes": path.stat().st_size}
            try:
                figures[tool]["difference"] = same(model, path)
            except Exception as error:  # the peer's result does not even load
                figures[tool]["difference"] = float("inf")
                print(f"  {tool}: its result does not run: {str(error)[:300]}")
            for label in ("unchecked", "checked"):
                if (tool, label) in best:
                    imports = best.get((tool, "imports"), 0)
                    figures[tool][label] = best[tool, label] - imports
        for tool, row in figures.items():
            print(f"  {tool:9}", json.dumps(row))
        ours = figures.get("tenonnx")
        if ours is None:
            return failures
        peers = {t: r for t, r in figures.items() if t != "tenonnx" and r["difference"] < 1e-3}
        if ours["difference"] >= 1e-3 and peers:
            failures.append(f"our result differs by {ours['difference']}, a peer's does not")
        for tool, row in peers.items():
            if row["bytes"] <= ours["bytes"] and row["nodes"] < ours["nodes"]:
                failures.append(f"{ours['nodes']} nodes, {tool} {row['nodes']} in a smaller file")
        for label in ("unchecked", "checked"):
            others = [row[label] for row in peers.values() if label in row]
            if others and label in ours and ours[label] > 0.5 * min(others):
                failures.append(f"{label}: {ours[label]:.2f} s, half of {min(others):.2f} s allowed")
    return failures


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    models = []
    for argument in map(pathlib.Path, sys.argv[2:]):
        models += sorted(argument.glob("*.onnx")) if argument.is_dir() else [argument]
    if not models:
        print("no models: tools/models/export_models.py makes the exports")
        sys.exit(77)  # skipped
    failed = False
    for model in models:
        print(f"{model.name}: {nodes(model)} nodes, {model.stat().st_size} bytes", flush=True)
        for failure in judge(sys.argv[1], model):
            failed = True
            print(f"  FAIL: {failure}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
