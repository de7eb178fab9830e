# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""The form in which detectors of the DETR family are deployed: post-processing inside the graph."""

from __future__ import annotations

import torch
from torch import nn

INPUT_NAMES = ["images", "orig_target_sizes"]
OUTPUT_NAMES = ["labels", "boxes", "scores"]


class DeployForm(nn.Module):
    """Wraps a detector that returns `logits` and `pred_boxes`.

    Inputs: images float32 [1,3,H,W]; orig_target_sizes int64 [1,2] as [width, height] of the
    original image. Outputs: labels int64 [1,k]; boxes float32 [1,k,4], xyxy in pixels of the
    original image; scores float32 [1,k], falling. The k best of all (query, class) pairs, so one
    query can appear under several classes, as in DEIM and RT-DETR.
    """

    def __init__(self, model: nn.Module, class_count: int, k: int):
        super().__init__()
        self.model = model.eval()
        self.class_count = class_count
        self.k = k

    def forward(self, images: torch.Tensor, orig_target_sizes: torch.Tensor):
        out = self.model(pixel_values=images)
        cx, cy, w, h = out.pred_boxes.unbind(-1)
        boxes = torch.stack([cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h], -1)
        boxes = boxes * orig_target_sizes.repeat(1, 2).unsqueeze(1)
        scores, index = torch.topk(out.logits.sigmoid().flatten(1), self.k, dim=-1)
        query = index // self.class_count
        labels = index - query * self.class_count
        boxes = boxes.gather(1, query.unsqueeze(-1).repeat(1, 1, 4))
        return labels, boxes, scores
