# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Random weights on which a comparison means something.

A freshly initialised detector gives scores that are nearly tied. Rounding then reorders its TopK,
and boxes differ by hundreds of pixels although nothing is wrong. And its box heads, sampling
offsets and attention weights start as zero matrices, so that nothing which happens to the features
can be seen in the boxes. `make_well_conditioned` takes both away.
"""

from __future__ import annotations

import re

import torch
from torch import nn

SCORE_HEAD = re.compile(r"(^|\.)(enc_score_head|dec_score_head|class_embed)(\.\d+)?$")
TARGET_LOGIT_STD = 2.0
ZERO_MATRIX_STD = 0.02


@torch.no_grad()
def make_well_conditioned(model: nn.Module, images: torch.Tensor, seed: int = 0) -> None:
    """Change `model` in place; `images` is float32 [n,3,H,W] as the model takes it.

    1. Matrices that are all zero become normal with standard deviation ZERO_MATRIX_STD.
    2. BatchNorm statistics are measured on `images`.
    3. The heads that give class scores are scaled to a logit spread of TARGET_LOGIT_STD, twice,
       because the encoder's head decides which queries the decoder sees.
    """
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        if parameter.ndim >= 2 and not parameter.any():
            parameter.normal_(0.0, ZERO_MATRIX_STD, generator=generator)

    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    model.eval()
    for norm in norms:
        norm.train()
        norm.momentum = None  # a plain mean over batches, not a moving one
        norm.reset_running_stats()
    model(images)
    model.eval()

    heads = {name: m for name, m in model.named_modules() if SCORE_HEAD.search(name)}
    heads = {name: m for name, m in heads.items() if isinstance(m, nn.Linear)}
    if not heads:
        raise ValueError("no class head found: none of the modules is named like a score head")
    for _ in range(2):
        _scale_heads(model, list(heads.values()), images)


def _scale_heads(model: nn.Module, heads: list[nn.Linear], images: torch.Tensor) -> None:
    spread: dict[int, torch.Tensor] = {}

    def record(module, _, output):
        spread.setdefault(id(module.weight), output.std())

    handles = [head.register_forward_hook(record) for head in heads]
    model(images)
    for handle in handles:
        handle.remove()
    done = set()
    for head in heads:
        key = id(head.weight)
        if key in spread and key not in done:  # heads may share one weight
            head.weight.mul_(TARGET_LOGIT_STD / spread[key].clamp(min=1e-6))
            done.add(key)
