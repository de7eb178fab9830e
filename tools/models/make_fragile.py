#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Make a detector that is the same in float32 and fails in float16.

In each decoder layer the feed-forward block computes

    down_proj(silu(gate_proj(x)) * up_proj(x)).

This script multiplies the weight (and the bias, where there is one) of up_proj by 2^k and the
weight of down_proj by 2^-k. Powers of two are exact in binary floating point, so in float32 the
result is the same up to the order of sums; but the product before down_proj grows by 2^k, beyond
the largest float16 (65504), and a device that stores it in float16 saturates or overflows there.
It stands for trained models whose activations lie near the edge of float16's range.

It refuses a model in which it does not find the expected number of layers, and one in which a
scaled tensor has a second consumer: both would give a model that is not the same.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import numpy as np
import onnx
from onnx import numpy_helper

DEFAULT_EXPONENT = 13
DEFAULT_LAYERS = 4


class NotThisModel(Exception):
    """The graph does not have the structure that this script changes."""


def make_fragile(
    model: onnx.ModelProto, exponent: int = DEFAULT_EXPONENT, layers: int = DEFAULT_LAYERS
) -> int:
    """Scale the decoder's projections of `model` in place; return how many layers were changed.

    Raises NotThisModel, and leaves `model` as it was, where other than `layers` decoder layers are
    found or where a projection is not a MatMul with a constant weight of its own.
    """
    graph = model.graph
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    consumers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            consumers.setdefault(name, []).append(node)

    up = [n for n in graph.node if _is_projection(n, "up_proj")]
    down = [n for n in graph.node if _is_projection(n, "down_proj")]
    if len(up) != layers or len(down) != layers:
        raise NotThisModel(
            f"{len(up)} up-projections and {len(down)} down-projections found, {layers} of each "
            "expected (MatMul nodes named '.../decoder/.../mlp/up_proj/...' and "
            "'.../mlp/down_proj/...'). The script works on node names as the TorchScript exporter "
            "writes them: give it the raw export, not one that a simplifier has renamed"
        )

    # Collect first, write afterwards, so that a refusal leaves the model untouched.
    factors: dict[str, float] = {}
    for node in up:
        factors[_own_constant(node, node.input[1], initializers, consumers)] = 2.0**exponent
        for consumer in consumers.get(node.output[0], []):
            if consumer.op_type != "Add":
                continue
            for name in consumer.input:
                if name in initializers:
                    own = _own_constant(consumer, name, initializers, consumers)
                    factors[own] = 2.0**exponent
    for node in down:
        factors[_own_constant(node, node.input[1], initializers, consumers)] = 2.0**-exponent

    for name, factor in factors.items():
        values = numpy_helper.to_array(initializers[name])
        scaled = (values * np.float32(factor)).astype(np.float32)
        initializers[name].CopyFrom(numpy_helper.from_array(scaled, name))
    return len(up)


def _is_projection(node: onnx.NodeProto, kind: str) -> bool:
    return node.op_type == "MatMul" and "decoder" in node.name and f"/mlp/{kind}/" in node.name


def _own_constant(node, name, initializers, consumers) -> str:
    """The initializer `name` of `node`, refused unless it is float32 and used once."""
    if name not in initializers:
        raise NotThisModel(f"'{name}', the weight of node '{node.name}', is not an initializer")
    if initializers[name].data_type != onnx.TensorProto.FLOAT:
        raise NotThisModel(f"'{name}', the weight of node '{node.name}', is not float32")
    users = consumers[name]
    if len(users) != 1:
        raise NotThisModel(
            f"'{name}' is used by {len(users)} nodes ({', '.join(u.name for u in users)}); scaling "
            "it would change them all"
        )
    return name


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=pathlib.Path, help="the raw TorchScript export, as .onnx")
    parser.add_argument("target", type=pathlib.Path, help="the file to write")
    parser.add_argument(
        "--exponent",
        type=int,
        default=DEFAULT_EXPONENT,
        help="k: projections are scaled by 2^k and 2^-k (default: %(default)s)",
    )
    parser.add_argument(
        "--layers",
        type=int,
        default=DEFAULT_LAYERS,
        help="decoder layers that must be found (default: %(default)s)",
    )
    args = parser.parse_args()

    if not args.source.is_file():
        print(f"make_fragile: no such file: '{args.source}'", file=sys.stderr)
        return 2
    model = onnx.load(args.source)
    try:
        changed = make_fragile(model, args.exponent, args.layers)
    except NotThisModel as error:
        print(f"make_fragile: '{args.source}' was not changed: {error}", file=sys.stderr)
        return 2
    onnx.save(model, args.target)
    print(f"{changed} layers changed, written to {args.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
