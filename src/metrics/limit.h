// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A verdict and everything that a reader needs to judge it: the measured value, the limit, where
// the limit comes from. Every gate of the project is a list of Check.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tenonnx/base.h"

namespace tenonnx {

enum class Verdict : std::uint8_t {
  kPass,
  kFail,
  kInconclusive,  // something is missing; never counted as a pass
};

// "PASS", "FAIL", "INCONCLUSIVE"; and back, InvalidArgument for anything else.
std::string_view to_string(Verdict verdict);
Result<Verdict> verdict_from_string(std::string_view text);

// The verdict of two together: FAIL where either fails (a counter-example stays one, however little
// else was measured), else INCONCLUSIVE where either is, else PASS.
Verdict combine(Verdict a, Verdict b);

struct Limit {
  double value = 0;
  std::string origin;  // a clause that can follow "limit": "8 x the noise floor 1.2e-07 of ..."
};

enum class Comparison : std::uint8_t { kAtLeast, kAtMost };
std::string_view to_string(Comparison comparison);  // ">=", "<="

struct Check {
  std::string name;  // "scores cosine", "feature_0: relative L2"
  double value = 0;
  Comparison comparison = Comparison::kAtMost;
  Limit limit;
  Verdict verdict = Verdict::kInconclusive;
  std::string note;  // empty, or what a reader should know: the worst image, why it is inconclusive
};

// Compares. NaN, as value or as limit, means that nothing was measured: INCONCLUSIVE. (Inf or NaN
// inside a tensor is counted, and failed, by finite_check; the error figures leave it out.)
Check make_check(std::string name, double value, Comparison comparison, Limit limit,
                 std::string note = {});

// A check that could not be made, and why: "tensor 'feature_1' has no counterpart in ...".
Check inconclusive_check(std::string name, std::string why);

// combine() over all; INCONCLUSIVE for none.
Verdict overall_verdict(std::span<const Check> checks);

// "scores cosine 0.999987 >= 0.99 (gate of a heterogeneous chain): PASS; <note>"
std::string to_text(const Check& check);

// {"name","value","comparison","limit","limit_origin","verdict","note"}; value and limit follow
// json_number(), so that Inf and NaN survive. An empty note is left out.
Json to_json(const Check& check);
Json to_json(std::span<const Check> checks);
Result<Check> check_from_json(const JsonReader& reader);
Result<std::vector<Check>> checks_from_json(const JsonReader& reader);

}  // namespace tenonnx
