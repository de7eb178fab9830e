// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a device's compiler takes: the "supported" section of a device file, and whether a node is
// within it. Format: docs/reference/device.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "device/device.h"

namespace tenonnx {

// One tensor that a node reads or writes.
struct OperandFacts {
  std::string name;  // "" for an optional one that is left out
  bool constant = false;
  bool has_rank = false;
  DType dtype = DType::kUndefined;
  Shape shape;  // -1: not static
};

// What the rules ask of a node, whoever holds it (a model, or ONNX Runtime's graph).
struct NodeFacts {
  std::string op_type;
  std::string domain;      // "" is ai.onnx
  std::int64_t opset = 0;  // of that domain, as the model imports it
  bool has_bodies = false;
  std::vector<OperandFacts> inputs, outputs;
  // An attribute as text: a string as it is, an integer in decimal; nullopt where it is absent.
  std::function<std::optional<std::string>(std::string_view)> attribute;
};

struct Support {
  const SupportRule* rule = nullptr;  // nullptr: not supported
  std::string why_not;                // "rank 6 of 'x' is above 5"; "" where it is supported
};

// The first rule that takes the node, else the reason of the rule that came nearest.
Support find_support(const std::vector<SupportRule>& rules, const NodeFacts& node);

Result<std::vector<SupportRule>> supported_from_json(const JsonReader& section);

}  // namespace tenonnx
