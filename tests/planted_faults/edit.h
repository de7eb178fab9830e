// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Changes of one node: other attributes, other constants, operators before and after it.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "model/graph.h"
#include "model/model.h"
#include "model/tensor_proto.h"

namespace tenonnx::planted {

class Edit {
 public:
  Edit(Model& model, int node)
      : model_(model),
        graph_(*model.mutable_proto().mutable_graph()),
        node_(*graph_.mutable_node(node)) {}

  onnx::NodeProto& node() { return node_; }
  Model& model() { return model_; }
  onnx::GraphProto& graph() { return graph_; }

  std::string constant(const Tensor& tensor) {
    std::string name = next();
    *graph_.add_initializer() = to_tensor_proto(tensor, name);
    return name;
  }
  std::string floats(const std::vector<float>& values, Shape shape) {
    return constant(Tensor::from<float>(DType::kFloat32, std::move(shape), values));
  }
  std::string integers(const std::vector<std::int64_t>& values) {
    return constant(Tensor::from<std::int64_t>(DType::kInt64,
                                               {static_cast<std::int64_t>(values.size())}, values));
  }
  std::string scalar(float value) { return floats({value}, {}); }

  static void set(onnx::NodeProto& node, const char* name, std::int64_t value) {
    onnx::AttributeProto& one = attribute(node, name);
    one.set_type(onnx::AttributeProto::INT);
    one.set_i(value);
  }
  static void set(onnx::NodeProto& node, const char* name, float value) {
    onnx::AttributeProto& one = attribute(node, name);
    one.set_type(onnx::AttributeProto::FLOAT);
    one.set_f(value);
  }
  static void set(onnx::NodeProto& node, const char* name, const std::string& value) {
    onnx::AttributeProto& one = attribute(node, name);
    one.set_type(onnx::AttributeProto::STRING);
    one.set_s(value);
  }
  static void set(onnx::NodeProto& node, const char* name,
                  const std::vector<std::int64_t>& values) {
    onnx::AttributeProto& one = attribute(node, name);
    one.set_type(onnx::AttributeProto::INTS);
    one.clear_ints();
    for (const std::int64_t v : values) one.add_ints(v);
  }

  // A node of its own; its output is returned.
  onnx::NodeProto& add(const char* op, const std::vector<std::string>& inputs) {
    onnx::NodeProto& made = *graph_.add_node();
    made.set_op_type(op);
    made.set_name(next());
    for (const std::string& name : inputs) made.add_input(name);
    made.add_output(made.name() + "_out");
    return made;
  }
  std::string apply(const char* op, const std::vector<std::string>& inputs) {
    return add(op, inputs).output(0);
  }
  std::string cast(const std::string& input, std::int64_t to) {
    onnx::NodeProto& made = add("Cast", {input});
    set(made, "to", to);
    return made.output(0);
  }

  // The node gives its result under another name, which is returned; finish() gives the old name to
  // what has been made of it.
  std::string take_output() {
    taken_ = node_.output(0);
    node_.set_output(0, next());
    return node_.output(0);
  }
  void finish(const std::string& made) {
    for (onnx::NodeProto& one : *graph_.mutable_node())
      if (one.output_size() > 0 && one.output(0) == made) one.set_output(0, taken_);
  }

 private:
  static onnx::AttributeProto& attribute(onnx::NodeProto& node, const char* name) {
    for (onnx::AttributeProto& one : *node.mutable_attribute())
      if (one.name() == name) return one;
    onnx::AttributeProto& made = *node.add_attribute();
    made.set_name(name);
    return made;
  }
  std::string next() { return "planted/" + std::to_string(count_++); }

  Model& model_;
  onnx::GraphProto& graph_;
  onnx::NodeProto& node_;
  std::string taken_;
  int count_ = 0;
};

}  // namespace tenonnx::planted
