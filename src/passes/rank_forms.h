// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Shapes of fewer dimensions for the same row-major data: what collapse_rank calculates with.
//
// A form of a shape merges neighbouring dimensions and leaves out or adds dimensions of 1. The
// places between dimensions larger than 1 are named by the number of elements behind them: of
// [1,300,8,3,4,2] the cut 24 lies between 8 and 3. A form keeps some cuts and merges at the others:
// with the cuts {2, 192} it is [300,96,2].
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

using Cuts = std::set<std::int64_t>;

// The product of the dimensions behind `axis`. Every dimension must be at least 1.
std::int64_t elements_behind(const Shape& shape, std::size_t axis);
// All cuts of a shape, without 1 and the number of its elements.
Cuts all_cuts(const Shape& shape);
// The form with just these cuts and no dimension of 1; [1] for one element.
Shape form_of(std::int64_t elements, const Cuts& cuts);
// Whether `form` is a form of `shape` that keeps `cuts`.
bool is_form(const Shape& form, const Shape& shape, const Cuts& cuts);
// Adds the cuts on both sides of an axis larger than 1.
void isolate(const Shape& shape, std::size_t axis, Cuts& cuts);
// The dimension of `form` that is just this axis (larger than 1) of `shape`.
std::optional<std::size_t> dimension_of(const Shape& form, const Shape& shape, std::size_t axis);

// ---- Broadcasting of `input` to `output`, as NumPy does it, in output's dimensions larger than 1.
// One flag for each of those: whether the input has that dimension (true) or a 1 there.
std::vector<bool> broadcast_flags(const Shape& input, const Shape& output);
// The cuts of `output` where the flags change.
Cuts flag_cuts(const std::vector<bool>& flags, const Shape& output);
// The input's shape against `form` of the output: full dimensions where the flags hold, 1
// elsewhere, without leading 1s. `form` must keep flag_cuts().
Shape operand_form(const std::vector<bool>& flags, const Shape& output, const Shape& form);

// Copies, with every dimension of 1 repeated as `shape` says.
Tensor broadcast_to(const Tensor& tensor, const Shape& shape);

}  // namespace tenonnx
