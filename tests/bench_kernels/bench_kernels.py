#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: bench_kernels.py OPS_LIBRARY BOUND_LIBRARY [--budget SECONDS] [--only TEXT] [--torch SITE] [--json FILE]

tenonnx::MSDeformAttn against what else this Python has: ONNX Runtime and OpenVINO on the exported graph,
PyTorch with grid_sample. All take turns in this process, in a new order every round, and the minimum counts,
since interference only adds. 1 thread by the processor time of the process, 2 threads by wall time. A figure
is given only where the results agree: largest difference at most 1e-4 (coordinates in float32 are exact
to 2e-5 of a pixel at 80 pixels, values differ by up to 8 between pixels, weights sum to 1). Of the bound
counts what it takes to read as many chunks at random from the same values, 1 thread. Sampling points lie
closer together than random chunks, so more than 100 per cent is possible: no upper limit where points are local
(encoder) or where the values are larger than the caches.
"""
import argparse
import ctypes
import importlib
import json
import os
import platform
import random
import sys
import time

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import numpy as np
import onnxruntime as ort

import attention

TOLERANCE = 1e-4


def ort_call(model, arrays, threads, library=None):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    if library:
        options.register_custom_ops_library(library)
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    values = {k: ort.OrtValue.ortvalue_from_numpy(v) for k, v in arrays.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    output = ort.OrtValue.ortvalue_from_numpy(np.zeros(session.get_outputs()[0].shape, np.float32))
    binding.bind_ortvalue_output("out", output)
    return (lambda: session.run_with_iobinding(binding)), (lambda: output.numpy()), values


def openvino_call(ov, model, arrays, threads):
    core = ov.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for name, value in arrays.items():
        request.set_tensor(name, ov.Tensor(value, shared_memory=True))
    return request.infer, lambda: request.get_output_tensor(0).data, arrays


def torch_call(torch, arrays, levels, points, threads):
    torch.set_num_threads(threads)
    value, locations, weights = (torch.from_numpy(v) for v in arrays.values())
    batch, _, heads, d = value.shape
    queries, result = locations.shape[1], {}

    @torch.no_grad()
    def call():
        parts = value.split([h * w for h, w in levels], dim=1)
        grids = (2 * locations - 1).transpose(1, 2).flatten(0, 1).split(list(points), dim=2)
        sampled = torch.cat([torch.nn.functional.grid_sample(
            part.flatten(2).transpose(1, 2).reshape(batch * heads, d, h, w), grid, align_corners=False)
            for part, grid, (h, w) in zip(parts, grids, levels)], dim=-1)
        scale = weights.transpose(1, 2).reshape(batch * heads, 1, queries, -1)
        out = (sampled * scale).sum(-1).view(batch, heads * d, queries)
        result["out"] = out.transpose(1, 2).contiguous()
    return call, lambda: result["out"].numpy(), arrays


def minima(calls, clock, budget, gap):
    times, order = {name: [] for name in calls}, list(calls)
    for call in list(calls.values()) * 2:
        call()
    begin, rounds = time.monotonic(), 0
    while rounds < 7 or (time.monotonic() - begin < budget and rounds < 200):
        random.shuffle(order)
        for name in order:
            time.sleep(gap)  # the other pools' threads stop spinning
            start = clock()
            calls[name]()
            times[name].append((clock() - start) / 1e6)
        rounds += 1
    return {name: {"min": min(t), "median": float(np.median(t))} for name, t in times.items()}, rounds


def bound_call(library, value, chunks):
    d, rng = value.shape[-1], np.random.default_rng(1)
    offsets = (rng.integers(0, value.size // d, chunks) * d).astype(np.int32)
    weights = np.ones(chunks, np.float32)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (value, offsets, weights)]

    def call(keep=(value, offsets, weights)):
        library.tenonnx_gather_bound(*pointers, ctypes.c_int64(chunks), ctypes.c_int64(d))
    return call


def sampled_pixels(locations, levels, points):
    """How many neighbours lie inside of their level: these are read."""
    size = np.repeat(np.array([(w, h) for h, w in levels]), points, axis=0)
    low = np.floor(locations * size - 0.5)
    inside = [((low + k >= 0) & (low + k < size)).astype(np.int64) for k in (0, 1)]
    return int(((inside[0] + inside[1]).prod(-1)).sum())


def measure(name, threads, ops, bound, budget, others):
    kind = dict(attention.CASES[name])
    levels, points = kind.setdefault("levels", attention.THREE), kind.setdefault("points", (4, 4, 4))
    arrays = dict(zip(("value", "locations", "weights"), attention.data(**kind)))
    graph = attention.exported(arrays, levels, points)
    made = {"tenonnx": ort_call(attention.ours(arrays, levels, points), arrays, threads, ops),
            "ONNX Runtime": ort_call(graph, arrays, threads)}
    if others.get("openvino"):
        made["OpenVINO"] = openvino_call(others["openvino"], graph, arrays, threads)
    if others.get("torch"):
        made["PyTorch"] = torch_call(others["torch"], arrays, levels, points, threads)
    for call, _, _ in made.values():
        call()
    expected, refused = made["tenonnx"][1](), {}
    for peer in list(made):
        worst = float(np.abs(made[peer][1]() - expected).max())
        if not worst <= TOLERANCE:
            refused[peer] = f"differs by {worst:.2g}, allowed {TOLERANCE:g}"
            del made[peer]
    calls = {peer: call for peer, (call, _, _) in made.items()}
    if threads == 1:
        calls["bound"] = bound_call(bound, made["tenonnx"][2]["value"].numpy(),
                                    sampled_pixels(arrays["locations"], levels, points) // 4 * 4)
    clock, gap = (time.process_time_ns, 0) if threads == 1 else (time.perf_counter_ns, 0.004)
    milliseconds, rounds = minima(calls, clock, budget, gap)
    return {"case": name, "threads": threads, "rounds": rounds, "ms": milliseconds, "refused": refused}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ops")
    parser.add_argument("bound")
    parser.add_argument("--budget", type=float, default=8)
    parser.add_argument("--only", default="")
    parser.add_argument("--torch", default="")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    if options.torch:
        sys.path.append(options.torch)  # behind this Python's own packages
    bound = ctypes.CDLL(os.path.abspath(options.bound))
    bound.tenonnx_gather_bound.restype = ctypes.c_float
    bound.tenonnx_instruction_set.restype = ctypes.c_char_p
    versions, others, missing = {"ONNX Runtime": ort.__version__}, {}, []
    for module in ("openvino", "torch"):
        try:
            others[module] = importlib.import_module(module)
            versions[module] = others[module].__version__
        except ImportError:
            missing.append(module)
    report = {"schema_version": 1, "processor": platform.processor() or platform.machine(),
              "cores": os.cpu_count(), "instruction_set": bound.tenonnx_instruction_set().decode(),
              "versions": versions, "missing": missing, "tolerance": TOLERANCE, "results": []}
    print(f"{report['instruction_set']}, {versions}, missing: {missing or 'none'}")
    for threads in (1, 2):
        for name in attention.CASES:
            if options.only not in name:
                continue
            result = measure(name, threads, os.path.abspath(options.ops), bound, options.budget, others)
            report["results"].append(result)
            own = result["ms"]["tenonnx"]["min"]
            text = ", ".join(f"{peer} {100 * t['min'] / own:.0f} % of the time" if peer == "bound" else
                             f"{peer} x{t['min'] / own:.2f}" for peer, t in result["ms"].items() if peer != "tenonnx")
            print(f"{name}, {threads} thread(s), {result['rounds']} rounds: {own:.3f} ms; {text}"
                  + "".join(f"; {peer} refused: {why}" for peer, why in result["refused"].items()), flush=True)
            if options.json:
                with open(options.json, "w") as file:
                    json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
