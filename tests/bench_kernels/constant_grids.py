# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Int8LutGridSample and StaticSample against GridSample in float, which is what there is in their place: a
runtime without them dequantises int8 values and samples them in float, and reads a constant grid like any
other."""
import numpy as np
from onnx import TensorProto, helper

import grid_sample
from case import Case, aligned, model

SCALE = 0.03  # 127 of them are 3.8 times the deviation of the values
INT8 = {grid_sample.BEV: dict(kind="bev"),
        f"[8,32,80,80], {grid_sample.DECODER}": dict(side=80),
        f"[8,32,80,80], {grid_sample.ENCODER}": dict(side=80, kind="encoder")}
FORMS = ("taps", "int16", "blocks")


def cases():
    made = {}
    for shape in INT8:
        for result in ("int8", "float32"):
            made[f"Int8LutGridSample to {result}, {shape}"] = lambda shape=shape, result=result: make_int8(
                INT8[shape], result)
    for form in FORMS:
        made[f"StaticSample, {form}, {grid_sample.BEV}"] = lambda form=form: make_static(form)
    return made


def make_int8(options, result):
    value, grid = grid_sample.data(**options)
    value = np.clip(np.rint(value / SCALE), -127, 127).astype(np.int8)
    arrays = {"value": value, "grid": grid}
    output = [*value.shape[:2], *grid.shape[1:-1]]
    kind = TensorProto.INT8 if result == "int8" else TensorProto.FLOAT
    ours = model([helper.make_node("Int8LutGridSample", ["value", "grid"], ["out"] if result == "int8" else ["", "out"],
                                   domain="tenonnx", value_scale=SCALE)], arrays, output, own_domain=True, kind=kind)
    quantised = result == "int8"
    nodes = [helper.make_node("DequantizeLinear", ["value", "scale", "zero"], ["values"]),
             helper.make_node("GridSample", ["values", "grid"], ["sampled" if quantised else "out"], mode="bilinear",
                              padding_mode="zeros", align_corners=0)]
    if quantised:
        nodes.append(helper.make_node("QuantizeLinear", ["sampled", "scale", "zero"], ["out"]))
    constants = {"scale": np.array(SCALE, np.float32), "zero": np.array(0, np.int8)}

    def torch_function(torch, value, grid):
        out = torch.nn.functional.grid_sample(value.float() * SCALE, grid, align_corners=False)
        return (out / SCALE).round().clamp(-128, 127).to(torch.int8) if quantised else out
    # int8_lut_grid_sample.h: at most (1/512 + 1/510) of the steps of both axes, at most 254 units each here;
    # int8 results round on both sides.
    units = 2 * 254 * (1 / 512 + 1 / 510)
    return Case(arrays, ours, model(nodes, arrays, output, constants, kind=kind), output, torch_function,
                tolerance=np.ceil(units) + 1 if quantised else units * SCALE * 1.001)


def make_static(form):
    value, grid = grid_sample.data(kind="bev")
    images, _, height, width = value.shape
    tall, wide = grid.shape[1:3]
    output = [*value.shape[:2], tall, wide]
    # Pixels; what samples nothing lies 1.5 pixels outside, so that steps are of the useful range.
    size = np.array([width, height])
    pixel = np.clip(((grid.astype(np.float64) + 1) * size - 1) / 2, -1.5, size + .5)
    attributes = dict(form=form, input_size=[height, width], output_size=[tall, wide])
    inputs, constants, decoded = ["X"], {}, None
    if form == "taps":
        low = np.floor(pixel)
        corner = low[..., None, :] + np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
        weight = (1 - np.abs(pixel[..., None, :] - corner)).prod(-1)
        outside = ((corner < 0) | (corner >= size)).any(-1)
        index = np.where(outside, -1, corner[..., 1] * width + corner[..., 0])
        constants = {"indices": index.reshape(images, -1, 4).astype(np.int32),
                     "weights": np.where(outside, 0, weight).reshape(images, -1, 4).astype(np.float32)}
        inputs += ["indices", "weights"]
        decoded = pixel
    elif form == "int16":
        offset, top = pixel.reshape(-1, 2).min(0), pixel.reshape(-1, 2).max(0)
        offset, step = ((offset + top) / 2).astype(np.float32), ((top - offset) / 65534).astype(np.float32)
        quantised = np.clip(np.rint((pixel - offset) / step), -32767, 32767).astype(np.int16)
        constants, inputs = {"coordinates": quantised}, inputs + ["", "", "coordinates"]
        attributes |= dict(step=step.tolist(), offset=offset.tolist())
        decoded = offset.astype(np.float64) + step.astype(np.float64) * quantised
    else:
        blocks = pixel.reshape(images, tall // 10, 10, wide // 10, 10, 2).swapaxes(2, 3).reshape(images, -1, 100, 2)
        low, high = blocks.min(2), blocks.max(2)
        base = ((low + high) / 2).astype(np.float32)
        step = np.maximum((high - low) / 254, 1e-6).astype(np.float32)
        delta = np.clip(np.rint((blocks - base[:, :, None]) / step[:, :, None]), -127, 127).astype(np.int8)
        constants = {"base": np.concatenate([base, step], -1), "delta": delta}
        inputs += ["", "", "", "base", "delta"]
        back = base[:, :, None].astype(np.float64) + step[:, :, None].astype(np.float64) * delta
        decoded = back.reshape(images, tall // 10, wide // 10, 10, 10, 2).swapaxes(2, 3).reshape(pixel.shape)
    # The peers sample at the coordinates that the form stands for: its own error is no part of this.
    same = ((2 * decoded + 1) / size - 1).astype(np.float32)
    arrays = {"X": value}
    ours = model([helper.make_node("StaticSample", inputs, ["out"], domain="tenonnx", **attributes)], arrays, output,
                 constants, own_domain=True)
    peer = model([helper.make_node("GridSample", ["X", "grid"], ["out"], mode="bilinear", padding_mode="zeros",
                                   align_corners=0)], arrays, output, {"grid": same})

    def torch_function(torch, X):  # from_numpy takes about a microsecond
        return torch.nn.functional.grid_sample(X, torch.from_numpy(same), align_corners=False)
    return Case(arrays, ours, peer, output, torch_function, tolerance=2e-4,
                bounds=lambda library, places: library.write(aligned(output)))
