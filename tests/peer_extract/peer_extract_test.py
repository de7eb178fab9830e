# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: peer_extract_test.py EXTRACT_PEER MODEL CONTRACT

Extraction against onnx.utils.extract_model, both in one run of this script, on both halves of a
model at the cut that its contract names.

Scope of a time: from the path of the model to the written file, inside a process that has loaded
its code: Python's start and its imports are not counted against the peer. Ours includes checking
the model and flushing the written file to the disk; the peer's default includes its checker,
"unchecked" is without it (its shape inference must stay on, because a raw export records no type for
the tensors at the cut). The two take turns, so that both see the same machine; the
minimum of all runs is compared, because interference only ever adds. Memory: the peak of a process
that extracts once.

Fails where ours is not faster than the peer's default, where the peak exceeds 100 MB + 2.5 x the
file, or where the two parts differ: the same nodes by type and by the tensors that they make.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import onnx
from onnx import utils  # not part of "import onnx"

ROUNDS = 4
RUNS_PER_ROUND = 3


def ours(program, runs, model, output, inputs, outputs):
    result = subprocess.run([program, str(runs), model, output, ",".join(inputs), ",".join(outputs)],
                            capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"extract_peer failed: {result.stderr}")
    return json.loads(result.stdout)


def peer(model, output, inputs, outputs, check):
    begin = time.perf_counter()
    utils.extract_model(model, output, inputs, outputs, check_model=check)
    return (time.perf_counter() - begin) * 1000


def nodes(path):
    graph = onnx.load(path, load_external_data=False).graph
    return sorted((node.op_type, tuple(node.output)) for node in graph.node)


def halves(model, contract):
    graph = onnx.load(model, load_external_data=False).graph
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in stored]
    outputs = [value.name for value in graph.output]
    image = contract["image"]["name"]
    others = [name for name in inputs if name != image]
    return {"encoder": ([image], contract["cut"]), "decoder": (contract["cut"] + others, outputs)}


def main():
    program, model, contract_path = sys.argv[1:]
    if not os.path.exists(model):
        sys.exit(f"'{model}' does not exist. Make it with tools/models/export_models.py (its README "
                 "says how), or set TENONNX_EXPORTS to the folder that holds it.")
    with open(contract_path, encoding="utf-8") as file:
        contract = json.load(file)
    size = os.path.getsize(model)
    limit = 100e6 + 2.5 * size
    failed = []
    print(f"{os.path.basename(model)}: {size / 1e6:.1f} MB, onnx {onnx.__version__}, minimum of "
          f"{ROUNDS * RUNS_PER_ROUND} runs, milliseconds")
    with tempfile.TemporaryDirectory() as work:
        for name, (inputs, outputs) in halves(model, contract).items():
            path = {who: os.path.join(work, f"{name}_{who}.onnx") for who in ("ours", "peer")}
            times = {"ours": [], "peer": [], "peer, unchecked": []}
            for _ in range(ROUNDS):
                times["ours"] += ours(program, RUNS_PER_ROUND, model, path["ours"], inputs,
                                      outputs)["milliseconds"]
                for _ in range(RUNS_PER_ROUND):
                    times["peer, unchecked"].append(peer(model, path["peer"], inputs, outputs, False))
                    times["peer"].append(peer(model, path["peer"], inputs, outputs, True))
            best = {who: min(series) for who, series in times.items()}
            peak = ours(program, 1, model, path["ours"], inputs, outputs)["peak_bytes"]
            print(f"  {name}: ours {best['ours']:.1f}, peer {best['peer']:.1f} (ratio "
                  f"{best['peer'] / best['ours']:.2f}), peer unchecked {best['peer, unchecked']:.1f} (ratio "
                  f"{best['peer, unchecked'] / best['ours']:.2f}); peak {peak / 1e6:.1f} MB of "
                  f"{limit / 1e6:.1f}")
            if best["ours"] >= best["peer"]:
                failed.append(f"{name}: ours takes {best['ours']:.1f} ms, the peer "
                              f"{best['peer']:.1f} ms")
            if not 0 < peak <= limit:
                failed.append(f"{name}: peak {peak} bytes, allowed {limit:.0f}")
            if nodes(path["ours"]) != nodes(path["peer"]):
                failed.append(f"{name}: the parts differ: {len(nodes(path['ours']))} nodes against "
                              f"{len(nodes(path['peer']))}")
            onnx.checker.check_model(path["ours"])
    for line in failed:
        print("FAILED " + line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
