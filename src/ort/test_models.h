// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Models for the tests of this module, from ONNX's text form.
#pragma once

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include <string>

#include "model/model.h"

namespace tenonnx {

// Nodes without a name are called node_0, node_1, ... in order.
inline onnx::ModelProto proto_from_text(const std::string& text) {
  onnx::ModelProto proto;
  const auto status = onnx::OnnxParser::Parse(proto, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  int i = 0;
  for (auto& node : *proto.mutable_graph()->mutable_node()) {
    if (node.name().empty()) node.set_name("node_" + std::to_string(i));
    ++i;
  }
  return proto;
}

inline Model model_from_text(const std::string& text) {
  auto model = Model::from_proto(proto_from_text(text));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? std::move(model).value() : Model();
}

// A model that the loader would refuse: for what ONNX Runtime says of it.
inline Model unchecked_model_from_text(const std::string& text) {
  Model model;
  model.mutable_proto() = proto_from_text(text);
  return model;
}

}  // namespace tenonnx
