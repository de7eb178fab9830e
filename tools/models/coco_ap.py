# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Average precision during training, without files: COCO's definition (101 recall points, IoU 0.50
to 0.95) for labelled boxes that are neither crowd nor ignored. The product's own evaluation is
`tenonnx eval`; this one exists so that training needs nothing but PyTorch and NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

IOU_THRESHOLDS = np.arange(0.5, 0.96, 0.05)
MAX_DETECTIONS = 100


def pairwise_iou(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a: float64 [n,4], b: float64 [m,4], xyxy. Returns float64 [n,m]."""
    top_left = np.maximum(a[:, None, :2], b[None, :, :2])
    bottom_right = np.minimum(a[:, None, 2:], b[None, :, 2:])
    intersection = np.prod(np.clip(bottom_right - top_left, 0, None), -1)
    area_a = np.prod(a[:, 2:] - a[:, :2], -1)
    area_b = np.prod(b[:, 2:] - b[:, :2], -1)
    return intersection / np.maximum(area_a[:, None] + area_b[None] - intersection, 1e-9)


def average_precision(
    detections: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
    truths: Sequence[tuple[np.ndarray, np.ndarray]],
    class_count: int,
) -> tuple[float, float, float]:
    """AP over all thresholds, at 0.50 and at 0.75.

    detections: for each image labels [k], boxes [k,4] (xyxy), scores [k].
    truths: for each image boxes [n,4] (xyxy), labels [n].
    """
    table = np.zeros((len(IOU_THRESHOLDS), class_count))
    for label in range(class_count):
        scores: list[float] = []
        hits: list[np.ndarray] = []
        positives = 0
        for (det_labels, det_boxes, det_scores), (gt_boxes, gt_labels) in zip(detections, truths):
            order = np.argsort(-det_scores, kind="stable")[:MAX_DETECTIONS]
            order = order[det_labels[order] == label]
            truth = gt_boxes[gt_labels == label].astype(np.float64)
            positives += len(truth)
            scores.extend(det_scores[order])
            hits.extend(_match(det_boxes[order].astype(np.float64), truth))
        table[:, label] = _precision_over_recall(np.array(scores), hits, positives)
    return float(table.mean()), float(table[0].mean()), float(table[5].mean())


def _match(boxes: np.ndarray, truth: np.ndarray) -> list[np.ndarray]:
    """For each box, best score first, bool [thresholds]: did it take a free true box?"""
    if not len(truth):
        return [np.zeros(len(IOU_THRESHOLDS), bool) for _ in boxes]
    overlaps = pairwise_iou(boxes, truth)
    taken = np.zeros((len(IOU_THRESHOLDS), len(truth)), bool)
    result = []
    for row in overlaps:
        hit = np.zeros(len(IOU_THRESHOLDS), bool)
        for t, threshold in enumerate(IOU_THRESHOLDS):
            free = np.where(taken[t], -1.0, row)
            best = int(free.argmax())
            if free[best] >= threshold:
                taken[t, best] = True
                hit[t] = True
        result.append(hit)
    return result


def _precision_over_recall(
    scores: np.ndarray, hits: list[np.ndarray], positives: int
) -> np.ndarray:
    """Mean interpolated precision at 101 recall points, for each threshold."""
    thresholds = len(IOU_THRESHOLDS)
    if not len(scores):
        return np.zeros(thresholds)
    ordered = np.array(hits)[np.argsort(-scores, kind="stable")]
    result = np.zeros(thresholds)
    for t in range(thresholds):
        true_positives = np.cumsum(ordered[:, t])
        precision = true_positives / np.arange(1, len(ordered) + 1)
        precision = np.maximum.accumulate(precision[::-1])[::-1]
        recall = true_positives / max(positives, 1)
        at = np.searchsorted(recall, np.linspace(0, 1, 101), side="left")
        result[t] = np.mean([precision[i] if i < len(precision) else 0.0 for i in at])
    return result
