// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the passes that fuse and decompose share: constants, casts that do nothing, uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/rewriter.h"

namespace tenonnx {

// Within 1e-6 of the exact value, relative. A constant that is rounded to float32 once is within
// 6e-8, one that was printed with seven digits or computed in two float32 steps within 5e-7; the
// constants of other formulas (1.702, 0.7978 for 0.79788) are 1e-4 and more away.
bool is_near(double value, double exact);

// The value of a constant of one element that leaves the shape of `beside` as it is when
// both meet in an element-wise operator: of rank 0, or of a rank that `beside` has.
std::optional<double> scalar_beside(const Rewriter& r, std::string_view name,
                                    std::string_view beside);

// The tensor that `name` is a cast of to the dtype that it has already, else `name`; the casts are
// added to `nodes`.
std::string_view uncast(const Rewriter& r, std::string_view name, std::vector<int>& nodes);

// The other operand of a node with two inputs, "" where both are `name`.
std::string_view other_operand(const onnx::NodeProto& node, std::string_view name);

// Why `nodes` cannot become one node that makes the outputs of `last`: "'t' is used elsewhere too",
// "'t' is an output of the graph"; "" where they can.
std::string used_outside(const Rewriter& r, const std::vector<int>& nodes, int last);

// Why the model cannot hold an operator yet, and what to do: "" where it can.
std::string opset_reason(const Rewriter& r, std::string_view op_type, int opset);
// The same for a tensor that the rule takes in float32 alone; `why` is the reason for that.
std::string float32_reason(const Rewriter& r, std::string_view name, std::string_view why);

// float32, rank 0.
Tensor float_scalar(double value);

}  // namespace tenonnx
