// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A model from ONNX's own text form, for small graphs that a program makes itself.
#pragma once

#include <string_view>

#include "model/model.h"

namespace tenonnx {

// `text` as onnx/defs/parser.h reads it:
//   <ir_version: 8, opset_import: ["" : 17]>
//   g (float[1,4] x) => (float[1,4] y) { y = Relu(x) }
// InvalidArgument with the parser's message; then as Model::from_proto.
Result<Model> model_from_text(std::string_view text);

}  // namespace tenonnx
