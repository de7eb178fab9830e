// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "bench/statistics.h"

#include <algorithm>
#include <limits>

namespace tenonnx {
namespace {

Json interval_json(const ConfidenceInterval& interval) {
  Json json;
  json["value"] = json_number(interval.estimate);
  json["low"] = json_number(interval.low);
  json["high"] = json_number(interval.high);
  return json;
}

}  // namespace

LatencySummary summarize(std::span<const double> milliseconds, const BootstrapOptions& options) {
  LatencySummary summary;
  summary.runs = milliseconds.size();
  summary.min = milliseconds.empty() ? std::numeric_limits<double>::quiet_NaN()
                                     : *std::min_element(milliseconds.begin(), milliseconds.end());
  summary.p50 = bootstrap_percentile(milliseconds, 50, options);
  summary.p95 = bootstrap_percentile(milliseconds, 95, options);
  if (summary.runs >= kRunsForP99) summary.p99 = bootstrap_percentile(milliseconds, 99, options);
  return summary;
}

Json to_json(const LatencySummary& summary) {
  Json json;
  json["runs"] = summary.runs;
  json["min"] = json_number(summary.min);
  json["p50"] = interval_json(summary.p50);
  json["p95"] = interval_json(summary.p95);
  json["p99"] = summary.p99 ? interval_json(*summary.p99) : Json(nullptr);
  return json;
}

}  // namespace tenonnx
