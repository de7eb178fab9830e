// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/suppression.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tenonnx {
namespace {

using Triple = std::array<std::int64_t, 3>;  // batch, class, box

// An overlap is computed in float32, by four operations of which each rounds by 2^-24 at most.
constexpr double kIouRounding = 4 * 0x1p-23;

struct Corners {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  double width() const { return x1 - x0; }
  double height() const { return y1 - y0; }
  double area() const { return width() * height(); }
};

Corners corners_of(const float* p, bool center_point_box) {
  if (center_point_box) {
    const double w = p[2] / 2.0, h = p[3] / 2.0;
    return {p[0] - w, p[1] - h, p[0] + w, p[1] + h};
  }
  return {std::min(p[1], p[3]), std::min(p[0], p[2]), std::max(p[1], p[3]), std::max(p[0], p[2])};
}

struct Overlap {
  double iou = 0;
  double slope =
      0;  // by how much at most the IoU changes where every coordinate is off by one unit
};

Overlap overlap_of(const Corners& a, const Corners& b) {
  const double w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  const double h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  const double both = std::max(0.0, w) * std::max(0.0, h);
  const double all = a.area() + b.area() - both;
  Overlap out;
  if (!(all > 0)) return out;
  out.iou = both / all;
  // To first order: a side is off by two units, so an area by 2 (width + height).
  const double d_both = 2 * (std::max(0.0, w) + std::max(0.0, h));
  const double d_areas = 2 * (a.width() + a.height() + b.width() + b.height());
  out.slope = (d_both + out.iou * (d_areas + d_both)) / all;
  return out;
}

// How far the two kinds of value have to be off.
struct Need {
  double score = 0, iou = 0, box = 0;
  double size() const { return std::max(score, iou); }  // both are shares of one
};

class Lane {
 public:
  Lane(const float* boxes, const float* scores, std::int64_t count, const SuppressionSpec& spec)
      : boxes_(boxes), scores_(scores), count_(count), spec_(spec) {}

  // As ONNX does: by falling score, then by lower index.
  std::vector<std::int64_t> choose() const {
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < count_; ++i)
      if (score(i) > spec_.score_threshold) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return score(a) > score(b); });
    std::vector<std::int64_t> chosen;
    for (const std::int64_t i : order) {
      if (std::cmp_greater_equal(chosen.size(), spec_.max_output)) break;
      const bool clear = std::none_of(chosen.begin(), chosen.end(), [&](std::int64_t c) {
        return overlap(c, i).iou > spec_.iou_threshold;
      });
      if (clear) chosen.push_back(i);
    }
    return chosen;
  }

  // What a box that was taken needs: to be above the threshold and clear of those that were taken.
  Need to_be_in(std::int64_t i, const std::vector<std::int64_t>& taken) const {
    Need need;
    if (std::isfinite(spec_.score_threshold))
      need.score = std::max(0.0, spec_.score_threshold - score(i));
    for (const std::int64_t other : taken) {
      if (other == i) continue;
      const Overlap both = overlap(other, i);
      const double beyond = both.iou - spec_.iou_threshold;
      if (beyond > kIouRounding && beyond > need.iou) {
        need.iou = beyond;
        need.box = beyond / both.slope;
      }
    }
    return need;
  }

  // What a box that was left out needs, by the reason that asks for least.
  Need to_be_out(std::int64_t i, const std::vector<std::int64_t>& taken) const {
    Need least;
    least.score = std::numeric_limits<double>::infinity();
    const auto offer = [&](const Need& need) {
      if (need.size() < least.size()) least = need;
    };
    if (!(score(i) > spec_.score_threshold)) return {};
    if (std::isfinite(spec_.score_threshold)) offer({score(i) - spec_.score_threshold, 0, 0});
    double worst = std::numeric_limits<double>::infinity();
    for (const std::int64_t other : taken) {
      worst = std::min(worst, score(other));
      const Overlap both = overlap(other, i);
      if (both.iou <= 0) continue;
      Need need;
      need.score = std::max(0.0, score(i) - score(other));
      const double missing = spec_.iou_threshold - both.iou;
      if (missing > kIouRounding) {
        need.iou = missing;
        need.box = missing / both.slope;
      }
      offer(need);
      if (least.size() == 0) return least;
    }
    if (std::cmp_greater_equal(taken.size(), spec_.max_output))
      offer({std::max(0.0, score(i) - worst), 0, 0});
    return least;
  }

 private:
  // NaN is no score that could win.
  double score(std::int64_t i) const {
    const double value = scores_[i];
    return std::isnan(value) ? -std::numeric_limits<double>::infinity() : value;
  }
  Overlap overlap(std::int64_t a, std::int64_t b) const {
    return overlap_of(corners_of(boxes_ + 4 * a, spec_.center_point_box),
                      corners_of(boxes_ + 4 * b, spec_.center_point_box));
  }

  const float* boxes_;
  const float* scores_;
  const std::int64_t count_;
  const SuppressionSpec& spec_;
};

Triple triple_at(const Tensor& indices, std::int64_t row) {
  Triple out{};
  for (std::int64_t j = 0; j < 3; ++j)
    out[static_cast<std::size_t>(j)] = indices.dtype() == DType::kInt64
                                           ? indices.data<std::int64_t>()[3 * row + j]
                                           : indices.data<std::int32_t>()[3 * row + j];
  return out;
}

Status check_shapes(const Tensor& boxes, const Tensor& scores, const Tensor& indices) {
  const Shape &b = boxes.shape(), &s = scores.shape(), &i = indices.shape();
  const bool integers = indices.dtype() == DType::kInt64 || indices.dtype() == DType::kInt32;
  const bool floats = boxes.dtype() == DType::kFloat32 && scores.dtype() == DType::kFloat32;
  const bool fit = b.size() == 3 && s.size() == 3 && b[0] == s[0] && b[1] == s[2] && b[2] == 4 &&
                   i.size() == 2 && i[1] == 3;
  if (integers && floats && fit) return {};
  return InvalidArgument(
      "a NonMaxSuppression has float32 boxes [B,S,4] and scores [B,C,S] and int64 indices [N,3]; "
      "got "
      "{} {}, {} {} and {} {}",
      to_string(boxes.dtype()), to_string(b), to_string(scores.dtype()), to_string(s),
      to_string(indices.dtype()), to_string(i));
}

// The larger margins stay; the boxes of the larger score margin are named.
void add_need(const Need& need, std::int64_t lane, std::int64_t left_out, std::int64_t taken,
              SelectionAgreement& out) {
  if (need.size() == 0) return;
  out.box_margin = std::max(out.box_margin, need.box);
  if (out.margin_lane >= 0 && need.score <= out.margin) return;
  out.margin = need.score;
  out.margin_lane = lane;
  out.left_out = left_out;
  out.taken = taken;
}

}  // namespace

Result<SelectionAgreement> compare_suppression(const Tensor& boxes, const Tensor& scores,
                                               const Tensor& indices, const SuppressionSpec& spec) {
  TENONNX_RETURN_IF_ERROR(check_shapes(boxes, scores, indices));
  const std::int64_t images = scores.shape()[0], classes = scores.shape()[1];
  const std::int64_t count = scores.shape()[2];
  SelectionAgreement out;
  out.lanes = images * classes;
  out.k = spec.max_output;
  out.candidates = count;
  out.chosen_by_candidate = indices.shape()[0];

  std::vector<std::vector<std::int64_t>> taken(static_cast<std::size_t>(out.lanes));
  std::set<Triple> seen;
  for (std::int64_t row = 0; row < indices.shape()[0]; ++row) {
    const Triple one = triple_at(indices, row);
    const bool inside = one[0] >= 0 && one[0] < images && one[1] >= 0 && one[1] < classes &&
                        one[2] >= 0 && one[2] < count;
    if (!inside || !seen.insert(one).second) {
      ++out.invalid;
      continue;
    }
    taken[static_cast<std::size_t>(one[0] * classes + one[1])].push_back(one[2]);
  }

  std::int64_t row = 0;
  for (std::int64_t lane = 0; lane < out.lanes; ++lane) {
    const std::int64_t image = lane / classes;
    const Lane values(boxes.data<float>() + image * count * 4, scores.data<float>() + lane * count,
                      count, spec);
    const std::vector<std::int64_t>& theirs = taken[static_cast<std::size_t>(lane)];
    const std::int64_t excess = std::ssize(theirs) - spec.max_output;
    out.invalid += std::max<std::int64_t>(0, excess);
    std::vector<bool> is_in(static_cast<std::size_t>(count));
    for (const std::int64_t i : theirs) {
      is_in[static_cast<std::size_t>(i)] = true;
      add_need(values.to_be_in(i, theirs), lane, -1, i, out);
    }
    for (std::int64_t i = 0; i < count; ++i)
      if (!is_in[static_cast<std::size_t>(i)])
        add_need(values.to_be_out(i, theirs), lane, i, -1, out);
    for (const std::int64_t i : values.choose()) {
      ++out.chosen;
      out.in_common += is_in[static_cast<std::size_t>(i)] ? 1 : 0;
      const bool same =
          row < indices.shape()[0] && triple_at(indices, row) == Triple{image, lane % classes, i};
      out.same_position += same ? 1 : 0;
      ++row;
    }
  }
  return out;
}

Check suppression_check(std::string_view name, const SelectionAgreement& agreement,
                        const Limit& score_limit, const Limit& box_limit) {
  std::string note =
      fmt::format("{} chosen, {} by the candidate, {} of them alike", agreement.chosen,
                  agreement.chosen_by_candidate, agreement.in_common);
  if (agreement.invalid > 0)
    return make_check(fmt::format("set of {}: indices that are none", name),
                      static_cast<double>(agreement.invalid), Comparison::kAtMost,
                      {0, "a triple is in range, named once, and one of max_output of its class"},
                      std::move(note));
  if (agreement.margin_lane >= 0) {
    if (agreement.left_out >= 0)
      note +=
          fmt::format("; box {} of lane {} left out", agreement.left_out, agreement.margin_lane);
    else
      note += fmt::format("; box {} of lane {} taken", agreement.taken, agreement.margin_lane);
    note += fmt::format(", for which a score is off by {:.3g} or a coordinate by {:.3g}",
                        agreement.margin, agreement.box_margin);
  } else if (agreement.same_position < agreement.chosen) {
    note += "; the order differs";
  }
  if (agreement.box_margin > box_limit.value)
    return make_check(fmt::format("set of {}: margin of boxes", name), agreement.box_margin,
                      Comparison::kAtMost, box_limit, std::move(note));
  return make_check(
      fmt::format("set of {}: margin", name), agreement.margin, Comparison::kAtMost,
      {2 * score_limit.value, fmt::format("2 scores, each within {}", score_limit.origin)},
      std::move(note));
}

}  // namespace tenonnx
