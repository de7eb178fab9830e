// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/run_budget.h"

#include <fmt/format.h>

#include "base/wording.h"

namespace tenonnx {

bool RunBudget::take(bool kept) {
  if (limit_ > 0 && used_ >= limit_) {
    refused_ = true;
    return false;
  }
  ++used_;
  if (kept) ++kept_;
  return true;
}

BudgetStop stop_of(const RunBudget& budget, std::size_t compared, std::size_t inputs,
                   std::size_t left) {
  const std::string used =
      fmt::format("the budget of {} was used up", counted(budget.limit(), "run"));
  const std::string when = compared == inputs ? "before the run that shows where the nodes run"
                                              : fmt::format("when {} of {} had been compared",
                                                            compared, counted(inputs, "input"));
  return {true, compared, inputs, left, fmt::format("{} {}", used, when)};
}

}  // namespace tenonnx
