// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A loop on all processors, for work that takes milliseconds a step.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

// Calls task(i) for i in [0, count) from `threads` threads (0: one per processor); tasks share
// nothing that they write. Returns the error of the lowest index; the tasks behind it may not have
// run.
template <typename Task>
Status parallel_for(std::size_t count, int threads, Task&& task) {
  std::vector<Status> results(count);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (std::size_t i = next++; i < count && !failed; i = next++) {
      results[i] = task(i);
      if (!results[i].ok()) failed = true;
    }
  };
  const std::size_t wanted =
      threads > 0 ? static_cast<std::size_t>(threads) : std::thread::hardware_concurrency();
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min(wanted, count); ++i) others.emplace_back(work);
  work();
  others.clear();
  for (Status& result : results)
    if (!result.ok()) return std::move(result);
  return {};
}

}  // namespace tenonnx
