// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "base/status.h"
#include "metrics/elements.h"

namespace tenonnx {
namespace {

struct Lanes {
  std::int64_t outer = 1, length = 0, inner = 1, k = 1;
};

Result<Lanes> lanes_of(const Tensor& scores, const Tensor& indices, const SelectionSpec& spec) {
  const auto rank = static_cast<int>(scores.shape().size());
  const int axis = spec.axis < 0 ? spec.axis + rank : spec.axis;
  const auto mismatch = [&] {
    return InvalidArgument("indices {} {} are no selection along axis {} of scores {} {}",
                           to_string(indices.dtype()), to_string(indices.shape()), spec.axis,
                           to_string(scores.dtype()), to_string(scores.shape()));
  };
  if (indices.dtype() != DType::kInt64 && indices.dtype() != DType::kInt32) return mismatch();
  if (axis < 0 || axis >= rank) return mismatch();
  Lanes lanes;
  Shape with = scores.shape();
  const auto at = static_cast<std::size_t>(axis);
  for (std::size_t i = 0; i < with.size(); ++i) {
    if (i < at) lanes.outer *= with[i];
    if (i > at) lanes.inner *= with[i];
  }
  lanes.length = with[at];
  Shape without = with;
  without.erase(without.begin() + axis);
  if (indices.shape() == without && indices.shape().size() + 1 == scores.shape().size()) {
    lanes.k = 1;
    return lanes;
  }
  if (indices.shape().size() != scores.shape().size()) return mismatch();
  lanes.k = indices.shape()[at];
  with[at] = lanes.k;
  if (indices.shape() != with || lanes.k > lanes.length) return mismatch();
  return lanes;
}

std::int64_t index_at(const Tensor& indices, std::int64_t i) {
  return indices.dtype() == DType::kInt64 ? indices.data<std::int64_t>()[i]
                                          : indices.data<std::int32_t>()[i];
}

// One lane: `scores` in the direction in which larger is better, NaN first as the worst.
void add_lane(const std::vector<double>& scores, const std::vector<std::int64_t>& taken,
              std::int64_t lane, bool sorted, SelectionAgreement& out) {
  const auto n = static_cast<std::int64_t>(scores.size());
  const auto k = static_cast<std::int64_t>(taken.size());
  const auto score = [&](std::int64_t i) { return scores[static_cast<std::size_t>(i)]; };
  std::vector<std::int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + k, order.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      return score(a) != score(b) ? score(a) > score(b) : a < b;
                    });
  enum : char { kNeither = 0, kReference = 1, kCandidate = 2 };
  std::vector<char> by(scores.size(), kNeither);
  for (std::int64_t i = 0; i < k; ++i) by[static_cast<std::size_t>(order[i])] = kReference;
  double worst_taken = std::numeric_limits<double>::infinity();
  std::int64_t worst_index = -1;
  double before = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int64_t index = taken[static_cast<std::size_t>(i)];
    if (index < 0 || index >= n || (by[static_cast<std::size_t>(index)] & kCandidate) != 0) {
      ++out.invalid;
      continue;
    }
    char& chosen = by[static_cast<std::size_t>(index)];
    if (chosen == kReference)
      ++out.in_common;
    else if (score(index) < worst_taken) {
      worst_taken = score(index);
      worst_index = index;
    }
    chosen = static_cast<char>(chosen | kCandidate);
    out.same_position += order[static_cast<std::size_t>(i)] == index ? 1 : 0;
    // Against the worst so far: many small steps upwards are a large one together.
    if (sorted && score(index) > before)
      out.disorder = std::max(out.disorder, score(index) - before);
    else
      before = score(index);
  }
  if (worst_index < 0) return;
  for (std::int64_t i = 0; i < k; ++i) {  // the best first: the first that was left out
    const std::int64_t index = order[static_cast<std::size_t>(i)];
    if ((by[static_cast<std::size_t>(index)] & kCandidate) != 0) continue;
    const double margin = std::max(0.0, score(index) - worst_taken);
    if (out.margin_lane < 0 || margin > out.margin) {
      out.margin = margin;
      out.margin_lane = lane;
      out.left_out = index;
      out.taken = worst_index;
    }
    return;
  }
}

}  // namespace

Result<SelectionAgreement> compare_selection(const Tensor& scores, const Tensor& indices,
                                             const SelectionSpec& spec) {
  TENONNX_ASSIGN_OR_RETURN(const Lanes lanes, lanes_of(scores, indices, spec));
  SelectionAgreement out;
  out.lanes = lanes.outer * lanes.inner;
  out.k = lanes.k;
  out.candidates = lanes.length;
  out.chosen = out.chosen_by_candidate = out.lanes * lanes.k;
  std::vector<double> values(static_cast<std::size_t>(lanes.length));
  std::vector<std::int64_t> taken(static_cast<std::size_t>(lanes.k));
  visit_elements(scores, [&](const auto* p) {
    for (std::int64_t lane = 0; lane < out.lanes; ++lane) {
      const std::int64_t o = lane / lanes.inner, i = lane % lanes.inner;
      for (std::int64_t j = 0; j < lanes.length; ++j) {
        const auto value = p[(o * lanes.length + j) * lanes.inner + i];
        double v;
        if constexpr (is_float_element<std::remove_cvref_t<decltype(value)>>)
          v = to_double(value);
        else
          v = static_cast<double>(value);
        // NaN is no score that could win, on either side.
        values[static_cast<std::size_t>(j)] =
            std::isnan(v) ? -std::numeric_limits<double>::infinity() : (spec.largest ? v : -v);
      }
      for (std::int64_t j = 0; j < lanes.k; ++j)
        taken[static_cast<std::size_t>(j)] = index_at(indices, (o * lanes.k + j) * lanes.inner + i);
      add_lane(values, taken, lane, spec.sorted, out);
    }
  });
  return out;
}

void join_worst(SelectionAgreement& total, const SelectionAgreement& next) {
  if (total.lanes == 0) {
    total = next;
    return;
  }
  if (next.margin_lane >= 0 && (total.margin_lane < 0 || next.margin > total.margin)) {
    total.margin = next.margin;
    total.margin_lane = next.margin_lane;
    total.left_out = next.left_out;
    total.taken = next.taken;
  }
  total.lanes += next.lanes;
  total.chosen += next.chosen;
  total.chosen_by_candidate += next.chosen_by_candidate;
  total.in_common += next.in_common;
  total.same_position += next.same_position;
  total.invalid += next.invalid;
  total.disorder = std::max(total.disorder, next.disorder);
  total.box_margin = std::max(total.box_margin, next.box_margin);
}

std::string to_string(const SelectionAgreement& agreement) {
  return fmt::format("{} of {} chosen alike, {} at the same place", agreement.in_common,
                     agreement.chosen, agreement.same_position);
}

Check selection_check(std::string_view name, const SelectionAgreement& agreement,
                      const Limit& score_limit) {
  Limit limit{2 * score_limit.value, fmt::format("2 scores, each within {}", score_limit.origin)};
  std::string note = to_string(agreement);
  if (agreement.invalid > 0) {
    Check check = make_check(fmt::format("set of {}: indices that are none", name),
                             static_cast<double>(agreement.invalid), Comparison::kAtMost,
                             {0, "an index is in range and named once"}, std::move(note));
    return check;
  }
  if (agreement.margin_lane >= 0) {
    note += fmt::format("; {} taken for {}, {:.3g} apart", agreement.taken, agreement.left_out,
                        agreement.margin);
  } else if (agreement.same_position < agreement.chosen) {
    note += "; the sets are equal, their order is not";
  }
  if (agreement.disorder > limit.value)
    note += fmt::format(
        "; the order differs by more than ties ({:.3g}): consumers that read row 0 see another "
        "detection",
        agreement.disorder);
  return make_check(fmt::format("set of {}: margin", name), agreement.margin, Comparison::kAtMost,
                    std::move(limit), std::move(note));
}

Json to_json(const SelectionAgreement& agreement) {
  return {{"lanes", agreement.lanes},
          {"k", agreement.k},
          {"candidates", agreement.candidates},
          {"chosen", agreement.chosen},
          {"chosen_by_candidate", agreement.chosen_by_candidate},
          {"in_common", agreement.in_common},
          {"same_position", agreement.same_position},
          {"invalid", agreement.invalid},
          {"margin", json_number(agreement.margin)},
          {"margin_lane", agreement.margin_lane},
          {"left_out", agreement.left_out},
          {"taken", agreement.taken},
          {"disorder", json_number(agreement.disorder)},
          {"box_margin", json_number(agreement.box_margin)}};
}

Tensor usable_indices(const Tensor& indices, DType dtype, const Shape& lengths) {
  Tensor out(dtype, indices.shape());
  const auto axes = static_cast<std::int64_t>(lengths.size());
  for (std::int64_t i = 0; i < indices.size(); ++i) {
    std::int64_t value = indices.dtype() == DType::kInt32 ? indices.data<std::int32_t>()[i]
                                                          : indices.data<std::int64_t>()[i];
    const std::int64_t length = axes == 0 ? 0 : lengths[static_cast<std::size_t>(i % axes)];
    if (length > 0) value = std::clamp<std::int64_t>(value, 0, length - 1);
    if (dtype == DType::kInt32)
      out.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(value);
    else
      out.mutable_data<std::int64_t>()[i] = value;
  }
  return out;
}

}  // namespace tenonnx
