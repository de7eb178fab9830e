// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_sampling_taps.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "metrics/elements.h"

namespace tenonnx {
namespace {

// What an output samples of one colour: the sum of weights, and of weights times x, y, z.
struct Tap {
  double weight = 0;
  double place[3] = {0, 0, 0};
};
using Taps = std::vector<std::vector<Tap>>;  // of each output element, each colour

double largest(const Tensor& tensor) {
  double most = 0;
  for (const double v : to_doubles(tensor))
    if (std::isfinite(v)) most = std::max(most, std::fabs(v));
  return most;
}

class Reader {
 public:
  Reader(const SampledLevel& level, const ElementMap& map, const std::string& input,
         const TensorMap& values)
      : level_(level), map_(map), input_(input), values_(values), like_(values.at(input)) {
    // A power of two, so that all is exact, and as large as real values: a quantised form has steps
    // for those.
    const double most = largest(like_);
    unit_ = most > 0 ? std::exp2(std::floor(std::log2(most))) : 1;
    each_ = level.mode == "cubic" ? 4 : 2;  // pixels of a point along an axis
    for (std::size_t a = 0; a < level.size.size(); ++a) {
      colours_ *= each_;
      span_[a] = std::exp2(std::ceil(std::log2(static_cast<double>(level.size[a] + 1))));
    }
  }
  std::size_t colours() const { return static_cast<std::size_t>(colours_); }
  double span(std::size_t axis) const { return span_[axis]; }
  double unit() const { return unit_; }

  Result<Taps> read(const RunOutputs& run) const {
    TENONNX_ASSIGN_OR_RETURN(const std::vector<double> base, outputs_of(run, -1, 0));
    Taps taps(base.size(), std::vector<Tap>(colours()));
    for (std::int32_t c = 0; c < colours_; ++c) {
      for (std::size_t field = 0; field <= level_.size.size(); ++field) {
        TENONNX_ASSIGN_OR_RETURN(const std::vector<double> v, outputs_of(run, c, field));
        if (v.size() != base.size()) return InvalidArgument("the shape of an output depends on it");
        for (std::size_t o = 0; o < v.size(); ++o) {
          Tap& tap = taps[o][static_cast<std::size_t>(c)];
          const double d = (v[o] - base[o]) / unit_;
          if (field == 0)
            tap.weight = d;
          else
            tap.place[field - 1] = d * span_[field - 1];
        }
      }
    }
    return taps;
  }

 private:
  // Colour -1: zero everywhere.
  Result<std::vector<double>> outputs_of(const RunOutputs& run, std::int32_t colour,
                                         std::size_t field) const {
    std::vector<double> fill(static_cast<std::size_t>(like_.size()), 0);
    for (std::size_t i = 0; i < level_.pixels.size() && colour >= 0; ++i) {
      const auto element = static_cast<std::size_t>(level_.pixels[i]);
      const auto& place = level_.places[i];
      std::int32_t own = 0;
      for (std::size_t a = level_.size.size(); a-- > 0;) own = own * each_ + place[a] % each_;
      if (own != colour) continue;
      fill[static_cast<std::size_t>(map_.from[element])] =
          unit_ * (field == 0 ? 1 : place[field - 1] / span_[field - 1]);
    }
    TensorMap inputs = values_;
    inputs.insert_or_assign(input_, finite_tensor(like_.dtype(), like_.shape(), fill));
    TENONNX_ASSIGN_OR_RETURN(const std::vector<Tensor> tensors, run(inputs));
    std::vector<double> out;
    for (const Tensor& tensor : tensors) {
      if (!is_floating(tensor.dtype())) continue;
      const std::vector<double> v = to_doubles(tensor);
      out.insert(out.end(), v.begin(), v.end());
    }
    return out;
  }

  const SampledLevel& level_;
  const ElementMap& map_;
  const std::string& input_;
  const TensorMap& values_;
  const Tensor& like_;
  double unit_ = 1;
  double span_[3] = {1, 1, 1};
  std::int32_t each_ = 2, colours_ = 1;
};

// The first pixel of a point along an axis, or the centre of gravity of several points.
struct Position {
  bool known = false, single = true;
  double first[3] = {0, 0, 0}, centre[3] = {0, 0, 0};
};

Position position_of(const std::vector<Tap>& taps, std::size_t axes, double tolerance) {
  Position out;
  double weight = 0;
  for (const Tap& tap : taps) {
    if (!(std::fabs(tap.weight) > 10 * tolerance)) continue;
    weight += tap.weight;
    for (std::size_t a = 0; a < axes; ++a) {
      const double place = tap.place[a] / tap.weight;
      if (!(std::fabs(place - std::round(place)) < 0.1)) out.single = false;
      out.first[a] = out.known ? std::min(out.first[a], std::round(place)) : std::round(place);
      out.centre[a] += tap.place[a];
    }
    out.known = true;
  }
  if (!(std::fabs(weight) > tolerance)) out.known = false;
  for (std::size_t a = 0; a < axes && out.known; ++a) out.centre[a] /= weight;
  return out;
}

double distance(const Position& a, const Position& b, std::size_t axes) {
  double most = 0;
  for (std::size_t i = 0; i < axes; ++i)
    most = std::max(most, std::fabs(a.single && b.single ? a.first[i] - b.first[i]
                                                         : a.centre[i] - b.centre[i]));
  return most;
}

}  // namespace

TapCount compare_taps(const SampledLevel& level, const ElementMap& map, const std::string& input,
                      const TensorMap& values, const RunOutputs& before, const RunOutputs& after,
                      double bound) {
  TapCount count;
  const Reader reader(level, map, input, values);
  const auto old_taps = reader.read(before);
  if (!old_taps.ok()) {
    count.problem = "before: " + old_taps.status().message();
    return count;
  }
  const auto new_taps = reader.read(after);
  if (!new_taps.ok() || new_taps->size() != old_taps->size()) {
    count.problem = new_taps.ok() ? "after: it gives outputs of another size"
                                  : "after: " + new_taps.status().message();
    return count;
  }
  const DType dtype = values.at(input).dtype();
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  const double tolerance =
      std::max(half ? kHalfTapTolerance : kTapTolerance, bound / reader.unit());
  const std::size_t axes = level.size.size();
  for (std::size_t o = 0; o < old_taps->size(); ++o) {
    bool wrong_here = false;
    for (std::size_t c = 0; c < reader.colours(); ++c) {
      const Tap& was = (*old_taps)[o][c];
      const Tap& is = (*new_taps)[o][c];
      if (std::fabs(was.weight) <= tolerance && std::fabs(is.weight) <= tolerance) continue;
      ++count.taps;
      bool same = std::fabs(was.weight - is.weight) <= tolerance;
      for (std::size_t a = 0; a < axes; ++a)
        same = same && std::fabs(was.place[a] - is.place[a]) <= tolerance * reader.span(a);
      if (same) continue;
      ++count.wrong;
      wrong_here = true;
    }
    if (!wrong_here) continue;
    if (count.first_wrong < 0) count.first_wrong = static_cast<std::int64_t>(o);
    const Position was = position_of((*old_taps)[o], axes, tolerance);
    const Position is = position_of((*new_taps)[o], axes, tolerance / 2);
    if (was.known && is.known)
      count.index_difference = std::max(count.index_difference, distance(was, is, axes));
  }
  return count;
}

}  // namespace tenonnx
