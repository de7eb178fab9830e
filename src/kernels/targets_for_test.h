// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Runs a test once under every instruction set that was compiled and that this processor has.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "kernels/parallel.h"

namespace tenonnx {

template <typename Body>
void for_each_target(Body&& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    body();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Every task from a thread of its own.
class Threads final : public Parallel {
 public:
  void run(std::size_t count, void (*task)(void*, std::size_t), void* data) const override {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(task, data, i);
  }
};

}  // namespace tenonnx
