# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Random weights on which a comparison means something.

A freshly initialised detector is a bad test of a device:

- its convolutions shrink activations below the epsilon of BatchNorm, layer by layer, until float16
  has no digits left for them;
- its box heads, sampling offsets and attention weights are zero matrices, so that nothing which
  happens to the features can be seen in the boxes;
- its scores are nearly tied, so that rounding reorders its TopK, and boxes differ by hundreds of
  pixels although nothing is wrong;
- hundreds of its scores lie above a detector's threshold, where a trained one has a few dozen;
- the score that a query has in the encoder says nothing about the one that it has at the end, so
  that the query which rounding pushes over the edge of the first TopK may become the best box.

`make_well_conditioned` changes each of these.
"""

from __future__ import annotations

import re

import torch
from torch import nn

ENCODER_HEAD = re.compile(r"(^|\.)enc_score_head$")
DECODER_HEAD = re.compile(r"(^|\.)(dec_score_head|class_embed)(\.\d+)?$")
ZERO_MATRIX_STD = 0.02
TARGET_LOGIT_STD = 3.0
BOXES_PER_IMAGE = 20  # how many scores are above THRESHOLD
THRESHOLD = 0.25


@torch.no_grad()
def make_well_conditioned(model: nn.Module, images: torch.Tensor, seed: int = 0) -> None:
    """Change `model` in place; `images` is float32 [n,3,H,W] as the model takes it.

    1. Weights of convolutions are drawn as He et al. do: they keep the scale of activations.
    2. Matrices that are all zero become normal with standard deviation ZERO_MATRIX_STD.
    3. BatchNorm statistics are measured on `images`.
    4. The decoder's class heads begin as the encoder's (where it has one), so that scores at both
       ends are related.
    5. Class heads are scaled to a logit spread of TARGET_LOGIT_STD and shifted so that about
       BOXES_PER_IMAGE scores exceed THRESHOLD; the encoder's first, because it decides which
       queries the decoder sees.
    """
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            fan_in = module.weight[0].numel()
            module.weight.normal_(0.0, (2.0 / fan_in) ** 0.5, generator=generator)
    for parameter in model.parameters():
        if parameter.ndim >= 2 and not parameter.any():
            parameter.normal_(0.0, ZERO_MATRIX_STD, generator=generator)

    for norm in (m for m in model.modules() if isinstance(m, nn.BatchNorm2d)):
        norm.train()
        norm.momentum = None  # a plain mean over batches, not a moving one
        norm.reset_running_stats()
    model(images)
    model.eval()

    encoder_heads, decoder_heads = _heads(model, ENCODER_HEAD), _heads(model, DECODER_HEAD)
    if not decoder_heads:
        raise ValueError("no class head found: none of the modules is named like one")
    for head in decoder_heads:
        for source in encoder_heads:
            if source.weight.shape == head.weight.shape:
                head.weight.copy_(source.weight)
    _condition(model, encoder_heads, images)
    _condition(model, decoder_heads, images)


def _heads(model: nn.Module, pattern: re.Pattern[str]) -> list[nn.Linear]:
    """The linear layers of that name, each weight once: heads may share one."""
    found: dict[int, nn.Linear] = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and pattern.search(name):
            found.setdefault(id(module.weight), module)
    return list(found.values())


def _condition(model: nn.Module, heads: list[nn.Linear], images: torch.Tensor) -> None:
    """Scale and shift each head after what it gives on `images`."""
    outputs: dict[int, torch.Tensor] = {}

    def record(module, _, output):
        outputs[id(module.weight)] = output

    handles = [head.register_forward_hook(record) for head in heads]
    model(images)
    for handle in handles:
        handle.remove()
    limit = torch.logit(torch.tensor(THRESHOLD))
    for head in heads:
        if id(head.weight) not in outputs:  # a head of an auxiliary loss
            continue
        logits = outputs[id(head.weight)] - head.bias
        factor = TARGET_LOGIT_STD / logits.std().clamp(min=1e-6)
        head.weight.mul_(factor)
        best = (logits * factor).flatten().topk(BOXES_PER_IMAGE * len(images)).values
        head.bias.fill_(limit - best[-1])
