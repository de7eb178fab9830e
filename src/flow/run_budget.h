// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// How many runs on a device a deploy may spend: on an emulator each takes seconds to a minute.
#pragma once

#include <cstddef>
#include <string>

namespace tenonnx {

// Counts runs of segments that are not on the cpu. One that a cache answers is no run.
class RunBudget {
 public:
  // 0: no limit, the runs are counted all the same.
  explicit RunBudget(std::size_t limit = 0) : limit_(limit) {}

  // Before a run that no cache answers. False where it would be one too many: it must not be made
  // then. `kept`: its result will be answered from a cache the next time.
  bool take(bool kept);
  void recall() { ++recalled_; }
  // Whether a run was refused.
  bool used_up() const { return refused_; }

  std::size_t limit() const { return limit_; }
  std::size_t used() const { return used_; }
  std::size_t recalled() const { return recalled_; }
  // Runs that were not made, but would have been with a larger budget.
  void leave_undone(std::size_t runs) { undone_ += runs; }
  // The least limit with which the same again is not stopped: what was left undone, and the runs
  // whose results no cache keeps.
  std::size_t needed() const { return used_ - kept_ + undone_; }

 private:
  std::size_t limit_, used_ = 0, kept_ = 0, recalled_ = 0, undone_ = 0;
  bool refused_ = false;
};

// What a proof left undone because the budget was used up.
struct BudgetStop {
  bool stopped = false;
  std::size_t compared = 0, inputs = 0;  // of the inputs
  std::size_t left = 0;                  // runs that the rest of the proof takes
  std::string text;                      // "the budget of 5 runs was used up when ..."
};
BudgetStop stop_of(const RunBudget& budget, std::size_t compared, std::size_t inputs,
                   std::size_t left);

}  // namespace tenonnx
