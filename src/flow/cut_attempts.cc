// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/cut_attempts.h"

#include <algorithm>
#include <set>

#include "base/status.h"
#include "flow/context_segments.h"
#include "flow/cuts.h"
#include "flow/deploy.h"

namespace tenonnx {

Result<CutAttempt> first_attempt(const std::string& option, const Contract& contract,
                                 const Device& device, const Model& prepared) {
  CutAttempt out;
  const auto whole = device.executor_for("model");
  if (option.empty() && !contract.cut.empty() && whole.ok() && ships_context(*whole)) {
    out.named = false;
    out.origin = "whole graph (tried before the contract's cut)";
    return out;
  }
  if (option.empty()) {
    out.cut = contract.cut;
    out.named = !contract.cut.empty();
    out.origin = out.named ? "cut by the contract" : "whole graph (nothing names a cut)";
    return out;
  }
  TENONNX_ASSIGN_OR_RETURN(out.cut, parse_cut(option));
  out.origin = out.cut.empty() ? "whole graph (--cut none)" : "cut by --cut";
  if (is_automatic(out.cut)) {
    TENONNX_ASSIGN_OR_RETURN(const DescribedCut found, automatic_cut(prepared));
    out.cut = found.found.cut->tensors;
    out.origin = fmt::format("automatic cut ({})", found.found.cut->kind);
  }
  return out;
}

FurtherAttempts further_attempts(const Device& device, const Model& prepared,
                                 const std::vector<std::string>& contract_cut) {
  FurtherAttempts out;
  const auto whole = device.executor_for("model");
  const auto decoder = device.executor_for("decoder");
  if (!whole.ok() || !decoder.ok() || *whole == *decoder) {
    out.why_none = "a cut would put both parts where the whole graph has failed";
    return out;
  }
  if (!contract_cut.empty()) out.attempts.push_back({contract_cut, "cut by the contract", false});
  const AutoCut found = find_auto_cut(prepared, infer_shapes(prepared));
  if (!found.cut) {
    if (out.attempts.empty()) out.why_none = found.why_none;
    return out;
  }
  const auto add = [&](const FoundCut& cut) {
    const auto same = [&](const CutAttempt& one) {
      return std::set<std::string>(one.cut.begin(), one.cut.end()) ==
             std::set<std::string>(cut.tensors.begin(), cut.tensors.end());
    };
    // Under another name the same would be proved, and on an emulator paid for, once more.
    if (std::none_of(out.attempts.begin(), out.attempts.end(), same))
      out.attempts.push_back({cut.tensors, fmt::format("automatic cut ({})", cut.kind), false});
  };
  add(*found.cut);
  for (const FoundCut& other : found.alternatives) add(other);
  return out;
}

TriedCut tried_cut(const CutAttempt& attempt, const Proof& proof) {
  TriedCut out{attempt.origin,
               std::string(to_string(proof.verdict)),
               {},
               proof.budget.text,
               {},
               proof.first_bad_tensor,
               proof.diagnosis};
  for (const Check& check : proof.checks) {
    if (check.verdict != Verdict::kFail) continue;
    if (out.failed.empty() && check.value == check.value)
      out.figure = fmt::format("{:.4g}, allowed {} {:.4g}", check.value,
                               to_string(check.comparison), check.limit.value);
    out.failed.push_back(check.name);
  }
  return out;
}

Json to_json(const std::vector<TriedCut>& tried) {
  Json out = Json::array();
  for (const TriedCut& one : tried) {
    out.push_back({{"cut", one.origin}, {"verdict", one.verdict}, {"failed", one.failed}});
    if (!one.stopped.empty()) out.back()["stopped"] = one.stopped;
    if (!one.first_bad_tensor.empty()) out.back()["first_bad_tensor"] = one.first_bad_tensor;
  }
  return out;
}

std::string describe(const std::vector<TriedCut>& tried) {
  if (tried.size() < 2) return {};
  std::string out;
  for (const TriedCut& one : tried) {
    out += fmt::format("  tried: {}: {}", one.origin, one.verdict);
    // The first says what kind of failure it is; all stand in the manifest.
    if (!one.failed.empty()) out += fmt::format(" ({}", one.failed[0]);
    if (!one.figure.empty()) out += ": " + one.figure;
    if (one.failed.size() > 1) out += fmt::format("; and {} more", one.failed.size() - 1);
    if (!one.failed.empty()) out += ")";
    if (!one.stopped.empty()) out += ": " + one.stopped;
    out += "\n";
    // Of the last one it stands below the checks.
    if (!one.diagnosis.empty() && &one != &tried.back()) out += "    " + one.diagnosis + "\n";
  }
  return out;
}

}  // namespace tenonnx
