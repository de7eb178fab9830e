// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Models from onnx's text form, for tests.
#pragma once

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include <string>

#include "model/model.h"

namespace tenonnx {

inline onnx::ModelProto parse_proto(const std::string& text) {
  onnx::ModelProto proto;
  const auto status = onnx::OnnxParser::Parse(proto, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return proto;
}

inline Model parse_model(const std::string& text) {
  auto model = Model::from_proto(parse_proto(text));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? std::move(*model) : Model();
}

}  // namespace tenonnx
