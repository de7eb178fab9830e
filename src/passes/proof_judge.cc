// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_judge.h"

#include "base/status.h"
#include "passes/proof_floor.h"

namespace tenonnx {
namespace {

Result<std::vector<Check>> checks_of(PassClass exactness, const std::optional<Limit>& bound,
                                     std::string_view tensor, const Tensor& before,
                                     const Tensor& after, const std::vector<Tensor>& disturbed) {
  switch (exactness) {
    case PassClass::kAlgebraic: {
      TENONNX_ASSIGN_OR_RETURN(const OutputFloor floor, output_floor(before, disturbed));
      return algebraic_checks(tensor, before, after, floor);
    }
    case PassClass::kBounded:
      return bounded_checks(tensor, before, after, bound->value, bound->origin);
    default:
      return bitwise_checks(tensor, before, after);
  }
}

}  // namespace

JudgedRegion judge_region(PassClass exactness, const std::optional<Limit>& bound,
                          const ChangedRegion& region, const std::vector<std::string>& outputs,
                          const TensorMap& before, const TensorMap& after,
                          std::span<const TensorMap> disturbed) {
  JudgedRegion judged;
  judged.worst = make_check("outputs", 0, Comparison::kAtMost, {0, "none differ"});
  const auto take = [&](const Check& check) {
    if (check.verdict == Verdict::kFail && judged.failed &&
        severity(check) <= severity(judged.worst))
      return;
    if (check.verdict == Verdict::kFail ||
        (!judged.failed && severity(check) >= severity(judged.worst)))
      judged.worst = check;
    judged.failed |= check.verdict == Verdict::kFail;
  };
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const std::string& name = outputs[o];
    const std::string& tensor = region.outputs[o].after;
    std::vector<Tensor> others;
    for (const TensorMap& run : disturbed)
      if (const auto it = run.find(name); it != run.end()) others.push_back(it->second);
    const auto was = before.find(name), is = after.find(name);
    if (was == before.end() || is == after.end()) {
      take(make_check(tensor + ": given", 1, Comparison::kAtMost, {0, "both sides give it"}));
      continue;
    }
    auto checks = checks_of(exactness, bound, tensor, was->second, is->second, others);
    if (!checks.ok()) {
      take(make_check(tensor + ": dtype and shape", 1, Comparison::kAtMost, {0, "as before"},
                      checks.status().message()));
      continue;
    }
    for (const Check& check : *checks) take(check);
  }
  return judged;
}

}  // namespace tenonnx
