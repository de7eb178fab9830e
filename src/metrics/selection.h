// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Selections (TopK, ArgMax, ArgMin) compared as what they are: sets. A difference of 1e-7 in a
// score turns two neighbours over or exchanges the last one that is in for the first that is out;
// neither is an error. One that is chosen although it is clearly worse than one that is left out
// is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "metrics/limit.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct SelectionSpec {
  int axis = -1;        // of the scores, counted from the end where negative
  bool largest = true;  // false: the smallest are chosen (ArgMin, TopK with largest = 0)
  bool sorted = true;   // the results are in the order of their scores
};

// Over all lanes: a lane is one selection along the axis.
struct SelectionAgreement {
  std::int64_t lanes = 0;
  std::int64_t k = 0;                    // chosen in each
  std::int64_t candidates = 0;           // to choose from, in each
  std::int64_t chosen = 0;               // lanes * k; NonMaxSuppression may choose fewer
  std::int64_t chosen_by_candidate = 0;  // the same, but for NonMaxSuppression
  std::int64_t in_common = 0;            // chosen by both
  std::int64_t same_position = 0;        // the same index at the same place
  std::int64_t invalid = 0;  // indices of the candidate that are out of range or named twice
  // Of what differs, the most that a score must be wrong by: in a lane the best reference score
  // that the candidate left out minus the worst that it took instead, at least 0. 0 where the sets
  // agree.
  double margin = 0;
  std::int64_t margin_lane = -1;
  std::int64_t left_out = -1, taken = -1;  // indices along the axis, of that lane
  // The same for the order of what was chosen: how much worse a score is than any behind it.
  double disorder = 0;
  // Of NonMaxSuppression: the most that a coordinate must be wrong by (metrics/suppression.h).
  double box_margin = 0;
};

// What the candidate chose (`indices`, int64 or int32) against what the reference scores say. Both
// sides chose from these scores, each from its own version of them; the reference chooses as ONNX
// does: by score, then by lower index. `scores` floating, or integers; the shape of `indices`
// equals theirs but for the axis, which may be missing where k is 1 (ArgMax without keepdims).
// InvalidArgument where shapes do not fit.
Result<SelectionAgreement> compare_selection(const Tensor& scores, const Tensor& indices,
                                             const SelectionSpec& spec);

// Counts add up, margins take their maximum.
void join_worst(SelectionAgreement& total, const SelectionAgreement& next);

// "set of <name>: margin" <= 2 x the limit of one score: what flipped is a tie where both scores
// may be off by their limit. Fails for invalid indices whatever the margin is. The note says how
// the sets and positions agree, and where the order is worse than the same limit allows: the set is
// right still, whoever reads the first row alone is not.
Check selection_check(std::string_view name, const SelectionAgreement& agreement,
                      const Limit& score_limit);

// `indices` as a graph takes them: in `dtype` (int64 or int32), and those outside [0, length) at
// the nearest end, so that a run does not end there; compare_selection counts them. Of
// NonMaxSuppression, whose last axis holds 3 indices, `lengths` are the shape of the scores,
// [B,C,S]; of others it is one. Where a length is not known (0 or less) the index stays.
Tensor usable_indices(const Tensor& indices, DType dtype, const Shape& lengths);

// "300 of 300 chosen alike, 198 of them at the same place"
std::string to_string(const SelectionAgreement& agreement);
Json to_json(const SelectionAgreement& agreement);

}  // namespace tenonnx
