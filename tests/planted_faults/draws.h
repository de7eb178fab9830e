// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Parameters of faults, drawn; and what several classes ask of a node.
#pragma once

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fault.h"

namespace tenonnx::planted {

template <typename T>
const T& one_of(const std::vector<T>& values, Random& random) {
  return values[random() % values.size()];
}

inline bool is_one_of(const std::string& op, std::initializer_list<const char*> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](const char* one) { return op == one; });
}

// The value of a constant of one element.
inline std::optional<float> scalar_of(const Model& model, const std::string& tensor) {
  const auto constant = model.constant(tensor);
  if (!constant.ok() || constant->dtype() != DType::kFloat32 || constant->size() != 1) return {};
  return constant->data<float>()[0];
}

// Which input is a constant of one element; -1 for none.
inline int scalar_input(const Model& model, const onnx::NodeProto& node) {
  for (int i = 0; i < node.input_size(); ++i)
    if (scalar_of(model, node.input(i))) return i;
  return -1;
}

// A float32 tensor of the input, with several elements.
inline bool gives_floats(const Facts& facts, int n) {
  const onnx::NodeProto& node = facts.node(n);
  if (node.output_size() == 0 || !facts.is_computed(node.output(0))) return false;
  const Shape shape = facts.shape(node.output(0));
  return facts.is_float(node.output(0)) && element_count(shape) > 16;
}

// Not those that only name or move what is there.
inline bool computes(const Facts& facts, int n) {
  return gives_floats(facts, n) &&
         !is_one_of(facts.node(n).op_type(),
                    {"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Slice",
                     "Split", "Expand", "Tile", "Gather", "GatherElements", "TopK", "Cast"});
}

}  // namespace tenonnx::planted
