// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/selects.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "model/graph.h"

namespace tenonnx {

bool is_selection(const onnx::NodeProto& node) {
  static constexpr std::array<std::string_view, 6> kSelections = {
      "TopK", "ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "Unique"};
  if (!normalized_domain(node.domain()).empty())
    return node.op_type().find("NMS") != std::string::npos;
  return std::find(kSelections.begin(), kSelections.end(), node.op_type()) != kSelections.end();
}

}  // namespace tenonnx
