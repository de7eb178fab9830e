#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""An executor for tenonnx in one file: "exec:python3 examples/exec/run_model.py"

tenonnx calls it with one more argument, a directory that holds model.onnx and inputs.npz; it writes
outputs.npz and placement.json there. What it prints is kept in log.txt beside them. It runs the
model with ONNX Runtime where Python has it, else with onnx's reference implementation (slow, and
exact to the letter of the standard). For a board, replace run(): copy the two files there, convert,
run, copy the result back. What the directory holds from an earlier run of the same model (a converted
file, say) is still there on the next.

Protocol: docs/reference/executors.md
"""
import json
import pathlib
import sys

import numpy as np


def run_onnxruntime(model, inputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # Unchanged, so that placement.json names the nodes that the model has.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_profiling = True
    options.profile_file_prefix = str(model.with_name("profile"))
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(names, inputs)))
    # The profile says where each node ran; the list of providers of a session does not.
    profile = pathlib.Path(session.end_profiling())
    nodes = {}
    for event in json.loads(profile.read_text()):
        arguments = event.get("args", {})
        if event.get("cat") == "Node" and "provider" in arguments:
            name = event["name"].removesuffix("_kernel_time")
            nodes[name] = {"node": name, "op_type": arguments["op_name"],
                           "provider": arguments["provider"], "duration_us": int(event["dur"])}
    profile.unlink()
    return outputs, list(nodes.values())


def run_reference(model, inputs):
    import onnx
    from onnx.reference import ReferenceEvaluator

    proto = onnx.load(model)
    evaluator = ReferenceEvaluator(proto)
    names = [output.name for output in proto.graph.output]
    outputs = dict(zip(names, (np.asarray(value) for value in evaluator.run(names, inputs))))
    nodes = [{"node": node.name or node.output[0], "op_type": node.op_type,
              "provider": "onnx.reference"} for node in proto.graph.node]
    return outputs, nodes


def run(model, inputs):
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        return run_reference(model, inputs)
    return run_onnxruntime(model, inputs)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[1])
    with np.load(directory / "inputs.npz") as file:
        inputs = {name: file[name] for name in file.files}
    outputs, nodes = run(directory / "model.onnx", inputs)
    # Arrays under the names of the model's outputs, in its dtypes and shapes.
    np.savez(directory / "outputs.npz", **outputs)
    (directory / "placement.json").write_text(json.dumps({"schema_version": 1, "nodes": nodes}))
    print(f"{len(outputs)} outputs, {len(nodes)} nodes")


if __name__ == "__main__":
    main()
