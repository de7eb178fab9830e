// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/fault_kind.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/status.h"
#include "flow/compare_tensor.h"
#include "numerics/fault_bounds.h"
#include "numerics/values.h"
#include "ort/capture.h"
#include "ort/executor.h"

namespace tenonnx {
namespace {

using Values = std::vector<double>;

// A hypothesis that leaves more than this of the error may be a near miss: those that cost more are
// computed too.
constexpr double kExact = 0.99;

class Classifier {
 public:
  explicit Classifier(const PieceCase& one)
      : one_(one), expected_(values_of(one.expected)), got_(values_of(one.got)) {
    error_ = squared_distance(got_, expected_);
    for (const double v : got_)
      if (std::isfinite(v)) energy_ += v * v;
    for (const double v : expected_) {
      if (!std::isfinite(v)) continue;
      const double d = stored(v, one.storage) - v;
      if (std::isfinite(d)) rounding_ += d * d;
    }
  }

  Result<KindFinding> run() {
    if (!try_range()) {
      try_affine();
      try_bounds();
      try_precision();
      try_places();
      TENONNX_RETURN_IF_ERROR(try_variants());
      TENONNX_RETURN_IF_ERROR(try_bounded_inputs());
      TENONNX_RETURN_IF_ERROR(try_bounded_squares());
    }
    if (best_.explained < kExplains) name_by_operator();
    return best_;
  }

 private:
  const onnx::NodeProto& last() const {
    const auto& nodes = one_.piece->proto().graph().node();
    return nodes.Get(nodes.size() - 1);
  }

  // The share that is explained where `left` is not: of the error, and of what the device gave. Of
  // a device that gives next to nothing the error is the right values, and any hypothesis of next
  // to nothing would take it away.
  double share_of(double left) const {
    if (left <= 0) return 1;
    return 1 - std::sqrt(left / std::min(error_, energy_));
  }

  // The first of two that explain alike wins: simple ones are tried first.
  void propose(FaultKind kind, const Values& hypothesis, const std::string& text) {
    if (hypothesis.size() != got_.size() || error_ <= 0) return;
    // What rounding leaves counts as explained.
    const double left = std::max(0.0, squared_distance(got_, hypothesis) - 4 * rounding_);
    const double explained = share_of(left);
    // Or it leaves a tenth of what the other leaves, however little that is: a factor comes near
    // what exact hypotheses reach where values vary little.
    const bool nearer = explained >= kExplains && left < best_left_ / 100;
    if (explained <= best_.explained + 0.02 && !nearer) return;
    best_ = {kind, text, explained};
    best_left_ = left;
  }

  // Values that the device's type cannot hold, on either end of the piece.
  bool try_range() {
    std::size_t broken = 0;
    for (std::size_t i = 0; i < got_.size(); ++i)
      broken += std::isfinite(expected_[i]) && !std::isfinite(got_[i]) ? 1 : 0;
    const double range = largest_of(one_.storage);
    double input = 0;
    std::string name;
    for (const auto& [key, tensor] : one_.inputs)
      if (is_floating(tensor.dtype()))
        if (const double most = largest_magnitude(values_of(tensor)); most > input)
          input = most, name = key;
    const double output = largest_magnitude(expected_);
    if (input > range)
      best_ = {FaultKind::kRange,
               fmt::format("its input '{}' reaches {:.4g}, beyond the {:.6g} of {}", name, input,
                           range, to_string(one_.storage)),
               1};
    else if (output > range)
      best_ = {FaultKind::kRange,
               fmt::format("its result reaches {:.4g}, beyond the {:.6g} of {}", output, range,
                           to_string(one_.storage)),
               1};
    else if (broken > 0)
      best_ = {FaultKind::kRange,
               fmt::format("{} of {} elements are Inf or NaN where the reference is finite", broken,
                           got_.size()),
               1};
    else
      return false;
    return true;
  }

  // got = a * expected + b, least squares; a alone, b alone, both.
  void try_affine() {
    double n = 0, e = 0, g = 0, ee = 0, eg = 0;
    for (std::size_t i = 0; i < got_.size(); ++i) {
      if (!std::isfinite(got_[i]) || !std::isfinite(expected_[i])) continue;
      ++n;
      e += expected_[i];
      g += got_[i];
      ee += expected_[i] * expected_[i];
      eg += expected_[i] * got_[i];
    }
    // Two values are on a line whatever happened.
    if (n < 4 || ee <= 0) return;
    const auto apply = [&](double a, double b) {
      Values out(expected_);
      for (double& v : out) v = a * v + b;
      return out;
    };
    const double a = eg / ee, b = (g - e) / n;
    // A factor of nothing is no scale.
    if (a != 0)
      propose(FaultKind::kScale, apply(a, 0), fmt::format("{:.6g} times the right values", a));
    const FaultKind sum = one_.epsilon_follows ? FaultKind::kEpsilon : FaultKind::kOffset;
    propose(sum, apply(1, b),
            fmt::format("{:.4g} more than the right values{}", b,
                        one_.epsilon_follows ? ", under a root: another epsilon" : ""));
  }

  // got = the right values cut off at the extremes that it has.
  void try_bounds() {
    double low = INFINITY, high = -INFINITY;
    for (const double v : got_)
      if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
    std::size_t beyond = 0;
    Values out(expected_);
    for (double& v : out) {
      beyond += v < low || v > high ? 1 : 0;
      v = std::clamp(v, low, high);
    }
    // One value is no range.
    if (beyond > 0 && low < high)
      propose(FaultKind::kRange, out,
              fmt::format("the right values cut off at {:.5g} and {:.5g}", low, high));
  }

  void try_precision() {
    struct Form {
      const char* text;
      double (*round)(double);
    };
    static constexpr Form kForms[] = {
        {"float16", [](double v) { return stored(v, DType::kFloat16); }},
        {"bfloat16", [](double v) { return stored(v, DType::kBFloat16); }},
        {"whole numbers, to nearest", [](double v) { return std::nearbyint(v); }},
        {"whole numbers, towards zero", [](double v) { return std::trunc(v); }},
        {"whole numbers, downwards", [](double v) { return std::floor(v); }},
    };
    for (const Form& form : kForms) {
      Values out(expected_);
      for (double& v : out) v = form.round(v);
      propose(FaultKind::kPrecision, out, fmt::format("the right values rounded to {}", form.text));
    }
    // 8 bits over the range of the tensor, symmetric and from least to greatest.
    const double most = largest_magnitude(expected_);
    if (most > 0) {
      Values out(expected_);
      for (double& v : out) v = std::nearbyint(v / most * 127) * most / 127;
      propose(FaultKind::kPrecision, out, "the right values in 8 bits");
    }
    try_levels();
    // The other way round: whole numbers became what they were rounded of.
    const bool whole = std::all_of(expected_.begin(), expected_.end(), [](double v) {
      return !std::isfinite(v) || v == std::nearbyint(v);
    });
    if (!whole || !is_floating(one_.got.dtype())) return;
    double farthest = 0;
    for (std::size_t i = 0; i < got_.size(); ++i)
      farthest = std::max(farthest, std::fabs(got_[i] - expected_[i]));
    if (farthest > 0 && farthest <= 1 && best_.explained < kExplains)
      best_ = {FaultKind::kPrecision, "whole numbers that were not rounded", 1};
  }

  // As few values as 8 bits have, each the nearest to what is right: a scale that is not known.
  void try_levels() {
    const auto levels = [](const Values& values) {
      Values out;
      std::copy_if(values.begin(), values.end(), std::back_inserter(out),
                   [](double v) { return std::isfinite(v); });
      std::sort(out.begin(), out.end());
      out.erase(std::unique(out.begin(), out.end()), out.end());
      return out;
    };
    const Values got = levels(got_);
    if (got.size() < 3 || got.size() > 256 || levels(expected_).size() < 4 * got.size()) return;
    Values nearest(expected_);
    for (double& v : nearest) {
      const auto above = std::lower_bound(got.begin(), got.end(), v);
      if (above == got.end())
        v = got.back();
      else if (above != got.begin() && v - *(above - 1) < *above - v)
        v = *(above - 1);
      else
        v = *above;
    }
    propose(FaultKind::kPrecision, nearest,
            fmt::format("the right values on {} levels", got.size()));
  }

  // The right values in other places.
  void try_places() {
    const Shape& shape = one_.expected.shape();
    const auto rank = shape.size();
    if (rank >= 2 && rank <= 5) {
      std::vector<std::size_t> perm(rank);
      std::iota(perm.begin(), perm.end(), std::size_t{0});
      while (std::next_permutation(perm.begin(), perm.end()))
        propose(FaultKind::kLayout, permuted(shape, perm),
                fmt::format("the right values transposed by [{}] and read in the old shape",
                            fmt::join(perm, ", ")));
    }
    if (rank >= 1 && (shape.back() == 2 || shape.back() == 4)) {
      const auto last = static_cast<std::size_t>(shape.back());
      Values out(expected_);
      for (std::size_t i = 0; i + last <= out.size(); i += last)
        for (std::size_t k = 0; k + 1 < last; k += 2) std::swap(out[i + k], out[i + k + 1]);
      propose(FaultKind::kLayout, out, "the two coordinates of each pair exchanged");
    }
    Values a(expected_), b(got_);
    const auto finite = [](double v) { return !std::isfinite(v); };
    std::erase_if(a, finite);
    std::erase_if(b, finite);
    if (a.size() != b.size() || error_ <= 0 || a.size() < 4) return;
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    const double explained = share_of(std::max(0.0, squared_distance(a, b) - 4 * rounding_));
    if (explained > std::max(kExplains, best_.explained + 0.02))
      best_ = {FaultKind::kLayout, "the same values in other places", explained};
  }

  Values permuted(const Shape& shape, const std::vector<std::size_t>& perm) const {
    const std::size_t rank = shape.size();
    std::vector<std::size_t> stride(rank, 1), lengths(rank), at(rank, 0);
    for (std::size_t d = rank - 1; d > 0; --d)
      stride[d - 1] = stride[d] * static_cast<std::size_t>(shape[d]);
    for (std::size_t d = 0; d < rank; ++d) lengths[d] = static_cast<std::size_t>(shape[perm[d]]);
    Values out(expected_.size());
    for (double& v : out) {
      std::size_t from = 0;
      for (std::size_t d = 0; d < rank; ++d) from += at[d] * stride[perm[d]];
      v = expected_[from];
      for (std::size_t d = rank; d-- > 0;) {
        if (++at[d] < lengths[d]) break;
        at[d] = 0;
      }
    }
    return out;
  }

  Result<std::optional<Values>> compute(const Model& model, const TensorMap& inputs) const {
    const auto cpu = make_cpu_executor();
    LoadOptions load;
    load.optimization = Optimization::kDisabled;
    load.intra_op_threads = 1;
    auto graph = cpu->load(model, load);
    if (!graph.ok()) return std::optional<Values>();  // a variant that does not exist
    auto made = (*graph)->run(inputs_of(**graph, inputs));
    if (!made.ok()) return std::optional<Values>();
    const auto found = made->find(one_.output);
    if (found == made->end() || found->second.size() != one_.expected.size())
      return std::optional<Values>();
    return std::optional<Values>(values_of(found->second));
  }

  Status try_variants() {
    for (const PieceVariant& variant : variants_of(one_)) {
      TENONNX_ASSIGN_OR_RETURN(const auto values, compute(variant.model, one_.inputs));
      if (values)
        propose(variant.kind, *values,
                variant.text + (variant.text.find(" instead of ") == std::string::npos
                                    ? ""
                                    : " gives what the device gave"));
    }
    return {};
  }

  // Saturation on the way in, above or on both sides.
  Status try_bounded_inputs() {
    if (best_.explained >= kExact || one_.inputs.size() != 1) return {};
    const auto& [name, input] = *one_.inputs.begin();
    if (input.dtype() != DType::kFloat32) return {};
    const double most = largest_magnitude(values_of(input));
    for (const bool both : {false, true}) {
      TENONNX_ASSIGN_OR_RETURN(
          const auto found,
          nearest_bound(most, most / 64, got_, [&, &key = name, &fed = input](double bound) {
            return compute(*one_.piece, {{key, cut_off(fed, bound, both)}});
          }));
      if (found)
        propose(FaultKind::kRange, found->values,
                fmt::format("what the piece makes of inputs that are cut off near {:.3g}{}",
                            found->bound, both ? "" : ", above alone"));
    }
    return {};
  }

  // Squares that the device's type does not hold, in a norm that it writes out.
  Status try_bounded_squares() {
    if (best_.explained >= kExact) return {};
    const SquaresOfNorm squares(one_);
    if (squares.largest() <= 0) return {};
    TENONNX_ASSIGN_OR_RETURN(
        const auto found,
        nearest_bound(squares.largest(), squares.largest() / 1024, got_,
                      [&](double bound) { return compute(squares.cut_off(bound), one_.inputs); }));
    if (found)
      propose(FaultKind::kRange, found->values,
              fmt::format("what it gives with its squares cut off near {:.3g}", found->bound));
    return {};
  }

  static Tensor cut_off(const Tensor& input, double bound, bool both) {
    Tensor cut = input.clone();
    float* data = cut.mutable_data<float>();
    const float high = static_cast<float>(bound), low = both ? -high : -INFINITY;
    for (std::int64_t i = 0; i < cut.size(); ++i) data[i] = std::clamp(data[i], low, high);
    return cut;
  }

  // No hypothesis: what the operator is says what it can be.
  void name_by_operator() {
    const std::string& op = last().op_type();
    best_.explained = 0;
    if (op.starts_with("Gather") || op.starts_with("Scatter") || op == "OneHot" ||
        !is_floating(one_.expected.dtype())) {
      best_.kind = FaultKind::kIndices;
      best_.text = "other elements than the reference's indices choose";
      return;
    }
    if (op == "GridSample") {
      best_.kind = FaultKind::kSampling;
      best_.text = "no known mistake with its coordinates gives what the device gave";
      return;
    }
    const bool linear = op == "Conv" || op == "ConvTranspose" || op == "MatMul" || op == "Gemm" ||
                        op == "Add" || op == "Mul" || op == "Sub" || op == "Div" ||
                        op == "LayerNormalization" || op == "BatchNormalization";
    bool constants = false;
    for (const onnx::TensorProto& tensor : one_.piece->proto().graph().initializer())
      constants |= tensor.data_type() == onnx::TensorProto::FLOAT && tensor.dims_size() > 0;
    if (linear && constants) {
      best_.kind = FaultKind::kWeights;
      best_.text =
          "no change of scale, place or precision gives it: other constants, or a wrong sum";
      return;
    }
    best_.kind = FaultKind::kKernel;
    best_.text = "no known mistake gives what the device gave";
  }

  const PieceCase& one_;
  const Values expected_, got_;
  double error_ = 0, rounding_ = 0, energy_ = 0;  // sums of squares; energy_: of what it gave
  KindFinding best_;
  double best_left_ = INFINITY;
};

}  // namespace

Result<KindFinding> kind_of(const PieceCase& one) {
  if (one.expected.shape() != one.got.shape())
    return KindFinding{FaultKind::kLayout,
                       fmt::format("its result has the shape {}, the reference's {}",
                                   to_string(one.got.shape()), to_string(one.expected.shape())),
                       1};
  return Classifier(one).run();
}

}  // namespace tenonnx
