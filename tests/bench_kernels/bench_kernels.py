#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: bench_kernels.py OPS_LIBRARY BOUNDS_LIBRARY [--budget SECONDS] [--only TEXT] [--threads N]
                        [--torch SITE] [--json FILE] [--load AVERAGE]

The operators of libtenonnx_ops.so against what else this Python has: ONNX Runtime, OpenVINO and MNN on the
graph of standard operators, PyTorch with its own functions. --only: the cases whose name holds TEXT; --budget:
of each case. All take turns in this process, in a new order every round, and the minimum counts, since
interference only adds. Inputs are read once before each call. 1 thread by the processor time of the process, 2 threads by wall time. A figure is given
only where the results agree (each case states how far and why). The bound is the least time in which this
machine reads what the operator samples, from the same addresses in the same order, or writes the output;
random gather: reads as many chunks at random addresses in the same values: bounds.cc. Exits with 1 where an operator of ours fails or disagrees with every peer.
"""
import argparse
import json
import math
import os
import pathlib
import random
import sys
import time

import numpy as np

import attention
import bounds
import constant_grids
import grid_sample
import peers
from case import aligned_copy

OWN = "tenonnx"
METHOD = ("turns in one process, shuffled every round, inputs read before each call; ms: minimum and median; 1 thread: "
          "processor time of the process, 2 threads: wall time")
QUIET = 0.5  # load average above which figures are not to be kept


def all_cases():
    made = {f"MSDeformAttn, {name}": lambda kind=kind: attention.make(**kind)
            for name, kind in attention.CASES.items()}
    made |= {f"GridSample, {name}": lambda kind=kind: grid_sample.make(**kind)
             for name, kind in grid_sample.CASES.items()}
    return made | constant_grids.cases()


def touch(arrays):
    """Reads a byte of each line of the cache, so that every call begins with its inputs there, whoever ran
    before it."""
    for array in arrays:
        array.reshape(-1).view(np.uint8)[::64].max()


def minima(calls, clock, budget, gap):
    """calls: {name: (call, its inputs)}"""
    times, order = {name: [] for name in calls}, list(calls)
    for call, _ in list(calls.values()) * 2:
        call()
    begin, rounds = time.monotonic(), 0
    while rounds < 7 or (time.monotonic() - begin < budget and rounds < 200):
        random.shuffle(order)
        for name in order:
            time.sleep(gap)  # the other pools' threads stop spinning
            call, inputs = calls[name]
            touch(inputs)
            start = clock()
            call()
            times[name].append((clock() - start) / 1e6)
        rounds += 1
    return {name: {"min": min(t), "median": float(np.median(t))} for name, t in times.items()}, rounds


def prepare(case, threads, ops, modules):
    """({name: Prepared}, {name: why it is left out})"""
    arrays = {name: aligned_copy(a) for name, a in case.arrays.items()}
    others = {name: aligned_copy(a) for name, a in case.peer_arrays.items()} if case.peer_arrays else arrays
    makers = {
        OWN: lambda: peers.prepare_ort(case.ours, arrays, threads, ops, case.output_offset),
        "ONNX Runtime": lambda: peers.prepare_ort(case.peer, others, threads, None, case.output_offset)}
    if "OpenVINO" in modules:
        makers["OpenVINO"] = lambda: peers.prepare_openvino(modules["OpenVINO"], case.peer, others, threads)
    if "PyTorch" in modules:
        makers["PyTorch"] = lambda: peers.prepare_torch(modules["PyTorch"], case.torch, others, threads)
    if "MNN" in modules:
        makers["MNN"] = lambda: peers.prepare_mnn(modules["MNN"], case.peer, others, threads, case.output)
    made, refused = {}, {}
    for name, make in makers.items():
        try:
            made[name] = make()
            made[name].call()
        except Exception as error:  # whatever a runtime throws
            made.pop(name, None)
            lines = str(error).strip().splitlines()
            refused[name] = "cannot run it: " + (lines[-1][:200] if lines else type(error).__name__)
    if OWN in made:
        own = made[OWN].result()
        for name in [n for n in made if n != OWN]:
            result = made[name].result()
            worst = float("nan")
            if result.shape == own.shape:
                worst = float(np.abs(result.astype(np.float32) - own.astype(np.float32)).max())
            if not worst <= case.tolerance:
                refused[name] = f"differs by {worst:.2g}, allowed {case.tolerance:.2g}"
                del made[name]
    return made, refused, arrays


def bounds_of(milliseconds):
    """{kind: least time and the operator's share of it}: bounds of one kind are the same work in several
    ways, of which the fastest counts."""
    found = {}
    for name, times in milliseconds.items():
        if name.startswith("bound: "):
            kind = name.removeprefix("bound: ").split()[0].rstrip(",")
            found[kind] = min(times["min"], found.get(kind, math.inf))
    return {kind: {"of": kind, "ms": ms, "share": ms / milliseconds[OWN]["min"]} for kind, ms in found.items()}


def bound_of(kinds):
    """What no kernel that samples these addresses can undercut: the fastest of the others."""
    return min((b for kind, b in kinds.items() if kind != "gather"), key=lambda b: b["ms"], default=None)


def measure(name, make, threads, ops, library, budget, modules):
    case = make()
    made, refused, arrays = prepare(case, threads, ops, modules)
    result = {"case": name, "threads": threads, "refused": refused}
    if OWN not in made or len(made) == 1:
        return result
    calls = {peer: (one.call, one.arrays.values()) for peer, one in made.items()}
    if threads == 1 and case.bounds:
        calls |= {bound: (call, arrays.values()) for bound, call in case.bounds(library, arrays).items()}
    clock, gap = (time.process_time_ns, 0) if threads == 1 else (time.perf_counter_ns, 0.004)
    milliseconds, rounds = minima(calls, clock, budget, gap)
    kinds = bounds_of(milliseconds)
    return result | {"rounds": rounds, "bound": bound_of(kinds), "gather": kinds.get("gather"), "ms": milliseconds}


def text_of(result):
    text = f"{result['case']}, {result['threads']} thread(s)"
    if "ms" in result:
        own = result["ms"][OWN]["min"]
        text += f", {result['rounds']} rounds: {own:.3f} ms"
        text += "".join(f", {peer} x{t['min'] / own:.2f}" for peer, t in result["ms"].items()
                        if peer != OWN and not peer.startswith("bound: "))
        if result["bound"]:
            text += f", {100 * result['bound']['share']:.0f} % of the bound ({result['bound']['of']})"
        if result["gather"]:
            text += f", {100 * result['gather']['share']:.0f} % of random gather"
    return text + "".join(f"; {peer} refused: {why}" for peer, why in result["refused"].items())


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return os.uname().machine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops")
    parser.add_argument("bounds")
    parser.add_argument("--budget", type=float, default=2.5)
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, choices=(1, 2))
    parser.add_argument("--torch", default="")
    parser.add_argument("--load", type=float, default=os.getloadavg()[0], help="that before the first run")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    library = bounds.Library(options.bounds)
    modules, versions = peers.available(options.torch)
    report = {"schema_version": 1, "date": time.strftime("%Y-%m-%d", time.gmtime()), "processor": processor(),
              "cores": os.cpu_count(), "instruction_set": library.instruction_set(),
              "load": options.load, "method": METHOD, "versions": versions, "results": []}
    print(f"{report['processor']}, {report['cores']} cores, {report['instruction_set']}; {versions}")
    if report["load"] > QUIET:
        print(f"The load of this machine is {report['load']}: something else runs, and times are not to be kept.",
              file=sys.stderr)
    failed = False
    for threads in (options.threads,) if options.threads else (1, 2):
        for name, make in all_cases().items():
            if options.only not in name:
                continue
            result = measure(name, make, threads, os.path.abspath(options.ops), library, options.budget, modules)
            failed |= "ms" not in result
            report["results"].append(result)
            print(text_of(result), flush=True)
            if options.json:
                with open(options.json, "w") as file:
                    json.dump(report, file, indent=1)
    return 1 if failed or not report["results"] else 0


if __name__ == "__main__":
    sys.exit(main())
