// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Stages that run one after the other, timed.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "tenonnx/base.h"

namespace tenonnx {

// Milliseconds since it was made, on the monotonic clock.
class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

struct Stage {
  std::string name;
  std::function<Status()> run;
};

struct ChainTiming {
  double first_ms = 0;                        // the very first run, which allocates and pages in
  std::vector<double> total_ms;               // one a steady-state run
  std::vector<std::vector<double>> stage_ms;  // [stage][run]; in each run they add up to the total
};

// The stages in order: once for first_ms, `warm_up` times uncounted, `runs` times counted. Nothing
// but the stages and one clock reading after each lies inside a run's time. Stops at the first
// error, which names the stage. InvalidArgument for runs below 1, warm_up below 0 or no stage.
Result<ChainTiming> time_stages(std::span<const Stage> stages, int warm_up, int runs,
                                const Progress& progress = {}, std::string_view label = "runs");

}  // namespace tenonnx
