// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The section "arithmetic" of a device file. Format: docs/reference/device.md.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "device/agreement.h"
#include "device/read.h"

namespace tenonnx {
namespace {

// Overflow happens in float32, which holds the simulated values.
constexpr double kLargestFloat32 = 0x1.FFFFFEp127;

// Form -> the operator that it is of.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kForms = {{
    {"reciprocal_down", "Reciprocal"},
    {"by_reciprocal", "Div"},
    {"softmax_steps", "Softmax"},
    {"sigmoid_by_tanh", "Sigmoid"},
    {"gelu_by_tanh", "Gelu"},
    {"grid_fractions", "GridSample"},
}};

Result<bool> sourced_flag(const JsonReader& reader, std::string_view key) {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader value, sourced_value(reader, key));
  return value.boolean();
}

Result<std::string> sourced_choice(const JsonReader& reader, std::string_view key,
                                   std::initializer_list<std::string_view> allowed) {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader value, sourced_value(reader, key));
  TENONNX_ASSIGN_OR_RETURN(std::string text, value.string());
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return text;
  std::string list;
  for (std::string_view choice : allowed)
    list += fmt::format("{}'{}'", list.empty() ? "" : ", ", choice);
  return DataLoss("{}: expected one of {}, got '{}'", value.where(), list, text);
}

Result<double> positive(const JsonReader& reader, std::string_view key, double below) {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader field, reader.at(key));
  TENONNX_ASSIGN_OR_RETURN(const double number, field.number());
  if (number > 0 && number <= below) return number;
  return DataLoss("{}: expected a number above 0 and at most {:g}, got {:g}", field.where(), below,
                  number);
}

Result<Overflow> overflow_of(const JsonReader& value) {
  if (value.json().is_string()) {
    if (value.json() == "infinity") return Overflow{};
    if (value.json() == "pattern") return Overflow{.kind = Overflow::Kind::kPattern};
    return DataLoss("{}: expected \"infinity\", \"pattern\" or {{\"saturate\": MAX}}, got '{}'",
                    value.where(), value.json().get<std::string>());
  }
  if (!value.json().is_object())
    return value.error("\"infinity\", \"pattern\" or {\"saturate\": MAX}");
  TENONNX_RETURN_IF_ERROR(value.only({"saturate", "infinite", "nan"}));
  Overflow overflow;
  overflow.kind = Overflow::Kind::kSaturate;
  TENONNX_ASSIGN_OR_RETURN(overflow.max, positive(value, "saturate", kLargestFloat32));
  if (value.has("infinite")) {
    TENONNX_ASSIGN_OR_RETURN(overflow.infinite, positive(value, "infinite", kLargestFloat32));
  }
  if (value.has("nan")) {
    TENONNX_ASSIGN_OR_RETURN(const double nan, value.number("nan"));
    if (!(std::abs(nan) <= kLargestFloat32)) {
      return DataLoss(
          "{}/nan: expected a finite number, got {:g}; leave the field out where NaN "
          "stays NaN",
          value.where(), nan);
    }
    overflow.nan = nan;
  }
  return overflow;
}

Result<Overflow> overflow_of(const JsonReader& reader, std::string_view key, DType storage) {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader value, sourced_value(reader, key));
  TENONNX_ASSIGN_OR_RETURN(const Overflow overflow, overflow_of(value));
  if (overflow.kind == Overflow::Kind::kPattern && storage != DType::kFloat16)
    return DataLoss("{}: \"pattern\" is of float16, the storage is {}", value.where(),
                    to_string(storage));
  return overflow;
}

Result<OperatorArithmetic> operator_of(const std::string& op_type, const JsonReader& statement) {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader value, sourced_value(statement));
  TENONNX_RETURN_IF_ERROR(value.only(
      {"overflow", "subnormal_results", "attributes", "weights", "form", "reciprocal_error"}));
  OperatorArithmetic own;
  if (value.has("overflow")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader overflow, value.at("overflow"));
    TENONNX_ASSIGN_OR_RETURN(own.overflow, overflow_of(overflow));
  }
  const auto only_value = [&](std::string_view key, std::string_view allowed,
                              bool& flag) -> Status {
    if (!value.has(key)) return {};
    TENONNX_ASSIGN_OR_RETURN(const std::string text, value.string(key));
    if (text != allowed)
      return DataLoss("{}/{}: expected '{}', got '{}'", value.where(), key, allowed, text);
    flag = true;
    return {};
  };
  TENONNX_RETURN_IF_ERROR(only_value("subnormal_results", "flush", own.flush_results));
  TENONNX_RETURN_IF_ERROR(only_value("attributes", "rounded", own.round_attributes));
  TENONNX_RETURN_IF_ERROR(only_value("weights", "float32", own.keep_weights));
  TENONNX_ASSIGN_OR_RETURN(own.form, value.string_or("form", ""));
  const auto form = std::find_if(kForms.begin(), kForms.end(),
                                 [&](const auto& known) { return known.first == own.form; });
  if (!own.form.empty() && (form == kForms.end() || form->second != op_type)) {
    std::string list;
    for (const auto& [name, of] : kForms)
      list += fmt::format("{}'{}' (of {})", list.empty() ? "" : ", ", name, of);
    return DataLoss("{}/form: expected one of {}, got '{}' for {}", value.where(), list, own.form,
                    op_type);
  }
  if (value.has("reciprocal_error")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader field, value.at("reciprocal_error"));
    TENONNX_ASSIGN_OR_RETURN(const auto items, field.items());
    for (const JsonReader& item : items) {
      TENONNX_ASSIGN_OR_RETURN(const double coefficient, item.number());
      if (!std::isfinite(coefficient))
        return DataLoss("{}: expected a finite number, got {:g}", item.where(), coefficient);
      own.reciprocal_error.push_back(coefficient);
    }
  }
  return own;
}

Result<CannotAgree> cannot_agree_of(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(
      reader.only({"operator", "case", "range", "reason", "source", "checked"}));
  CannotAgree one;
  TENONNX_ASSIGN_OR_RETURN(one.op_type, filled_string(reader, "operator"));
  TENONNX_ASSIGN_OR_RETURN(one.name, reader.string_or("case", ""));
  TENONNX_ASSIGN_OR_RETURN(one.range, reader.string_or("range", ""));
  TENONNX_ASSIGN_OR_RETURN(one.reason, filled_string(reader, "reason"));
  TENONNX_ASSIGN_OR_RETURN(const Provenance provenance, provenance_of(reader));
  one.source = provenance.source;
  one.checked = provenance.checked;
  return one;
}

}  // namespace

Result<Arithmetic> arithmetic_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only(
      {"storage", "round_inputs", "round_weights", "round_outputs", "overflow_elementwise",
       "overflow_matmul_result", "overflow_matmul_operand", "subnormals", "indices",
       "relative_error", "seed", "operators", "cannot_agree", "agreement"}));
  Arithmetic a;
  TENONNX_ASSIGN_OR_RETURN(const std::string storage,
                           sourced_choice(reader, "storage", {"float32", "float16", "bfloat16"}));
  TENONNX_ASSIGN_OR_RETURN(a.storage, dtype_from_string(storage));
  TENONNX_ASSIGN_OR_RETURN(a.round_inputs, sourced_flag(reader, "round_inputs"));
  TENONNX_ASSIGN_OR_RETURN(a.round_weights, sourced_flag(reader, "round_weights"));
  TENONNX_ASSIGN_OR_RETURN(a.round_outputs, sourced_flag(reader, "round_outputs"));
  TENONNX_ASSIGN_OR_RETURN(a.elementwise, overflow_of(reader, "overflow_elementwise", a.storage));
  TENONNX_ASSIGN_OR_RETURN(a.matmul_result,
                           overflow_of(reader, "overflow_matmul_result", a.storage));
  TENONNX_ASSIGN_OR_RETURN(a.matmul_operand,
                           overflow_of(reader, "overflow_matmul_operand", a.storage));
  TENONNX_ASSIGN_OR_RETURN(const std::string subnormals,
                           sourced_choice(reader, "subnormals", {"keep", "flush"}));
  a.keep_subnormals = subnormals == "keep";
  if (reader.has("indices")) {
    TENONNX_ASSIGN_OR_RETURN(
        const std::string indices,
        sourced_choice(reader, "indices", {"int32", "float32", "float16", "bfloat16"}));
    TENONNX_ASSIGN_OR_RETURN(a.indices, dtype_from_string(indices));
  }
  if (reader.has("relative_error")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader errors, reader.at("relative_error"));
    TENONNX_ASSIGN_OR_RETURN(const auto members, errors.members());
    for (const auto& [op_type, statement] : members) {
      TENONNX_RETURN_IF_ERROR(sourced_value(statement).status());
      TENONNX_ASSIGN_OR_RETURN(a.relative_error[op_type], positive(statement, "value", 1.0));
    }
  }
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t seed, reader.integer_or("seed", 0));
  if (seed < 0) return DataLoss("{}/seed: expected 0 or more, got {}", reader.where(), seed);
  a.seed = static_cast<std::uint64_t>(seed);
  if (reader.has("operators")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader operators, reader.at("operators"));
    TENONNX_ASSIGN_OR_RETURN(const auto members, operators.members());
    for (const auto& [op_type, statement] : members) {
      TENONNX_ASSIGN_OR_RETURN(a.operators[op_type], operator_of(op_type, statement));
    }
  }
  if (reader.has("cannot_agree")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader section, reader.at("cannot_agree"));
    TENONNX_ASSIGN_OR_RETURN(const auto items, section.items());
    for (const JsonReader& item : items) {
      TENONNX_ASSIGN_OR_RETURN(CannotAgree one, cannot_agree_of(item));
      a.cannot_agree.push_back(std::move(one));
    }
  }
  if (reader.has("agreement")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader section, reader.at("agreement"));
    TENONNX_ASSIGN_OR_RETURN(a.agreement, agreement_from_json(section));
  }
  return a;
}

}  // namespace tenonnx
