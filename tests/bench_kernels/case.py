# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""What is measured: one operator on one set of shapes, and the models that compute the same."""
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper, numpy_helper


@dataclass
class Case:
    arrays: dict  # inputs of our model
    ours: bytes
    peer: bytes  # a model of standard operators
    output: list  # its shape
    torch: Callable | None = None  # function(torch, **peer_arrays)
    peer_arrays: dict | None = None  # where they are not `arrays`
    tolerance: float = 1e-4  # largest absolute difference between results
    bounds: Callable | None = None  # function(library, arrays in place): {name: call}
    output_offset: int = 0  # bytes past a multiple of 64


def model(nodes, arrays, output, constants=None, own_domain=False, opset=16, kind=TensorProto.FLOAT):
    """`constants`: initializers, {name: array}. The output is called out."""
    def info(name, array):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
    graph = helper.make_graph(
        nodes, "bench", [info(k, v) for k, v in arrays.items()],
        [helper.make_tensor_value_info("out", kind, output)],
        [numpy_helper.from_array(v, k) for k, v in (constants or {}).items()])
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid("tenonnx", 1)] if own_domain else [])
    made = helper.make_model(graph, opset_imports=imports)
    made.ir_version = 8
    return made.SerializeToString()


def aligned(shape, kind=np.float32, offset=0):
    """Zeros at `offset` bytes past a multiple of 64."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = np.zeros(size + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start:start + size].view(kind).reshape(shape)


def aligned_copy(array):
    copy = aligned(array.shape, array.dtype)
    copy[...] = array
    return copy
