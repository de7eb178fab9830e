# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Writes the contract of an exported detector (docs/reference/contract.md) and finds its cut."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Sequence

import onnx

# Scopes of the TorchScript exporter: "/model/model/encoder/...". Not the attention of a decoder
# ("/model/decoder/layers.0/encoder_attn/...") and not the encoder inside a backbone.
_ENCODER_SCOPE = re.compile(r"^(/model)+/encoder/")


def find_encoder_cut(model: onnx.ModelProto) -> list[str]:
    """The encoder's feature tensors, in graph order; empty where the graph's names do not tell.

    A feature is a tensor that is made inside a scope named 'encoder' and read outside it. What is
    found is returned only if it separates the image from every output: without these tensors
    nothing of the image reaches an output, and each of them is needed.
    """
    graph = model.graph
    outputs = [o.name for o in graph.output]
    consumers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            consumers.setdefault(name, []).append(node)

    def reached(blocked: set[str]) -> set[str]:
        seen: set[str] = set()
        pending = [graph.input[0].name]
        while pending:
            name = pending.pop()
            if name in seen or name in blocked:
                continue
            seen.add(name)
            for node in consumers.get(name, []):
                pending.extend(node.output)
        return seen

    image_dependent = reached(set())
    cut = []
    for node in graph.node:
        if not _ENCODER_SCOPE.search(node.name):
            continue
        for name in node.output:
            users = consumers.get(name, [])
            leaves = any(not _ENCODER_SCOPE.search(u.name) for u in users)
            # Shape and its like leave the encoder too, but carry no feature.
            carries = any(u.op_type != "Shape" for u in users if not _ENCODER_SCOPE.search(u.name))
            if name in image_dependent and leaves and carries:
                cut.append(name)
    if not cut or any(o in reached(set(cut)) for o in outputs):
        return []
    for name in cut:
        if not any(o in reached(set(cut) - {name}) for o in outputs):
            return []
    return cut


def write_contract(
    path: pathlib.Path,
    size: int,
    mean: Sequence[float],
    std: Sequence[float],
    classes: Sequence[str],
    cut: Sequence[str],
) -> None:
    """Write `path`: a square RGB image of `size` pixels, stretched by Pillow's bilinear filter."""
    low = min((0 - m) / s for m, s in zip(mean, std))
    high = max((1 - m) / s for m, s in zip(mean, std))
    contract = {
        "schema_version": 1,
        "image": {
            "name": "images",
            "dtype": "float32",
            "shape": [1, 3, size, size],
            "layout": "NCHW",
            "color": "RGB",
            "resize": "pillow_bilinear",
            "fit": "stretch",
            "normalized_by": "pipeline",
            "scale": 1 / 255,
            "mean": list(mean),
            "std": list(std),
            "range": [low, high],
        },
        "size": {"name": "orig_target_sizes", "dtype": "int64", "order": "width_height"},
        "outputs": {
            "kind": "detections",
            "labels": "labels",
            "boxes": "boxes",
            "scores": "scores",
        },
        "classes": list(classes),
    }
    if cut:
        contract["cut"] = list(cut)
    path.write_text(json.dumps(contract, indent=2) + "\n", encoding="utf-8")
