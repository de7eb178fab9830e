// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Puts the branch that an If takes in its place.
//
// before: y = If (true) <then_branch: a = Mul(x, k)>    after: y = Mul(x, k)
#pragma once

#include <functional>
#include <optional>
#include <string_view>

namespace onnx {
class GraphProto;
class ModelProto;
}  // namespace onnx

namespace tenonnx {

// `condition` gives the value of a constant bool tensor, or nothing. `graph` is the main graph of
// `model` or a body in it. A name that the branch defines stays where the model defines it once,
// and gets a number else. Returns how many If nodes went.
int inline_branches(onnx::ModelProto& model, onnx::GraphProto& graph,
                    const std::function<std::optional<bool>(std::string_view)>& condition);

}  // namespace tenonnx
