// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Constants as numbers: read as double or int64, combined with broadcasting, rounded to their
// dtype.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "passes/rewriter.h"

namespace tenonnx {

// Values of a floating-point tensor (float16, bfloat16, float32, float64); nullopt of any other.
std::optional<std::vector<double>> doubles(const Tensor& tensor);
// Rounded to nearest in `dtype`, a floating-point one.
Tensor from_doubles(DType dtype, const Shape& shape, const std::vector<double>& values);

// Values of an int64 or int32 tensor; nullopt of any other.
std::optional<std::vector<std::int64_t>> integers_of(const Tensor& tensor);
// int64, rank 1: a shape, axes, sizes.
Tensor int64_vector(const std::vector<std::int64_t>& values);

// The numpy shape of an element-wise result; nullopt where the two do not broadcast, or a
// dimension is not known.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);
// An element-wise result in double precision, rounded once to the dtype that a and b share. nullopt
// where dtypes differ, the shapes do not broadcast, or an element is not finite, or is below the
// dtype's smallest normal number without being 0: rounding it would lose most of its digits.
std::optional<Tensor> combine(const Tensor& a, const Tensor& b,
                              const std::function<double(double, double)>& op);

// A number tensor that is not empty, every element `value`, of floating ones with its sign of zero.
bool holds_only(const Tensor& tensor, double value);
// Whether every element of the constant `name` is `value` (of -0.0 and 0.0 the sign counts).
bool is_filled_with(const Rewriter& r, std::string_view name, double value);
// Whether broadcasting against a tensor of shape `other` (-1: unknown) leaves that shape as it is.
bool broadcasts_into(const Shape& shape, const Shape& other);

}  // namespace tenonnx
