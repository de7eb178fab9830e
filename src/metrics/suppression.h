// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// NonMaxSuppression compared as what it is: a set of (batch, class, box). What it chooses hangs on
// scores and on overlaps, and on what it chose before. So a candidate's set is not held against the
// reference's own, but asked whether it is one: every box in it above the threshold and clear of
// the others, every box outside it with a reason. What is not so is said in the two units in which
// it could be a tie: how far a score, and how far a coordinate, would have to be off. Source: ONNX
// NonMaxSuppression-11.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "metrics/limit.h"
#include "metrics/selection.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct SuppressionSpec {
  bool center_point_box = false;  // [x_center, y_center, width, height], else [y1, x1, y2, x2]
  std::int64_t max_output = 0;    // boxes of a class at most; 0: none is chosen
  double iou_threshold = 0;
  double score_threshold = -std::numeric_limits<double>::infinity();  // where none is given
};

// `boxes` float32 [B,S,4], `scores` float32 [B,C,S], of the reference; `indices` int64 or int32
// [N,3], of the candidate. A lane is a class of an image; `k` is spec.max_output, `chosen` what the
// reference's values choose, `chosen_by_candidate` N. `invalid` counts triples that are out of
// range, named twice, or beyond max_output. `margin` and `box_margin` (in the unit of the boxes)
// are the largest of their kind; where a box has several reasons to be in or out, the nearest
// counts. InvalidArgument where shapes or dtypes do not fit.
Result<SelectionAgreement> compare_suppression(const Tensor& boxes, const Tensor& scores,
                                               const Tensor& indices, const SuppressionSpec& spec);

// "set of <name>: margin" <= 2 x the limit of one score, where the coordinates are within theirs;
// "set of <name>: margin of boxes" <= `box_limit` where they are not. Fails for invalid indices.
Check suppression_check(std::string_view name, const SelectionAgreement& agreement,
                        const Limit& score_limit, const Limit& box_limit);

}  // namespace tenonnx
