// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What convert_opset knows of operators that changed by more than the types that they take.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/inference.h"
#include "tenonnx/base.h"

namespace tenonnx {

// The graph around a node, as an adapter sees it.
class AdaptContext {
 public:
  virtual ~AdaptContext() = default;
  // The value of a tensor that is constant here, nullopt otherwise.
  virtual std::optional<Tensor> constant(std::string_view name) const = 0;
  // nullptr where nothing is known.
  virtual const InferredType* type(std::string_view name) const = 0;
  // A new constant that the node may take; returns its name.
  virtual std::string add_constant(std::string_view base, const Tensor& value) = 0;
};

// `text` says what was done ("" where the node already fits), or why it cannot be done.
struct Adapted {
  bool ok = true;
  std::string text;
};
using Adapt = Adapted (*)(onnx::NodeProto& node, AdaptContext& context);

// The step of an operator of ai.onnx from the schema before `version` to that of `version` and
// back.
struct OpsetAdapter {
  std::string_view op_type;
  int version;
  Adapt up;
  Adapt down;
};

// nullptr where the table has no such step: the step is sound then only if the schemas have the
// same signature.
const OpsetAdapter* find_opset_adapter(std::string_view op_type, int version);

// What an engineer does about an operator that does not exist at an older opset; "" for none known.
std::string_view advice_for_missing(std::string_view op_type);

}  // namespace tenonnx
