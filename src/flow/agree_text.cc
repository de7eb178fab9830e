// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/format.h>

#include "base/wording.h"
#include "flow/agree.h"
#include "flow/agree_sides.h"
#include "flow/result_text.h"

namespace tenonnx {
namespace {

std::string share_text(double share) { return fmt::format("{:.2f} %", 100 * share); }

// Elements of all cases, and those within a step.
Agreement total(const AgreeResult& result) {
  Agreement all;
  for (const Agreement& one : result.cases) {
    all.elements += one.elements;
    all.within += one.within;
  }
  return all;
}

}  // namespace

Json to_json(const AgreeResult& result) {
  Json cases = Json::array(), not_run = Json::array(), versions = Json::object();
  const Agreement all = total(result);
  for (const Agreement& one : result.cases) {
    cases.push_back({{"operator", one.op_type},
                     {"case", one.name},
                     {"range", one.range},
                     {"elements", one.elements},
                     {"within_one_step", one.within},
                     {"share", one.share()},
                     {"bias_steps", one.bias},
                     {"worst_steps", one.worst},
                     {"worst_values", {one.worst_device, one.worst_simulated}},
                     {"finite_on_one_side", one.not_finite},
                     {"reason", one.reason.empty() ? Json(nullptr) : Json(one.reason)}});
  }
  for (const auto& [name, why] : result.not_run) not_run.push_back({{"case", name}, {"why", why}});
  for (const auto& [name, version] : result.versions) versions[name] = version;
  const auto or_null = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  return {{"schema_version", 1},
          {"model", or_null(result.model)},
          {"model_sha256", or_null(result.model_sha256)},
          {"inputs", or_null(result.inputs)},
          {"on", result.on},
          {"against", result.against},
          {"date", result.date},
          {"versions", std::move(versions)},
          {"elements", all.elements},
          {"share", all.share()},
          {"cases", std::move(cases)},
          {"not_run", std::move(not_run)}};
}

std::string describe(const AgreeResult& result) {
  const bool model = !result.model.empty();
  std::vector<std::vector<std::string>> rows = {{model ? "tensor" : "graph",
                                                 model ? "operator" : "range", "elements",
                                                 "within a step", "bias", "worst"}};
  const Agreement all = total(result);
  std::size_t good = 0;
  for (const Agreement& one : result.cases) {
    good += one.share() >= kGoodShare ? 1 : 0;
    rows.push_back({one.name, model ? one.op_type : one.range, std::to_string(one.elements),
                    share_text(one.share()), fmt::format("{:+.3f}", one.bias),
                    fmt::format("{:.4g}", one.worst)});
  }
  std::string out = fmt::format(
      "{} against {}: {} of {} have at least {} of their elements within a step{}\n", result.on,
      result.against, good, counted(result.cases.size(), model ? "tensor" : "case"),
      share_text(kGoodShare),
      result.not_run.empty() ? "" : fmt::format("; {} were not run", result.not_run.size()));
  if (model && all.elements > 0)
    out += fmt::format("{}, {}: {} of all elements\n", result.model, result.inputs,
                       share_text(all.share()));
  out += "\n" + aligned(rows, "  ");
  out += "\n  steps are those of float16 at the larger value; bias: device less simulation, mean\n";
  std::vector<std::vector<std::string>> reasons;
  for (const Agreement& one : result.cases)
    if (!one.reason.empty() && !model)
      reasons.push_back({one.name + ", " + one.range + ":", one.reason});
  if (!reasons.empty()) out += "\n  why not more:\n" + aligned(reasons, "  ");
  constexpr std::size_t kListed = 12;  // --json has them all
  std::size_t listed = 0;
  for (const auto& [name, why] : result.not_run)
    if (listed++ < kListed) out += fmt::format("  not run: {}: {}\n", name, why);
  if (result.not_run.size() > kListed)
    out += fmt::format("  not run: {} more (--json lists them)\n", result.not_run.size() - kListed);
  return out;
}

}  // namespace tenonnx
