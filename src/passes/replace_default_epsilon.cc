// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// replace_default_epsilon: writes out the epsilon that a node leaves to its default.
//
// before: LayerNormalization(x, scale, bias)
// after:  LayerNormalization<epsilon = 1e-05>(x, scale, bias)
//
// The default is 1e-5 for all of BatchNormalization, GroupNormalization, InstanceNormalization,
// LayerNormalization and RMSNormalization, in every version of them. Converters of vendors read
// another default or none: rknn-toolkit2 2.5.0 ends with KeyError 'LayerNormalization'. Bodies of
// If, Loop and Scan are written too. Class bitwise. Source: ONNX operators up to opset 26.
// Refuses: nothing.
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/status.h"
#include "passes/edit.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {
namespace {

constexpr float kDefault = 1e-5F;
constexpr std::array<std::string_view, 5> kOperators = {"BatchNormalization", "GroupNormalization",
                                                        "InstanceNormalization",
                                                        "LayerNormalization", "RMSNormalization"};

}  // namespace

namespace passes {

Result<PassOutcome> replace_default_epsilon(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("replace_default_epsilon", options, {}));
  PassOutcome outcome;
  for_each_graph(*model.mutable_proto().mutable_graph(), [&](onnx::GraphProto& graph) {
    for (onnx::NodeProto& node : *graph.mutable_node()) {
      const bool has_default = std::any_of(kOperators.begin(), kOperators.end(),
                                           [&](auto op_type) { return is_op(node, op_type); });
      if (!has_default || find_attribute(node, "epsilon") != nullptr) continue;
      set_attribute(node, "epsilon", kDefault);
      ++outcome.applied;
      outcome.sites.push_back({node_label(node), "epsilon = 1e-05 is written out"});
    }
  });
  return outcome;
}

}  // namespace passes
}  // namespace tenonnx
