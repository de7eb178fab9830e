// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/error_profile.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "metrics/elements.h"
#include "metrics/tensor_error.h"

namespace tenonnx {
namespace {

// Powers of ten with a sign: -2 is (-100, -10], 0 is around zero below 0.001, 2 is [10, 100).
constexpr double kSmallest = 1e-3;
int decade_of(double x) {
  const double magnitude = std::abs(x);
  if (magnitude < kSmallest) return 0;
  const int decade = static_cast<int>(std::floor(std::log10(magnitude))) + 4;
  return x < 0 ? -decade : decade;
}
ErrorRange range_of(int decade) {
  ErrorRange range;
  if (decade == 0) {
    range.from = -kSmallest;
    range.to = kSmallest;
    return range;
  }
  const double low = std::pow(10.0, std::abs(decade) - 4), high = low * 10;
  range.from = decade < 0 ? -high : low;
  range.to = decade < 0 ? -low : high;
  return range;
}

double settles(const float* x, const float* y, std::int64_t count) {
  if (count == 0) return 0;
  const auto [least, greatest] = std::minmax_element(y, y + count);
  double last = 0;
  for (std::int64_t i = 0; i < count; ++i)
    if (y[i] != *least && y[i] != *greatest) last = std::max(last, std::abs(double{x[i]}));
  return last;
}

}  // namespace

double spacing(double value, DType storage) {
  // Digits after the first, and the exponent of the smallest normal number.
  const bool half = storage == DType::kFloat16;
  const int digits = half ? 10 : storage == DType::kBFloat16 ? 7 : 23;
  const int least = half ? -14 : -126;
  const double magnitude = std::abs(value);
  const int exponent = magnitude == 0 ? least : std::max(least, std::ilogb(magnitude));
  return std::ldexp(1.0, exponent - digits);
}

Status ErrorProfile::add(const Tensor& reference, const Tensor& candidate, const Tensor& input) {
  if (reference.shape() != candidate.shape())
    return InvalidArgument("the reference's tensor is {}, the candidate's {}",
                           to_string(reference.shape()), to_string(candidate.shape()));
  TENONNX_ASSIGN_OR_RETURN(const Tensor a, to_float32(reference));
  TENONNX_ASSIGN_OR_RETURN(const Tensor b, to_float32(candidate));
  const float* x = nullptr;
  Tensor widened;
  if (input.dtype() != DType::kUndefined) {
    TENONNX_ASSIGN_OR_RETURN(widened, to_float32(input));
    if (widened.shape() == a.shape()) x = widened.data<float>();
  }
  const float* ref = a.data<float>();
  const float* got = b.data<float>();
  for (std::int64_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(ref[i])) {
      ++not_finite_;
      continue;
    }
    if (!std::isfinite(got[i])) {
      ++lost_;
      continue;
    }
    const double y = ref[i], error = got[i] - y;
    const double rounding = stored(y, storage_) - y;
    ++count_;
    max_abs_ = std::max(max_abs_, std::abs(error));
    squares_ += error * error;
    sum_ += error;
    if (std::isfinite(rounding)) {
      rounding_max_ = std::max(rounding_max_, std::abs(rounding));
      rounding_squares_ += rounding * rounding;
    }
    std::size_t at = 0;
    if (error != 0) {
      const double ulps = std::abs(error) / spacing(y, storage_);
      at = 1 + static_cast<std::size_t>(std::lower_bound(kUlps.begin(), kUlps.end(), ulps) -
                                        kUlps.begin());
    }
    ++classes_[at];
    if (x == nullptr || !std::isfinite(x[i])) continue;
    const ErrorRange range = range_of(decade_of(x[i]));
    auto found = std::find_if(ranges_.begin(), ranges_.end(),
                              [&](const ErrorRange& r) { return r.from == range.from; });
    if (found == ranges_.end()) found = ranges_.insert(ranges_.end(), range);
    ++found->count;
    found->max_abs = std::max(found->max_abs, std::abs(error));
    found->sum += error;
    if (y != 0) found->max_relative = std::max(found->max_relative, std::abs(error / y));
  }
  if (x != nullptr) {
    reference_settles_ = std::max(reference_settles_, settles(x, ref, a.size()));
    candidate_settles_ = std::max(candidate_settles_, settles(x, got, a.size()));
  }
  return {};
}

double ErrorProfile::rms() const {
  return count_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count_));
}
double ErrorProfile::bias() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
double ErrorProfile::rounding_rms() const {
  return count_ == 0 ? 0 : std::sqrt(rounding_squares_ / static_cast<double>(count_));
}
double ErrorProfile::ratio() const {
  if (squares_ == 0) return 0;
  if (rounding_squares_ == 0) return std::numeric_limits<double>::infinity();
  return std::sqrt(squares_ / rounding_squares_);
}

std::vector<ErrorRange> ErrorProfile::ranges() const {
  std::vector<ErrorRange> sorted = ranges_;
  std::sort(sorted.begin(), sorted.end(),
            [](const ErrorRange& a, const ErrorRange& b) { return a.from < b.from; });
  return sorted;
}

Json to_json(const ErrorProfile& profile) {
  const auto figure = [&](double value) {
    return profile.count() == 0 ? Json() : json_number(value);
  };
  Json json = {{"elements", profile.count()},
               {"lost", profile.lost()},
               {"not_finite", profile.not_finite()},
               {"max_abs", figure(profile.max_abs())},
               {"rms", figure(profile.rms())},
               {"bias", figure(profile.bias())},
               {"rounding_max_abs", figure(profile.rounding_max())},
               {"rounding_rms", figure(profile.rounding_rms())},
               {"ratio", figure(profile.ratio())}};
  Json classes = Json::array({{{"ulps", 0}, {"elements", profile.classes()[0]}}});
  for (std::size_t i = 0; i < ErrorProfile::kUlps.size(); ++i)
    classes.push_back(
        {{"ulps", json_number(ErrorProfile::kUlps[i])}, {"elements", profile.classes()[i + 1]}});
  json["distribution"] = std::move(classes);
  Json ranges = Json::array();
  for (const ErrorRange& r : profile.ranges())
    ranges.push_back({{"from", json_number(r.from)},
                      {"to", json_number(r.to)},
                      {"elements", r.count},
                      {"max_abs", json_number(r.max_abs)},
                      {"max_relative", json_number(r.max_relative)},
                      {"bias", json_number(r.bias())}});
  if (!ranges.empty()) {
    json["by_input"] = std::move(ranges);
    json["settles"] = {{"reference", json_number(profile.reference_settles())},
                       {"candidate", json_number(profile.candidate_settles())}};
  }
  return json;
}

}  // namespace tenonnx
