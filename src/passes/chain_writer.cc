// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/chain_writer.h"

#include <utility>

#include "passes/fusion.h"

namespace tenonnx {

std::string ChainWriter::insert(const char* op_type, onnx::NodeProto node) {
  std::string out = r_.fresh(base_ + "/" + op_type);
  node.add_output(out);
  r_.insert(at_, std::move(node));
  return out;
}

std::string ChainWriter::add(const char* op_type, const std::vector<std::string>& inputs) {
  return insert(op_type, make_node(op_type, inputs, {}));
}

std::string ChainWriter::constant(double value) {
  return r_.add_constant(base_ + "/constant", float_scalar(value));
}

std::string ChainWriter::mean(const std::string& x, const std::vector<std::int64_t>& axes) {
  onnx::NodeProto node = make_node("ReduceMean", {x}, {});
  if (r_.opset() < 18) {
    set_attribute(node, "axes", axes);
  } else {
    const auto count = static_cast<std::int64_t>(axes.size());
    node.add_input(
        r_.add_constant(base_ + "/axes", Tensor::from<std::int64_t>(DType::kInt64, {count}, axes)));
  }
  set_attribute(node, "keepdims", std::int64_t{1});
  return insert("ReduceMean", std::move(node));
}

std::string ChainWriter::root_mean_square(const std::string& x,
                                          const std::vector<std::int64_t>& axes, float epsilon) {
  const std::string mean_square = mean(add("Mul", {x, x}), axes);
  return add("Sqrt", {add("Add", {mean_square, constant(epsilon)})});
}

}  // namespace tenonnx
