// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/text.h"

#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include <exception>
#include <string>

#include "base/status.h"

namespace tenonnx {

Result<Model> model_from_text(std::string_view text) {
  onnx::ModelProto proto;
  try {
    const std::string source(text);
    const auto status = onnx::OnnxParser::Parse(proto, source.c_str());
    if (!status.IsOK()) return InvalidArgument("ONNX text: {}", status.ErrorMessage());
  } catch (const std::exception& e) {
    return InvalidArgument("ONNX text: {}", e.what());
  }
  return Model::from_proto(std::move(proto), {}, "ONNX text");
}

}  // namespace tenonnx
