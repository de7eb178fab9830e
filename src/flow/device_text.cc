// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/device_text.h"

#include <fmt/format.h>

#include <vector>

#include "device/agreement.h"
#include "flow/result_text.h"

namespace tenonnx {
namespace {

std::string where_of(const CannotAgree& one) {
  std::string text = one.name.empty() ? one.op_type : one.name;
  if (!one.range.empty()) text += ", " + one.range;
  return text + ":";
}

std::string agreement_text(const MeasuredAgreement& agreement, const std::string& name) {
  std::string out = fmt::format("\nsim:{} against {}, {}\n", name, agreement.on, agreement.checked);
  for (const auto& [of, version] : agreement.versions) out += fmt::format("  {} {}\n", of, version);
  std::vector<std::vector<std::string>> rows = {
      {"operator", "cases", "of them good", "elements", "within a step", "bias", "worst"}};
  for (const OperatorAgreement& one : agreement.operators)
    rows.push_back({one.op_type, std::to_string(one.cases), std::to_string(one.good),
                    std::to_string(one.elements),
                    fmt::format("{:.2f} %", 100 * static_cast<double>(one.within) /
                                                static_cast<double>(one.elements)),
                    fmt::format("{:+.3f}", one.bias), fmt::format("{:.4g}", one.worst)});
  out += "\n" + aligned(rows, "  ");
  out +=
      "\n  cases: a graph at normal, subnormal values or beyond 65504; good: 99 % of the elements "
      "within a\n  step of float16; bias and worst in steps, device less simulation\n";
  return out;
}

}  // namespace

Json to_json(const Device& device) {
  Json reasons = Json::array(), agreement = nullptr;
  if (device.arithmetic) {
    for (const CannotAgree& one : device.arithmetic->cannot_agree)
      reasons.push_back({{"operator", one.op_type},
                         {"case", one.name},
                         {"range", one.range},
                         {"reason", one.reason}});
    if (device.arithmetic->agreement) agreement = to_json(*device.arithmetic->agreement);
  }
  return {{"schema_version", 1},
          {"name", device.name},
          {"title", device.title},
          {"file", device.file.string()},
          {"sha256", device.sha256},
          {"agreement", std::move(agreement)},
          {"cannot_agree", std::move(reasons)}};
}

std::string describe(const Device& device) {
  std::string out = fmt::format("{}: {}\n{}\n{}\nsha256 {}\n", device.name, device.title,
                                device.description, device.file.string(), device.sha256);
  if (!device.arithmetic)
    return out + "\nno arithmetic section: there is nothing to simulate or to measure\n";
  const Arithmetic& a = *device.arithmetic;
  if (a.agreement) {
    out += agreement_text(*a.agreement, device.name);
  } else {
    out += fmt::format(
        "\nnot measured: tenonnx device agree --on DEVICE --against sim:{} --write {}\n",
        device.name, device.file.string());
  }
  if (a.cannot_agree.empty()) return out;
  std::vector<std::vector<std::string>> rows;
  for (const CannotAgree& one : a.cannot_agree) rows.push_back({where_of(one), one.reason});
  return out + "\n  where the simulation stays away, and why:\n" + aligned(rows, "  ");
}

}  // namespace tenonnx
