// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "bench/timer.h"

#include "base/status.h"

namespace tenonnx {
namespace {

// One run; stage_end[i] is the time from its start to the end of stage i.
Status run_once(std::span<const Stage> stages, std::vector<double>& stage_end) {
  const Stopwatch watch;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Status status = stages[i].run();
    stage_end[i] = watch.milliseconds();
    if (!status.ok()) return status.at(stages[i].name);
  }
  return {};
}

}  // namespace

Result<ChainTiming> time_stages(std::span<const Stage> stages, int warm_up, int runs,
                                const Progress& progress, std::string_view label) {
  if (stages.empty()) return InvalidArgument("there is nothing to time");
  if (runs < 1) return InvalidArgument("{} runs asked for; at least 1 is needed", runs);
  if (warm_up < 0)
    return InvalidArgument("{} warm-up runs asked for; 0 or more are allowed", warm_up);
  ChainTiming timing;
  timing.stage_ms.resize(stages.size());
  std::vector<double> stage_end(stages.size());
  TENONNX_RETURN_IF_ERROR(run_once(stages, stage_end));
  timing.first_ms = stage_end.back();
  for (int i = 0; i < warm_up; ++i) TENONNX_RETURN_IF_ERROR(run_once(stages, stage_end));
  for (int i = 0; i < runs; ++i) {
    TENONNX_RETURN_IF_ERROR(run_once(stages, stage_end));
    timing.total_ms.push_back(stage_end.back());
    for (std::size_t s = 0; s < stages.size(); ++s)
      timing.stage_ms[s].push_back(stage_end[s] - (s > 0 ? stage_end[s - 1] : 0.0));
    if (progress) progress(label, i + 1, runs);
  }
  return timing;
}

}  // namespace tenonnx
