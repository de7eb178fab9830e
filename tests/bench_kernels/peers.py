# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""How each runtime is called: functions that return a Prepared for a model and its inputs.

A call does nothing but run: inputs and outputs lie in place, aligned to 64 bytes as ONNX Runtime's own
allocator aligns them, unless a case says otherwise.
"""
import contextlib
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import numpy as np
import onnxruntime as ort

from case import aligned


@dataclass
class Prepared:
    call: Callable
    result: Callable  # the output as an array
    arrays: dict = field(default_factory=dict)  # the inputs where they lie


KINDS = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int8)": np.int8}


def ort_session(model, threads, library=None):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if library:
        options.register_custom_ops_library(library)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def prepare_ort(model, arrays, threads, library=None, output_offset=0):
    session = ort_session(model, threads, library)
    wanted = session.get_outputs()[0]
    output = aligned(wanted.shape, KINDS[wanted.type],
                     output_offset)
    binding = session.io_binding()
    values = [ort.OrtValue.ortvalue_from_numpy(a) for a in (*arrays.values(), output)]
    for name, value in zip(arrays, values):
        binding.bind_ortvalue_input(name, value)
    binding.bind_ortvalue_output(wanted.name, values[-1])
    # Without a copy? Else alignment, and the data that the bounds read, would be others.
    for array, value in zip((*arrays.values(), output), values):
        if value.data_ptr() != array.ctypes.data:
            raise RuntimeError("this ONNX Runtime copies what it is given")
    keep = (values, arrays, output)
    return Prepared(lambda keep=keep: session.run_with_iobinding(binding), lambda: output, arrays)


def prepare_openvino(ov, model, arrays, threads):
    core = ov.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for name, value in arrays.items():
        request.set_tensor(name, ov.Tensor(value, shared_memory=True))
    return Prepared(request.infer, lambda: request.get_output_tensor(0).data, arrays)


def prepare_torch(torch, function, arrays, threads):
    torch.set_num_threads(threads)
    tensors, result = {name: torch.from_numpy(a) for name, a in arrays.items()}, {}

    @torch.inference_mode()
    def call():
        result["out"] = function(torch, **tensors)
    return Prepared(call, lambda: result["out"].numpy(), arrays)


@contextlib.contextmanager
def quiet():
    """What libraries print from C++ does not reach standard output."""
    sys.stdout.flush()
    saved, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(nowhere)


def prepare_mnn(mnn, model, arrays, threads, output):
    """`output`: the shape, as results come in MNN's own."""
    if any(array.dtype == np.int8 for array in arrays.values()):
        raise RuntimeError("its Python interface writes no int8")
    with tempfile.TemporaryDirectory() as folder, quiet():
        source, target = pathlib.Path(folder, "model.onnx"), pathlib.Path(folder, "model.mnn")
        source.write_bytes(model)
        # The module behind MNN.tools.mnnconvert; the latter installs packages and sends statistics.
        subprocess.run([sys.executable, "-c", "import sys, _tools; _tools.mnnconvert(sys.argv)", "-f", "ONNX",
                        "--modelFile", source, "--MNNModel", target, "--bizCode", "tenonnx"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not target.exists():
            raise RuntimeError("MNN does not convert it")
        runtime = mnn.nn.create_runtime_manager(
            ({"backend": "CPU", "numThread": threads, "precision": "high"},))
        net = mnn.nn.load_module_from_file(str(target), list(arrays), ["out"], runtime_manager=runtime)
        inputs = []
        for array in arrays.values():
            inputs.append(mnn.expr.placeholder(list(array.shape), mnn.expr.NCHW))
            inputs[-1].write(array)
    result, keep = {}, (runtime, arrays)

    def call(keep=keep):
        result["out"] = net.forward(inputs)[0]
    return Prepared(call, lambda: np.array(result["out"].read()).reshape(output), arrays)


def available(site):
    """({name: module}, {name: version}) of the peers that this Python has, PyTorch perhaps in `site`."""
    if site:
        sys.path.append(site)  # behind this Python's own packages
    modules, versions = {}, {"ONNX Runtime": ort.__version__}
    for name, module in (("OpenVINO", "openvino"), ("PyTorch", "torch"), ("MNN", "MNN")):
        try:
            modules[name] = importlib.import_module(module)
            if name == "MNN":
                importlib.import_module("MNN.nn"), importlib.import_module("MNN.expr")
            versions[name] = getattr(modules[name], "__version__", None) or modules[name].version()
        except ImportError:
            modules.pop(name, None)
    return modules, versions
