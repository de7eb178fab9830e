// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The model's outputs to detections in pixels of the original image.
//
// Outputs labels/boxes/scores are used as they are: the model has selected and scaled, and nothing
// (no sigmoid, no NMS, no clipping) is done a second time. Outputs logits/pred_boxes are decoded:
//   score = sigmoid(logit); the top_k of all queries x classes; label = index mod classes;
//   (cx, cy, w, h) -> (cx - w/2, cy - h/2, cx + w/2, cy + h/2) times the image's size
// A letterbox is undone for both. Source: DEIM's PostProcessor (sigmoid form).
#pragma once

#include <vector>

#include "tenonnx/base.h"
#include "tenonnx/contract.h"
#include "tenonnx/detection.h"

namespace tenonnx {

// Detections above score_threshold, the highest score first; equal scores in the order of the
// output. Labels: int64 or int32 [1,K] (or [K]), boxes float32 [1,K,4], scores float32 [1,K];
// logits float32 [1,Q,C], pred_boxes float32 [1,Q,4]; float16 is taken as well. A negative label
// marks a row that the model filled up and is left out. InvalidArgument names the output that is
// missing or has another dtype or shape; DataLoss names the output and the row of a NaN, or of an
// infinite box among those above the threshold.
Result<std::vector<Detection>> decode_detections(const Contract& contract, const TensorMap& outputs,
                                                 int original_width, int original_height,
                                                 float score_threshold);

}  // namespace tenonnx
