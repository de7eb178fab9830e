#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Record what a PyTorch module computes, under the tensor names of its ONNX export.

    record_torch.py --module FILE.py:EXPRESSION --model MODEL.onnx --inputs A.npz [B.npz ...] -o DIR

EXPRESSION is evaluated in FILE.py and gives the module that was exported (or a function that returns
it), with its weights, on the CPU. Each .npz of inputs holds one array an input of the model, under
its name; the module gets them in the model's order. DIR then is a recording for the executor
`files:DIR` (docs/reference/executors.md): one .npz a case with inputs, outputs and what each
submodule returned, and names.json, which leads from the model's names to the modules' paths. To
compare:

    tenonnx compare MODEL.onnx --ref files:DIR --on cpu --inputs A.npz --tensors all

How a submodule finds its tensor: the TorchScript exporter (torch.onnx.export, dynamo=False) names
nodes by scope, /decoder/layers.0/norm1/Add_1 for a node of decoder.layers[0].norm1. The tensor of a
module is the one that leaves its scope with the dtype and shape that the module returned. Where
there is none or several, where a module was called in more ways than the names tell, the module is
left out; --verbose says which and why. A BatchNormalization that the exporter folded into the
convolution before it has no scope: its output is what that convolution's tensor holds.

As a library: recorder = Recorder(module, onnx_model); recorder.record(inputs, "case");
recorder.save(DIR).
"""
from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import re
import runpy
import sys

import numpy as np
import onnx
import torch

# Exporters fold these into the operator before them.
FOLDED = (torch.nn.modules.batchnorm._BatchNorm,)


def fold_scope(scope: str, modules) -> tuple[str, int] | None:
    """'/layer2/layer2.0/relu_1' -> ('layer2.0.relu', 1): path of the module, which call of it.

    None where the scope is no module's, or where more than one part of it carries a number of a
    call: how these count together is the exporter's secret.
    """
    path, call, calls = "", 0, 0
    parts: list[str] = []
    for part in scope.strip("/").split("/"):
        # Children of a Sequential repeat its name: layer2, layer2.0.
        if parts and part.startswith(parts[-1].split("#")[0] + "."):
            parts.pop()
        number = re.fullmatch(r"(.*)_(\d+)", part)
        path = ".".join([*parts, part])
        if path not in modules and number and ".".join([*parts, number[1]]) in modules:
            part = number[1]
            call, calls = int(number[2]), calls + 1
            path = ".".join([*parts, part])
        parts.append(part)
    return (path, call) if path in modules and calls <= 1 else None


class Graph:
    """Scopes of a model's nodes, and the tensors that leave them."""

    def __init__(self, model: onnx.ModelProto):
        self.inputs = [value.name for value in model.graph.input]
        constants = {tensor.name for tensor in model.graph.initializer}
        self.inputs = [name for name in self.inputs if name not in constants]
        self.outputs = [value.name for value in model.graph.output]
        self.nodes = list(model.graph.node)
        self.users = collections.defaultdict(list)
        for index, node in enumerate(self.nodes):
            for name in self._used(node):
                self.users[name].append(index)
        try:
            model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        except Exception:  # what cannot be inferred is not known
            pass
        self.types = {}
        for value in [*model.graph.value_info, *model.graph.output]:
            tensor = value.type.tensor_type
            shape = None
            if tensor.HasField("shape"):
                shape = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
            self.types[value.name] = (tensor.elem_type, shape)
        self.members = collections.defaultdict(list)  # scope -> indices of its nodes, inner ones too
        for index, node in enumerate(self.nodes):
            scope = node.name.rpartition("/")[0]
            while scope:
                self.members[scope].append(index)
                scope = scope.rpartition("/")[0]

    @staticmethod
    def _used(node):
        names = list(node.input)
        for attribute in node.attribute:
            for graph in [attribute.g, *attribute.graphs]:
                for inner in graph.node:
                    names += Graph._used(inner)
        return names

    def leaving(self, scope: str) -> list[str]:
        """Tensors made in a scope and used outside of it, in the graph's order."""
        inside = set(self.members[scope])
        names = []
        for index in self.members[scope]:
            for name in self.nodes[index].output:
                if name in self.outputs or any(user not in inside for user in self.users[name]):
                    names.append(name)
        return names

    def can_be(self, name: str, array: np.ndarray) -> bool:
        dtype, shape = self.types.get(name, (0, None))
        if dtype and onnx.helper.tensor_dtype_to_np_dtype(dtype) != array.dtype:
            return False
        return shape is None or (
            len(shape) == array.ndim
            and all(a is None or a == b for a, b in zip(shape, array.shape)))

    def must_be(self, name: str, array: np.ndarray) -> bool:
        """can_be, and dtype and shape are known: needed where there is a choice."""
        return self.can_be(name, array) and self.types.get(name, (0, None))[1] == list(array.shape)


def tensors_in(value):
    """The tensors of what a module returned, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    elif hasattr(value, "__dict__") and not isinstance(value, torch.nn.Module):
        value = list(vars(value).values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def to_array(tensor: torch.Tensor) -> np.ndarray:
    """A copy: operations in place change what a module returned."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:  # NumPy has none
        tensor = tensor.float()
    return tensor.clone().contiguous().numpy()


class Recorder:
    """Runs a module and collects its tensors, case by case."""

    def __init__(self, module: torch.nn.Module, model: onnx.ModelProto, only: str = "*"):
        self.module = module.eval()
        self.graph = Graph(model)
        self.only = only
        self.modules = dict(module.named_modules())
        self.scopes = {}  # (path, call) -> scope
        for scope in self.graph.members:
            found = fold_scope(scope, self.modules)
            if found:
                self.scopes[found] = scope
        self.scoped = {path for path, _ in self.scopes}
        self.names = {}  # the model's -> key of the array
        self.cases = {}
        self.left_out = {}  # key -> why

    def _run(self, inputs):
        calls = collections.Counter()
        returned = {}  # (path, call) -> arrays
        makers = {}  # id of a tensor -> (path, call, position)
        alive = []  # so that no id is used twice

        def hook(path):
            def after(module, arguments, output):
                call = calls[path]
                calls[path] += 1
                tensors = tensors_in(output)
                arrays = [to_array(tensor) for tensor in tensors]
                if isinstance(module, FOLDED) and path not in self.scoped:
                    maker = makers.get(id(arguments[0])) if arguments else None
                    if maker:
                        returned[maker[:2]][maker[2]] = arrays[0]
                        makers[id(tensors[0])] = maker
                        alive.extend(tensors)
                        return
                returned[path, call] = arrays
                for position, tensor in enumerate(tensors):
                    makers.setdefault(id(tensor), (path, call, position))
                alive.extend(tensors)
            return after

        handles = [module.register_forward_hook(hook(path))
                   for path, module in self.modules.items() if path]
        try:
            with torch.no_grad():
                output = self.module(*inputs)
        finally:
            for handle in handles:
                handle.remove()
        return tensors_in(output), returned

    def record(self, inputs: dict, case: str) -> None:
        """Runs the module on `inputs` (arrays or tensors by the model's names) as `case`."""
        missing = [name for name in self.graph.inputs if name not in inputs]
        if missing or len(inputs) != len(self.graph.inputs):
            raise ValueError(f"inputs {sorted(inputs)} given, the model takes {self.graph.inputs}")
        tensors = {name: torch.as_tensor(inputs[name]) for name in self.graph.inputs}
        outputs, returned = self._run(list(tensors.values()))
        if len(outputs) != len(self.graph.outputs):
            raise ValueError(f"the module returned {len(outputs)} tensors, the model has the outputs "
                             f"{self.graph.outputs}: is it the module that was exported?")
        arrays = {name: to_array(tensor) for name, tensor in tensors.items()}
        for name, tensor in zip(self.graph.outputs, outputs):
            array = to_array(tensor)
            if not self.graph.can_be(name, array):
                raise ValueError(f"the module returned {array.dtype} {list(array.shape)} as '{name}', "
                                 f"the model's is {self.graph.types.get(name)}")
            arrays[name] = array
        names = {}
        for (path, call), values in returned.items():
            key = path + (f"#{call}" if call else "")
            if not fnmatch.fnmatchcase(path, self.only):
                continue
            scope = self.scopes.get((path, call))
            if scope is None:
                self.left_out[key] = "no node of the model has its scope"
                continue
            leaving = self.graph.leaving(scope)
            for position, array in enumerate(values):
                one = key + (f":{position}" if len(values) > 1 else "")
                fits = self.graph.can_be if len(values) == 1 else self.graph.must_be
                fitting = [name for name in leaving if fits(name, array)]
                alike = sum(array.shape == other.shape for other in values)
                if len(fitting) != 1 or alike != 1:
                    self.left_out[one] = (f"{len(fitting)} tensors leave {scope} as {array.dtype} "
                                          f"{list(array.shape)}, the module returned {alike}")
                # A module that returns what one inside it returned adds nothing.
                elif fitting[0] not in arrays and fitting[0] not in names:
                    names[fitting[0]] = one
                    arrays[one] = array
        if self.names and self.names != names:
            raise ValueError(f"case '{case}' has other tensors than the first: record it apart")
        self.names = names
        self.cases[case] = arrays

    def save(self, directory) -> None:
        directory = pathlib.Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        names = {"schema_version": 1,
                 "source": f"PyTorch {torch.__version__}, {type(self.module).__name__}",
                 "tensors": dict(sorted(self.names.items()))}
        for case, arrays in self.cases.items():
            _replace(directory / f"{case}.npz", lambda file: np.savez(file, **arrays))
        text = json.dumps(names, indent=2) + "\n"
        _replace(directory / "names.json", lambda file: file.write(text.encode()))


def _replace(path: pathlib.Path, write) -> None:
    """The file appears whole or not at all."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        with open(partial, "wb") as file:
            write(file)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def load_module(where: str) -> torch.nn.Module:
    file, colon, expression = where.partition(":")
    if not colon or not pathlib.Path(file).is_file():
        raise ValueError(f"--module '{where}': FILE.py:EXPRESSION is needed, and the file must exist")
    sys.path.insert(0, str(pathlib.Path(file).resolve().parent))
    module = eval(expression, runpy.run_path(file, run_name="record_torch_module"))
    if not isinstance(module, torch.nn.Module) and callable(module):
        module = module()
    if not isinstance(module, torch.nn.Module):
        raise ValueError(f"--module: '{expression}' is a {type(module).__name__}, no torch.nn.Module")
    return module


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", required=True, metavar="FILE.py:EXPRESSION")
    parser.add_argument("--model", required=True, type=pathlib.Path, help="its ONNX export")
    parser.add_argument("--inputs", required=True, type=pathlib.Path, nargs="+", metavar="NPZ")
    parser.add_argument("-o", "--out", required=True, type=pathlib.Path, metavar="DIR")
    parser.add_argument("--only", default="*", metavar="GLOB",
                        help="only modules whose path matches, as 'model.decoder.*'")
    parser.add_argument("--verbose", action="store_true", help="list what was left out, and why")
    args = parser.parse_args()
    try:
        recorder = Recorder(load_module(args.module), onnx.load(args.model), args.only)
        for path in args.inputs:
            with np.load(path) as file:
                recorder.record({name: file[name] for name in file.files}, path.stem)
    except (ValueError, OSError) as error:
        print(f"record_torch.py: {error}", file=sys.stderr)
        return 2
    recorder.save(args.out)
    print(f"{args.out}: {len(recorder.cases)} cases, {len(recorder.graph.outputs)} outputs and "
          f"{len(recorder.names)} tensors inside; {len(recorder.left_out)} returned by modules were "
          "left out" + ("" if args.verbose else " (--verbose lists them)"))
    if args.verbose:
        for key, why in recorder.left_out.items():
            print(f"  {key}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
