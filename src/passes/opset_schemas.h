// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Comparing an operator's schemas at two opsets.
#pragma once

#include <onnx/defs/schema.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenonnx {

// Of ai.onnx; nullptr where there is none.
const onnx::OpSchema* schema_at(const std::string& op, std::int64_t version);

// Whether all but the allowed types agree: attributes with their defaults, inputs, outputs.
bool same_signature(const onnx::OpSchema& a, const onnx::OpSchema& b);

// The formal parameter of an actual one; a variadic parameter, always last, takes the rest.
// nullptr where there are no parameters at all.
const onnx::OpSchema::FormalParameter* formal_parameter(
    const std::vector<onnx::OpSchema::FormalParameter>& formals, int index);

// `type` as "tensor(float)".
bool takes(const onnx::OpSchema::FormalParameter& parameter, const std::string& type);
bool takes_all_of(const onnx::OpSchema::FormalParameter& parameter,
                  const onnx::OpSchema::FormalParameter& other);

}  // namespace tenonnx
