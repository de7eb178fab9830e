# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""What must be mended before or after an export; none of it changes what a model computes.

- DINOv3 with zero register tokens: TorchScript's exporter folds an Expand to zero rows into one row
  (1602 tokens where 1601 are right), an invalid graph.
- DINOv3's rotary table is repeated by `tile`, which becomes an If on the rank. The table depends on
  the image size alone, so it is frozen.
- Deformable DETR's reference points stay in float64, for which ONNX Runtime has no GridSample.
- Exporters leave source paths in node and tensor documentation.
"""

from __future__ import annotations

import types

import onnx
import torch
from onnx import AttributeProto, TensorProto, numpy_helper
from torch import nn


def patch_dinov3(model: nn.Module, size: int) -> None:
    """Replace the two DINOv3 parts that do not export, for square images of `size` pixels."""
    for module in model.modules():
        kind = type(module).__name__
        if kind == "DINOv3ViTEmbeddings" and module.register_tokens.shape[1] == 0:
            module.forward = types.MethodType(_embeddings_without_registers, module)
        elif kind == "DINOv3ViTRopePositionEmbedding":
            with torch.no_grad():
                cos, sin = module(torch.zeros(1, 3, size, size))
            module.forward = types.MethodType(_frozen_rope(cos.clone(), sin.clone()), module)


def _embeddings_without_registers(self, pixel_values, bool_masked_pos=None):
    patches = self.patch_embeddings(pixel_values).flatten(2).transpose(1, 2)
    return torch.cat([self.cls_token, patches], 1)


def _frozen_rope(cos: torch.Tensor, sin: torch.Tensor):
    def forward(self, pixel_values):
        return cos, sin

    return forward


def float64_to_float32(model: onnx.ModelProto) -> int:
    """Turn every float64 constant and Cast of `model` into float32; returns how many there were."""
    changed = 0

    def convert(tensor: TensorProto) -> None:
        nonlocal changed
        if tensor.data_type == TensorProto.DOUBLE:
            values = numpy_helper.to_array(tensor).astype("float32")
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
            changed += 1

    for tensor in model.graph.initializer:
        convert(tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                convert(attribute.t)
            if node.op_type == "Cast" and attribute.name == "to":
                if attribute.i == TensorProto.DOUBLE:
                    attribute.i = TensorProto.FLOAT
                    changed += 1
    if changed:
        del model.graph.value_info[:]  # it still says float64
    return changed


def drop_host_metadata(model: onnx.ModelProto) -> None:
    """Remove documentation strings and metadata, in which exporters write paths of their host."""
    model.doc_string = ""
    del model.metadata_props[:]
    graph = model.graph
    graph.doc_string = ""
    del graph.metadata_props[:]
    values = [*graph.input, *graph.output, *graph.value_info, *graph.initializer]
    for item in [*graph.node, *values]:
        item.doc_string = ""
        del item.metadata_props[:]
