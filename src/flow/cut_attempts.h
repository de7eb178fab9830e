// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which cuts a deploy tries, and in which order.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "contract/contract.h"
#include "device/device.h"
#include "flow/prove.h"
#include "model/model.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct CutAttempt {
  std::vector<std::string> cut;  // empty: the whole graph
  std::string origin;            // "cut by the contract", "whole graph (nothing names a cut)", ...
  bool named = true;             // by somebody: nothing else is tried after it
};

// The first one: what --cut says (DeployOptions::cut), else the contract, else the whole graph.
// NotFound where "auto" finds nothing.
// A target whose segments ship compiled is asked for the whole graph first, whatever the contract
// names: the fewer parts, the better, and only its compiler knows.
Result<CutAttempt> first_attempt(const std::string& option, const Contract& contract,
                                 const Device& device, const Model& prepared);

struct FurtherAttempts {
  std::vector<CutAttempt> attempts;
  std::string why_none;
};
// What is tried where the whole graph fails a gate: the automatic cut, then its alternatives.
// Nothing where the device is not used for the whole graph anyway.
// `contract_cut` comes first where the first attempt passed it over.
FurtherAttempts further_attempts(const Device& device, const Model& prepared,
                                 const std::vector<std::string>& contract_cut);

// What was tried and what came of it: manifest.settings["tried"].
struct TriedCut {
  std::string origin;
  std::string verdict;              // or "not possible"
  std::vector<std::string> failed;  // names of the checks that failed; or why it is not possible
  std::string stopped;              // where the budget was used up: BudgetStop::text
  std::string figure;               // of the first that failed: "0.732, allowed >= 0.99"
  std::string first_bad_tensor, diagnosis;  // of the proof, where it knows
};
TriedCut tried_cut(const CutAttempt& attempt, const Proof& proof);
Json to_json(const std::vector<TriedCut>& tried);
// "tried: whole graph (...): FAIL (scores cosine, ...)"; a line each, empty for a single one.
std::string describe(const std::vector<TriedCut>& tried);

}  // namespace tenonnx
