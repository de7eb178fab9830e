// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/cpu_tail.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "flow/context_segments.h"

namespace tenonnx {

bool CpuTail::exists(const std::vector<Segment>& segments,
                     const BoundarySources::Names& boundaries) {
  for (const Segment& segment : segments)
    for (const TensorInfo& output : segment.outputs) {
      const auto crosses = [&](const auto& boundary) { return boundary.first == output.name; };
      if (is_context(segment) && std::none_of(boundaries.begin(), boundaries.end(), crosses))
        return false;
    }
  return true;
}

Result<CpuTail> CpuTail::load(const std::filesystem::path& package,
                              const std::vector<Segment>& segments, BoundarySources sources,
                              const LoadOptions& options) {
  std::vector<Segment> on_cpu;
  for (const Segment& segment : segments)
    if (!is_context(segment)) on_cpu.push_back(segment);
  TENONNX_ASSIGN_OR_RETURN(LoadedSegments loaded,
                           LoadedSegments::load(package, on_cpu, options, "cpu"));
  return CpuTail(std::move(loaded), std::move(sources));
}

Result<Observation> CpuTail::run(const TensorMap& inputs) const {
  Observation out;
  TENONNX_ASSIGN_OR_RETURN(out.boundaries, sources_.run(inputs));
  TensorMap given = out.boundaries;
  given.insert(inputs.begin(), inputs.end());
  TENONNX_ASSIGN_OR_RETURN(Observation ran, segments_.run(given));
  out.outputs = std::move(ran.outputs);
  return out;
}

}  // namespace tenonnx
