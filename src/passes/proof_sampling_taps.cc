// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_sampling_taps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/status.h"
#include "metrics/elements.h"

namespace tenonnx {
namespace {

constexpr std::size_t kMostColours = 64;  // cubic, three axes

// What an output samples of one colour: the sum of weights, and of weights times x, y, z.
struct Tap {
  double weight = 0;
  double place[3] = {0, 0, 0};
};

// Of each output element that any colour reaches: an image of one channel reaches one of 32, and
// taps of all, for an encoder's 8.7 million, are 1 GB.
class Taps {
 public:
  Taps(std::size_t elements, std::size_t colours) : rows_(elements, -1), colours_(colours) {}
  std::size_t elements() const { return rows_.size(); }
  Tap& at(std::size_t element, std::size_t colour) {
    if (rows_[element] < 0) {
      rows_[element] = static_cast<std::int32_t>(taps_.size() / colours_);
      taps_.resize(taps_.size() + colours_);
    }
    return taps_[static_cast<std::size_t>(rows_[element]) * colours_ + colour];
  }
  bool has(std::size_t element) const { return rows_[element] >= 0; }
  // Zeros where nothing reaches it.
  std::span<const Tap> of(std::size_t element) const {
    static const std::array<Tap, kMostColours> kNone{};
    if (!has(element)) return std::span(kNone).first(colours_);
    return std::span(taps_).subspan(static_cast<std::size_t>(rows_[element]) * colours_, colours_);
  }

 private:
  std::vector<std::int32_t> rows_;
  std::size_t colours_;
  std::vector<Tap> taps_;
};

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
    TENONNX_ASSIGN_OR_RETURN(const std::vector<Tensor> base, outputs_of(run, -1, 0));
    std::size_t elements = 0;
    for (const Tensor& tensor : base) elements += static_cast<std::size_t>(tensor.size());
    Taps taps(elements, colours());
    for (std::int32_t c = 0; c < colours_; ++c) {
      for (std::size_t field = 0; field <= level_.size.size(); ++field) {
        TENONNX_ASSIGN_OR_RETURN(const std::vector<Tensor> run_outputs, outputs_of(run, c, field));
        TENONNX_RETURN_IF_ERROR(add(base, run_outputs, static_cast<std::size_t>(c), field, taps));
      }
    }
    return taps;
  }

 private:
  // What differs from the outputs of an image of zeros.
  Status add(const std::vector<Tensor>& base, const std::vector<Tensor>& outputs,
             std::size_t colour, std::size_t field, Taps& taps) const {
    std::size_t first = 0;
    for (std::size_t k = 0; k < base.size(); ++k) {
      if (outputs.size() != base.size() || outputs[k].dtype() != base[k].dtype() ||
          outputs[k].size() != base[k].size())
        return InvalidArgument("the shape of an output depends on it");
      const std::int64_t size = base[k].size();
      visit_elements(outputs[k], [&]<typename T>(const T* is) {
        if constexpr (is_float_element<T>) {
          const T* was = static_cast<const T*>(base[k].raw());
          for (std::int64_t o = 0; o < size; ++o) {
            const double d = (to_double(is[o]) - to_double(was[o])) / unit_;
            if (d == 0) continue;
            Tap& tap = taps.at(first + static_cast<std::size_t>(o), colour);
            if (field == 0)
              tap.weight = d;
            else
              tap.place[field - 1] = d * span_[field - 1];
          }
        }
      });
      first += static_cast<std::size_t>(size);
    }
    return {};
  }

  // Floating outputs. Colour -1: zero everywhere.
  Result<std::vector<Tensor>> outputs_of(const RunOutputs& run, std::int32_t colour,
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
    TENONNX_ASSIGN_OR_RETURN(std::vector<Tensor> tensors, run(inputs));
    std::erase_if(tensors, [](const Tensor& tensor) { return !is_floating(tensor.dtype()); });
    return tensors;
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

Position position_of(std::span<const Tap> taps, std::size_t axes, double tolerance) {
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
  if (!new_taps.ok() || new_taps->elements() != old_taps->elements()) {
    count.problem = new_taps.ok() ? "after: it gives outputs of another size"
                                  : "after: " + new_taps.status().message();
    return count;
  }
  const DType dtype = values.at(input).dtype();
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  const double tolerance =
      std::max(half ? kHalfTapTolerance : kTapTolerance, bound / reader.unit());
  const std::size_t axes = level.size.size();
  for (std::size_t o = 0; o < old_taps->elements(); ++o) {
    if (!old_taps->has(o) && !new_taps->has(o)) continue;
    const std::span<const Tap> were = old_taps->of(o), are = new_taps->of(o);
    bool wrong_here = false;
    for (std::size_t c = 0; c < reader.colours(); ++c) {
      const Tap& was = were[c];
      const Tap& is = are[c];
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
    const Position was = position_of(were, axes, tolerance);
    const Position is = position_of(are, axes, tolerance / 2);
    if (was.known && is.known)
      count.index_difference = std::max(count.index_difference, distance(was, is, axes));
  }
  return count;
}

}  // namespace tenonnx
