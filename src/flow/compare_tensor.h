// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a comparison knows of one tensor over the inputs, and what it makes of it: the ratio of the
// error to the noise floor decides, with the factor, the limit and its origin stated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "flow/declared_ranges.h"
#include "metrics/limit.h"
#include "metrics/noise_floor.h"
#include "metrics/selection.h"
#include "metrics/signal.h"
#include "metrics/slices.h"
#include "metrics/softmax_sum.h"
#include "metrics/tensor_error.h"
#include "tenonnx/base.h"

namespace tenonnx {

// Figures of one kind inside a tensor that mixes kinds (metrics/slices.h).
struct SliceFigures {
  int axis = 0;
  std::int64_t begin = 0, end = 0;
  double magnitude = 0;
  TensorError error;
  NoiseFloor floor;
};

// Peak signal over noise over a declared range.
struct Psnr {
  double db = 0;
  double peak = 0;
  std::string origin;  // of the peak
};

struct TensorComparison {
  TensorError error;
  NoiseFloor storage;               // this tensor alone, rounded
  NoiseFloor path;                  // everything before it computed in that type too
  std::int64_t path_differing = 0;  // of integers and bool: elements that rounding turns over
  std::optional<std::int64_t> max_ulp;
  std::optional<Psnr> psnr;  // the lowest over the inputs; where a range is declared
  Saturation saturation;
  NonFiniteChange non_finite;
  std::optional<double> softmax_sum, softmax_baseline;  // largest errors of the sum
  std::vector<SliceFigures> slices;
  std::optional<double> unmatched_cosine;  // row by row, selections left as both made them
  std::vector<Check> gates;                // those that were asked for, the worst over the inputs
  std::string worst_input;
  int inputs = 0;

  // Set by judge().
  double ratio =
      0;  // of the error to the floor: the larger of relative L2 and max abs; NaN: unknown
  Check check;
};

struct CompareSettings {
  DType storage = DType::kFloat16;  // kFloat32: the floor is that of float32 computations
  double factor = 8;
  double ceiling = 65504;              // the largest magnitude that the candidate's overflow gives
  std::vector<double> masks;           // magnitudes of constants beyond the storage's range, rising
  bool mixed = false;                  // outputs and results of Concat: look for kinds
  std::vector<std::string> gates;      // "allclose", "psnr": of this tensor
  std::string name;                    // of this tensor, for its gates
  std::optional<DeclaredRange> range;  // of this tensor with this input
  bool softmax = false;
  int softmax_axis = -1;
};

// The largest finite number of `storage`: float16, bfloat16, else float32.
double largest_of(DType storage);

// The error is the noise floor to the last bit, and not 0: the candidate computed what the floor is
// measured with, and the ratio, 1, is none of two measurements.
bool is_floor_itself(const TensorComparison& tensor);

// The figures of one input. InvalidArgument where the two sides' shapes differ; a candidate of
// another floating dtype is taken as float32.
Status add_candidate(TensorComparison& tensor, const Tensor& reference, const Tensor& candidate,
                     const CompareSettings& settings, const std::string& input);
// One computation that is right, in the storage type or at another optimisation level; call it
// after add_candidate of the same input.
Status add_floor(TensorComparison& tensor, const Tensor& reference, const Tensor& floor,
                 const std::string& origin);

// Sets ratio and check. The floor is the larger of `storage` and `path`. The check's value is the
// figure (relative L2 or max abs) that is nearer to its limit.
void judge(TensorComparison& tensor, const std::string& name, const CompareSettings& settings);

// Everything but ratio and check, there and back: for the report and for going on later.
Json to_json(const TensorComparison& tensor);
Result<TensorComparison> tensor_comparison_from_json(const JsonReader& reader);
Result<SelectionAgreement> selection_agreement_from_json(const JsonReader& reader);

}  // namespace tenonnx
