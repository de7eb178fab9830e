// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// How far a candidate tensor is from a reference tensor. Pure functions; all sums in double.
//
// Inf and NaN are counted, not averaged: one Inf would make every figure Inf or NaN and hide the
// rest. The error figures cover the elements that are finite on both sides; the counts say what was
// left out, and finite_check turns "Inf or NaN where the reference is finite" into a failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "metrics/limit.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct NonFiniteCount {
  std::int64_t inf = 0;  // of either sign
  std::int64_t nan = 0;
};

// Indices are flat, in row-major order; -1 where there is none.
struct TensorError {
  std::int64_t count = 0;      // elements of one side
  std::int64_t compared = 0;   // of these, finite on both sides: the four figures are over them
  std::int64_t differing = 0;  // elements that are not equal (NaN equals NaN, +0 equals -0)
  // Absent for integers and bool, and where nothing was compared. An integer tensor of a detector
  // holds labels, indices or quantised codes, and the cosine of labels is close to 1 whatever they
  // are: compare those with `differing`, detections with match_detections, and codes after
  // dequantisation. Labels that a model delivers as float32 are labels all the same.
  std::optional<double> cosine;       // 1 where both are all zero, 0 where only one is
  std::optional<double> relative_l2;  // |candidate - reference| / |reference|; Inf for 0 reference
  double max_abs = 0;
  std::int64_t max_abs_index = -1;
  double mean_abs = 0;
  NonFiniteCount reference, candidate;
  // Inf or NaN in the candidate where the reference is finite. A failure wherever it is not 0.
  std::int64_t broken = 0;
  std::int64_t first_broken_index = -1;
  // The reverse, and Inf against -Inf or NaN: the candidate lost a masked constant, as fp16
  // saturation turns an anchor of Inf into 65504. Reported; not a failure by itself.
  std::int64_t masked_changed = 0;
};

// Any dtype. InvalidArgument where shapes or dtypes differ (the message has both) or a side is
// undefined. A float16 candidate is compared with a float32 reference after to_float32().
Result<TensorError> compare_tensors(const Tensor& reference, const Tensor& candidate);

// Joins the figures of one tensor over several images: counts add up; cosine takes the minimum,
// relative L2 and maximum absolute error their maximum, the mean absolute error the mean. Indices
// are those of the image where the extreme (or the first broken element) was found.
void join_worst(TensorError& total, const TensorError& next);

// Figures of the rows along the last axis: diagnosis only ("one query of 300 is off"), not to be
// gated: a row of small norm has a large relative error that means nothing.
struct RowError {
  std::int64_t rows = 0;
  double min_cosine = 1;
  std::int64_t min_cosine_row = -1;
  double max_relative_l2 = 0;
  std::int64_t max_relative_l2_row = -1;
};
// Floating dtypes only (else InvalidArgument). Rows without a finite pair are skipped.
Result<RowError> compare_rows(const Tensor& reference, const Tensor& candidate);

struct Identity {
  bool identical = true;
  std::int64_t differing = 0;
  std::int64_t first_index = -1;  // of a difference
  std::int64_t zero_signs = 0;    // of the differing, those that are only +0 against -0
};
// Element by element, bit for bit, with one exception: every NaN equals every NaN, since payload
// and sign of a NaN depend on the instruction and not on the computation. +0 and -0 differ: a sum
// in another order shows itself by that. InvalidArgument as compare_tensors.
Result<Identity> compare_identical(const Tensor& reference, const Tensor& candidate);

// float16, bfloat16, float64 and float32 as float32 (float64 rounded to nearest); a float32 tensor
// is returned as it is, aliasing. InvalidArgument for integers.
Result<Tensor> to_float32(const Tensor& tensor);

// "<tensor>: Inf or NaN where the reference is finite" <= 0.
Check finite_check(std::string_view tensor, const TensorError& error);

// All the fields under their names; absent figures are left out.
Json to_json(const TensorError& error);

}  // namespace tenonnx
