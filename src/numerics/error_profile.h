// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What kind of error a tensor has, beyond its size: beside the rounding that it would have anyway,
// its bias, how it is distributed, and at which values of the input it arises.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/json.h"
#include "tenonnx/base.h"

namespace tenonnx {

// Errors of the elements whose input lies in [from, to).
struct ErrorRange {
  double from = 0, to = 0;
  std::int64_t count = 0;
  double max_abs = 0;
  double max_relative = 0;  // over |y|; elements with y = 0 are left out
  double sum = 0;           // signed
  double bias() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

class ErrorProfile {
 public:
  // Upper ends of the classes of |error| in units of the spacing of `storage` at y; the last one
  // has no end. "equal" is a class of its own.
  static constexpr std::array<double, 6> kUlps = {0.5, 1,  2,
                                                  8,   64, std::numeric_limits<double>::infinity()};
  // `storage`: the type whose rounding is the baseline: float16, bfloat16 or float32.
  explicit ErrorProfile(DType storage) : storage_(storage) {}

  // `input`: the only input of an element-wise operator, of the same shape; undefined where there
  // is none. Elements that are not finite on both sides are counted as lost where the reference
  // is finite, and else as not finite. InvalidArgument where shapes or dtypes differ, or are no
  // floats.
  Status add(const Tensor& reference, const Tensor& candidate, const Tensor& input);

  std::int64_t count() const { return count_; }
  std::int64_t lost() const { return lost_; }  // Inf or NaN where the reference is finite
  // Inf or NaN in the reference: no error can be told there.
  std::int64_t not_finite() const { return not_finite_; }
  // Something was finite in the reference; else no figure below means anything.
  bool compared() const { return count_ + lost_ > 0; }
  double max_abs() const { return max_abs_; }
  double rms() const;
  double bias() const;  // the mean of candidate - reference
  double rounding_max() const { return rounding_max_; }
  double rounding_rms() const;  // of storing the reference
  // rms / rounding_rms: about 1 where the device computes exactly and rounds once. Inf where there
  // is an error although the reference is stored exactly; 0 for none.
  double ratio() const;
  const std::array<std::int64_t, 7>& classes() const { return classes_; }  // equal, then kUlps
  // Where inputs were given: by powers of ten of |x| with its sign, those that occur, rising.
  std::vector<ErrorRange> ranges() const;
  // Where inputs were given: the largest |x| whose result is neither the least nor the greatest of
  // its tensor: beyond it a bounded function (Erf, Sigmoid, Tanh) has settled. 0 for none.
  double candidate_settles() const { return candidate_settles_; }
  double reference_settles() const { return reference_settles_; }

 private:
  DType storage_;
  std::int64_t count_ = 0, lost_ = 0, not_finite_ = 0;
  double max_abs_ = 0, squares_ = 0, sum_ = 0, rounding_max_ = 0, rounding_squares_ = 0;
  std::array<std::int64_t, 7> classes_{};
  std::vector<ErrorRange> ranges_;
  double candidate_settles_ = 0, reference_settles_ = 0;
};

// Figures over nothing are null.
Json to_json(const ErrorProfile& profile);

// The distance between neighbouring numbers of `storage` at `value` (its smallest one at 0).
double spacing(double value, DType storage);

}  // namespace tenonnx
