// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/limit.h"

#include <cmath>
#include <utility>

#include "base/status.h"

namespace tenonnx {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "PASS";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kInconclusive:
      break;
  }
  return "INCONCLUSIVE";
}

Result<Verdict> verdict_from_string(std::string_view text) {
  for (Verdict v : {Verdict::kPass, Verdict::kFail, Verdict::kInconclusive}) {
    if (text == to_string(v)) return v;
  }
  return InvalidArgument("verdict '{}' is none of PASS, FAIL, INCONCLUSIVE", text);
}

Verdict combine(Verdict a, Verdict b) {
  if (a == Verdict::kFail || b == Verdict::kFail) return Verdict::kFail;
  if (a == Verdict::kInconclusive || b == Verdict::kInconclusive) return Verdict::kInconclusive;
  return Verdict::kPass;
}

std::string_view to_string(Comparison comparison) {
  return comparison == Comparison::kAtLeast ? ">=" : "<=";
}

Check make_check(std::string name, double value, Comparison comparison, Limit limit,
                 std::string note) {
  Check check{std::move(name),        value,          comparison, std::move(limit),
              Verdict::kInconclusive, std::move(note)};
  if (std::isnan(value) || std::isnan(check.limit.value)) {
    if (check.note.empty())
      check.note = std::isnan(value) ? "nothing was measured" : "there is no limit to compare with";
    return check;
  }
  const bool holds =
      comparison == Comparison::kAtLeast ? value >= check.limit.value : value <= check.limit.value;
  check.verdict = holds ? Verdict::kPass : Verdict::kFail;
  return check;
}

Check inconclusive_check(std::string name, std::string why) {
  return make_check(std::move(name), std::nan(""), Comparison::kAtMost, {std::nan(""), "none"},
                    std::move(why));
}

Verdict overall_verdict(std::span<const Check> checks) {
  if (checks.empty()) return Verdict::kInconclusive;
  Verdict all = Verdict::kPass;
  for (const Check& check : checks) all = combine(all, check.verdict);
  return all;
}

std::string to_text(const Check& check) {
  std::string text = check.name;
  if (!std::isnan(check.value) && !std::isnan(check.limit.value)) {
    text += fmt::format(" {:.6g} {} {:.6g} ({})", check.value, to_string(check.comparison),
                        check.limit.value, check.limit.origin);
  }
  text += fmt::format(": {}", to_string(check.verdict));
  if (!check.note.empty()) text += fmt::format("; {}", check.note);
  return text;
}

Json to_json(const Check& check) {
  Json json;
  json["name"] = check.name;
  json["value"] = json_number(check.value);
  json["comparison"] = to_string(check.comparison);
  json["limit"] = json_number(check.limit.value);
  json["limit_origin"] = check.limit.origin;
  json["verdict"] = to_string(check.verdict);
  if (!check.note.empty()) json["note"] = check.note;
  return json;
}

Json to_json(std::span<const Check> checks) {
  Json json = Json::array();
  for (const Check& check : checks) json.push_back(to_json(check));
  return json;
}

Result<Check> check_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(
      reader.only({"name", "value", "comparison", "limit", "limit_origin", "verdict", "note"}));
  Check check;
  TENONNX_ASSIGN_OR_RETURN(check.name, reader.string("name"));
  TENONNX_ASSIGN_OR_RETURN(check.value, reader.number("value"));
  TENONNX_ASSIGN_OR_RETURN(auto comparison, reader.string("comparison"));
  if (comparison != ">=" && comparison != "<=")
    return DataLoss("{}: comparison '{}' is none of >=, <=", reader.where(), comparison);
  check.comparison = comparison == ">=" ? Comparison::kAtLeast : Comparison::kAtMost;
  TENONNX_ASSIGN_OR_RETURN(check.limit.value, reader.number("limit"));
  TENONNX_ASSIGN_OR_RETURN(check.limit.origin, reader.string("limit_origin"));
  TENONNX_ASSIGN_OR_RETURN(auto verdict, reader.string("verdict"));
  auto parsed = verdict_from_string(verdict);
  if (!parsed.ok()) return DataLoss("{}: {}", reader.where(), parsed.status().message());
  check.verdict = *parsed;
  TENONNX_ASSIGN_OR_RETURN(check.note, reader.string_or("note", ""));
  return check;
}

Result<std::vector<Check>> checks_from_json(const JsonReader& reader) {
  TENONNX_ASSIGN_OR_RETURN(auto items, reader.items());
  std::vector<Check> checks;
  checks.reserve(items.size());
  for (const JsonReader& item : items) {
    TENONNX_ASSIGN_OR_RETURN(auto check, check_from_json(item));
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace tenonnx
