// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Inputs that are made for a region, and the smallest disturbances of inputs and constants, from
// which a noise floor is measured. Seeded: the same on every machine.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "model/model.h"
#include "tenonnx/base.h"

namespace tenonnx {

// How floating inputs are filled, by the values that were captured there (finite ones; mean,
// standard deviation, smallest and largest). Integers and bools always keep the captured values:
// they are indices, shapes and conditions, of which most values are no legal ones.
enum class MadeCase {
  kNormal,        // normal, of the captured mean and deviation, clipped to the captured range
  kEnds,          // the smallest or the largest captured value
  kSmall,         // the captured range times 2^-20: where an epsilon or a sum of constants shows
  kWide,          // normal, 16 times the largest captured magnitude, at least 16
  kZeros,         // zero, where the range holds it, else its end that is nearer
  kNegativeZeros  // the same with the sign set: x + 0 is not x there
};
std::span<const MadeCase> all_made_cases();
std::string_view to_string(MadeCase made);

// `kept`: inputs that keep the captured values (what the pass has proved to be constant).
TensorMap make_inputs(MadeCase made, const TensorMap& captured, const std::set<std::string>& kept,
                      std::uint64_t seed);

// Every finite floating element by one unit in its last place up, down or not at all, at random.
Tensor disturb(const Tensor& tensor, std::uint64_t seed);
TensorMap disturb(const TensorMap& tensors, std::uint64_t seed);
// The same for the floating initializers. Elements with a short mantissa (0.5, 2, 3: 8 bits or
// fewer) stay: they are meant exactly, and Pow by 2.0000002 is another function.
Status disturb_constants(Model& model, std::uint64_t seed);

}  // namespace tenonnx
