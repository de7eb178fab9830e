// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What is said of a series of measured times.
#pragma once

#include <optional>
#include <span>

#include "base/json.h"
#include "eval/confidence.h"

namespace tenonnx {

// A P99 of fewer runs is one of the few largest values and repeats on no other day: from 500 runs
// on, at least five lie above it.
inline constexpr std::size_t kRunsForP99 = 500;

// Milliseconds. The intervals are bootstrap intervals (eval/confidence.h); there is no mean,
// because one interrupted run moves it.
struct LatencySummary {
  std::size_t runs = 0;
  double min = 0;
  ConfidenceInterval p50;
  ConfidenceInterval p95;
  std::optional<ConfidenceInterval> p99;  // from kRunsForP99 runs on
};

// NaN everywhere for no samples.
LatencySummary summarize(std::span<const double> milliseconds,
                         const BootstrapOptions& options = {});

// {"runs", "min", "p50": {"value", "low", "high"}, "p95": ..., "p99": ... or null}, milliseconds.
Json to_json(const LatencySummary& summary);

}  // namespace tenonnx
