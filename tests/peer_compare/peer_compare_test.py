#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: peer_compare_test.py TENONNX MODEL...

`tenonnx compare --tensors all` against Polygraphy (two ONNX Runtime runners, every tensor marked as an
output, all compared), on the same model and the same inputs, in one run.

The graph is compared as it is, constants not folded, so that both sides have the same tensors.

Scope: a process of its own, from the path of the model and of the inputs (.npz) to the verdict. Wall time
and the peak of the resident memory (ru_maxrss of that child). Python's start and its imports are measured
apart and taken off the peer's time. Nothing is cached between runs (--cache none). The two take turns; the
minimum of all rounds is compared, since interference only adds; rounds end after ENOUGH seconds.

Fails where our time or our memory is not less than the peer's, where a side does not end well, where
models that are the same do not pass, or where we compare less than 99 % of the tensors that the peer does (it
takes in those that nothing uses).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROUNDS = 3
ENOUGH = 300  # seconds: no further round after these
TIMEOUT = 1200  # seconds

IMPORTS = """
import sys
import numpy as np
from polygraphy import constants
from polygraphy.backend.onnx import BytesFromOnnx, ModifyOutputs, OnnxFromPath
from polygraphy.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from polygraphy.comparator import Comparator, CompareFunc
from polygraphy.logger import G_LOGGER
import onnx, onnxruntime
"""

# What `polygraphy run MODEL --onnxrt --onnxrt --onnx-outputs mark all` does, on given inputs.
POLYGRAPHY = IMPORTS + """
G_LOGGER.module_severity = G_LOGGER.ERROR  # its log of every tensor costs it time
feed = dict(np.load(sys.argv[2]))
marked = BytesFromOnnx(ModifyOutputs(OnnxFromPath(sys.argv[1]), outputs=constants.MARK_ALL))
runners = [OnnxrtRunner(SessionFromOnnx(marked), name=name) for name in ("a", "b")]
results = Comparator.run(runners, data_loader=[feed])
compared = Comparator.compare_accuracy(results, compare_func=CompareFunc.simple(atol=1e-3, rtol=1e-3))
matched = list(compared[0].values())[0][0]
print(len(matched), sum(bool(one) for one in matched.values()))
"""


def measured(command, log):
    """(seconds, MiB of the largest process of it, exit code)"""
    begin = time.perf_counter()
    with open(log, "wb") as out, open(f"{log}.errors", "wb") as errors:
        child = subprocess.Popen(command, stdout=out, stderr=errors)
        deadline = begin + TIMEOUT
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.perf_counter() > deadline:
                child.kill()
                os.wait4(child.pid, 0)
                return None, None, f"not done within {TIMEOUT} s"
            time.sleep(0.005)
    child.returncode = os.waitstatus_to_exitcode(status)
    return time.perf_counter() - begin, usage.ru_maxrss / 1024, child.returncode


# In a process of its own: what this one ever held resident would count as its children's peak, since they
# begin as its copies.
INPUTS = """
import sys
import numpy as np
import onnx

random = np.random.default_rng(0)
graph = onnx.load(sys.argv[1], load_external_data=False).graph
constants = {one.name for one in graph.initializer}
feed = {}
for value in graph.input:
    if value.name in constants:
        continue
    tensor = value.type.tensor_type
    shape = [d.dim_value or 1 for d in tensor.shape.dim]
    if tensor.elem_type == onnx.TensorProto.FLOAT:
        feed[value.name] = random.random(shape, dtype=np.float32)
    else:
        feed[value.name] = np.full(shape, 640, dtype=np.int64)
np.savez(sys.argv[2], **feed)
"""


def tail(path):
    return pathlib.Path(path).read_text(errors="replace")[-600:]


def judge(tenonnx, model):
    failures, best = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        inputs, log = folder / "inputs.npz", folder / "log"
        subprocess.run([sys.executable, "-c", INPUTS, str(model), str(inputs)], check=True)
        commands = {
            "tenonnx": [tenonnx, "--quiet", "--json", "compare", model, "--inputs", inputs,
                        "--tensors", "all", "--no-fold-constants", "--cache", "none"],
            "polygraphy": [sys.executable, "-c", POLYGRAPHY, model, inputs],
            "imports": [sys.executable, "-c", IMPORTS],
        }
        compared = {}
        begin, rounds = time.perf_counter(), 0
        while rounds < ROUNDS and (rounds == 0 or time.perf_counter() - begin < ENOUGH):
            rounds += 1
            for tool, command in commands.items():
                seconds, mib, code = measured(list(map(str, command)), log)
                if code not in (0, 1, 3) or (tool != "tenonnx" and code != 0):
                    return [f"{tool}: {code}: {tail(log)} {tail(f'{log}.errors')}"]
                if tool == "tenonnx":
                    result = json.loads(log.read_text())
                    compared[tool] = result["coverage"]["compared"]
                    verdict = result["verdict"]
                elif tool == "polygraphy":
                    compared[tool] = int(tail(log).split()[-2])
                old = best.get(tool, (seconds, mib))
                best[tool] = (min(old[0], seconds), min(old[1], mib))
    ours, theirs = best["tenonnx"], best["polygraphy"]
    without_imports = theirs[0] - best["imports"][0]
    print(f"  the minimum of {rounds} rounds")
    print(f"  tenonnx     {ours[0]:7.2f} s {ours[1]:7.0f} MiB, {compared['tenonnx']} tensors, {verdict}")
    print(
        f"  polygraphy  {without_imports:7.2f} s {theirs[1]:7.0f} MiB, {compared['polygraphy']} tensors"
        f" (and {best['imports'][0]:.2f} s of imports)",
        flush=True,
    )
    if ours[0] >= without_imports:
        failures.append(f"{ours[0]:.2f} s, less than {without_imports:.2f} s expected")
    if ours[1] >= theirs[1]:
        failures.append(f"{ours[1]:.0f} MiB, less than {theirs[1]:.0f} MiB expected")
    if verdict != "PASS":
        failures.append(f"{verdict}, PASS expected")
    if compared["tenonnx"] < 0.99 * compared["polygraphy"]:
        failures.append(f"{compared['tenonnx']} tensors, polygraphy {compared['polygraphy']}")
    return failures


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    failed = False
    for model in map(pathlib.Path, sys.argv[2:]):
        if not model.exists():
            print(f"no {model.name}: tools/models/export_models.py makes the exports")
            sys.exit(77)  # skipped
        print(model.name, flush=True)
        for failure in judge(sys.argv[1], model):
            failed = True
            print(f"  FAIL: {failure}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
