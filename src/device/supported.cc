// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "device/supported.h"

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "base/status.h"
#include "device/read.h"

namespace tenonnx {
namespace {

bool has(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string operand_problem(const SupportRule& rule, const OperandFacts& operand) {
  if (operand.name.empty() || operand.constant) return "";
  const auto is = [&](DType dtype) { return operand.dtype == dtype; };
  if (std::none_of(rule.dtypes.begin(), rule.dtypes.end(), is))
    return fmt::format("'{}' is {}", operand.name, to_string(operand.dtype));
  const std::int64_t count = element_count(operand.shape);
  if (!operand.has_rank || count < 0)
    return fmt::format("'{}' has no static shape: {}", operand.name,
                       operand.has_rank ? to_string(operand.shape) : "unknown");
  if (const auto rank = static_cast<std::int64_t>(operand.shape.size()); rank > rule.max_rank)
    return fmt::format("'{}' has rank {}, above {}", operand.name, rank, rule.max_rank);
  if (count > rule.max_elements)
    return fmt::format("'{}' has {} elements, above {}", operand.name, count, rule.max_elements);
  return "";
}

// "" where the rule, which names the operator, takes the node.
std::string problem(const SupportRule& rule, const NodeFacts& node) {
  if (node.has_bodies) return "it holds other graphs";
  if (node.opset < rule.min_opset || node.opset > rule.max_opset)
    return fmt::format("opset {} is outside of {} to {}", node.opset, rule.min_opset,
                       rule.max_opset);
  for (const auto& [name, allowed] : rule.attributes) {
    const auto value = node.attribute ? node.attribute(name) : std::nullopt;
    if (value && !has(allowed, *value))
      return fmt::format("{} is '{}', not '{}'", name, *value, fmt::join(allowed, "', '"));
  }
  for (const std::int64_t position : rule.constant_inputs) {
    const auto at = static_cast<std::size_t>(position);
    if (at < node.inputs.size() && !node.inputs[at].name.empty() && !node.inputs[at].constant)
      return fmt::format("input {} ('{}') is computed, not a constant", position,
                         node.inputs[at].name);
  }
  for (const auto* side : {&node.inputs, &node.outputs})
    for (const OperandFacts& operand : *side)
      if (std::string text = operand_problem(rule, operand); !text.empty()) return text;
  return "";
}

Result<std::vector<std::string>> strings(const JsonReader& reader) {
  TENONNX_ASSIGN_OR_RETURN(const auto items, reader.items());
  std::vector<std::string> out;
  for (const JsonReader& item : items) {
    TENONNX_ASSIGN_OR_RETURN(out.emplace_back(), item.string());
    if (out.back().empty()) return DataLoss("{}: expected text, got \"\"", item.where());
  }
  if (out.empty()) return DataLoss("{}: expected at least one entry, got none", reader.where());
  return out;
}

Result<std::int64_t> limit(const JsonReader& reader, std::string_view key, std::int64_t none) {
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t value, reader.integer_or(key, none));
  if (value < 1) return DataLoss("{}/{}: expected 1 or more, got {}", reader.where(), key, value);
  return value;
}

Result<SupportRule> rule_of(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(
      reader.only({"operators", "domain", "backend", "min_opset", "max_opset", "dtypes", "max_rank",
                   "max_elements", "constant_inputs", "attributes", "source", "checked"}));
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  SupportRule rule;
  TENONNX_ASSIGN_OR_RETURN(const JsonReader operators, reader.at("operators"));
  TENONNX_ASSIGN_OR_RETURN(rule.operators, strings(operators));
  TENONNX_ASSIGN_OR_RETURN(rule.domain, reader.string_or("domain", ""));
  TENONNX_ASSIGN_OR_RETURN(const std::string backend, reader.string_or("backend", "device"));
  if (backend != "device" && backend != "host")
    return DataLoss("{}/backend: expected 'device' or 'host', got '{}'", reader.where(), backend);
  rule.on_host = backend == "host";
  TENONNX_ASSIGN_OR_RETURN(rule.min_opset, limit(reader, "min_opset", 1));
  TENONNX_ASSIGN_OR_RETURN(rule.max_opset, limit(reader, "max_opset", kNone));
  if (rule.max_opset < rule.min_opset)
    return DataLoss("{}/max_opset: expected at least {} (min_opset), got {}", reader.where(),
                    rule.min_opset, rule.max_opset);
  TENONNX_ASSIGN_OR_RETURN(const JsonReader dtypes, reader.at("dtypes"));
  TENONNX_ASSIGN_OR_RETURN(const auto names, strings(dtypes));
  for (const std::string& name : names) {
    const auto dtype = dtype_from_string(name);
    if (!dtype.ok()) return DataLoss("{}: {}", dtypes.where(), dtype.status().message());
    rule.dtypes.push_back(*dtype);
  }
  TENONNX_ASSIGN_OR_RETURN(rule.max_rank, limit(reader, "max_rank", kNone));
  TENONNX_ASSIGN_OR_RETURN(rule.max_elements, limit(reader, "max_elements", kNone));
  if (reader.has("constant_inputs")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader positions, reader.at("constant_inputs"));
    TENONNX_ASSIGN_OR_RETURN(const auto items, positions.items());
    for (const JsonReader& item : items) {
      TENONNX_ASSIGN_OR_RETURN(rule.constant_inputs.emplace_back(), item.integer());
      if (rule.constant_inputs.back() < 0)
        return DataLoss("{}: expected the position of an input, 0 or more, got {}", item.where(),
                        rule.constant_inputs.back());
    }
  }
  if (reader.has("attributes")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader section, reader.at("attributes"));
    TENONNX_ASSIGN_OR_RETURN(const auto members, section.members());
    for (const auto& [name, values] : members) {
      TENONNX_ASSIGN_OR_RETURN(rule.attributes[name], strings(values));
    }
  }
  TENONNX_ASSIGN_OR_RETURN(rule.provenance, provenance_of(reader));
  return rule;
}

}  // namespace

Support find_support(const std::vector<SupportRule>& rules, const NodeFacts& node) {
  Support support;
  const std::string domain = node.domain == "ai.onnx" ? "" : node.domain;
  for (const SupportRule& rule : rules) {
    if (rule.domain != domain || !has(rule.operators, node.op_type)) continue;
    support.why_not = problem(rule, node);
    if (support.why_not.empty()) {
      support.rule = &rule;
      return support;
    }
  }
  if (support.why_not.empty())
    support.why_not = fmt::format("{}{}{} is not among the device's operators", domain,
                                  domain.empty() ? "" : ".", node.op_type);
  return support;
}

Result<std::vector<SupportRule>> supported_from_json(const JsonReader& section) {
  TENONNX_ASSIGN_OR_RETURN(const auto items, section.items());
  std::vector<SupportRule> rules;
  for (const JsonReader& item : items) {
    TENONNX_ASSIGN_OR_RETURN(rules.emplace_back(), rule_of(item));
  }
  if (rules.empty())
    return DataLoss("{}: expected at least one rule, got none; leave the section out",
                    section.where());
  return rules;
}

}  // namespace tenonnx
