// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/diagnosis.h"

#include "adapters/address.h"
#include "adapters/diagnose.h"
#include "adapters/qnn_chips.h"
#include "adapters/sim.h"
#include "base/status.h"
#include "model/model.h"
#include "ort/executor.h"

namespace tenonnx {

Result<Diagnosis> diagnose_simulated(const std::filesystem::path& package,
                                     const std::vector<Segment>& segments,
                                     const ReferenceInput& input, const Observation& parts,
                                     const Progress& progress) {
  Diagnosis found;
  bool simulated = false;
  for (const Segment& segment : segments) {
    TENONNX_ASSIGN_OR_RETURN(auto device, simulated_device(segment.executor));
    const bool is_simulation = device.has_value();
    if (!device) device = simulation_of_chip(segment.executor);
    if (!device || !device->arithmetic) continue;
    simulated = simulated || is_simulation;
    TENONNX_ASSIGN_OR_RETURN(const Model model, Model::load(package / segment.file));
    TensorMap feeds;
    for (const TensorInfo& info : segment.inputs) {
      const auto given = input.tensors.find(info.name);
      feeds.emplace(info.name,
                    given != input.tensors.end() ? given->second : parts.boundaries.at(info.name));
    }
    TENONNX_ASSIGN_OR_RETURN(const auto beyond,
                             first_beyond_range(model, feeds, *device, progress));
    if (beyond) {
      found.first_bad_tensor = beyond->tensor;
      found.text = fmt::format("first beyond the range of {} in segment '{}', on '{}':\n    {}",
                               is_simulation ? segment.executor : device->name, segment.name,
                               input.name, to_string(*beyond));
      return found;
    }
    // A run on the chip or its emulator, with every tensor as an output, is what locate is for.
    if (!is_simulation) continue;
    TENONNX_ASSIGN_OR_RETURN(const auto executor, make_executor(segment.executor));
    TENONNX_ASSIGN_OR_RETURN(
        const auto non_finite,
        first_non_finite(model, feeds, *make_cpu_executor(), *executor, progress));
    if (non_finite) {
      found.first_bad_tensor = non_finite->tensor;
      found.text = fmt::format("first Inf or NaN of {} in segment '{}', on '{}':\n    {}",
                               segment.executor, segment.name, input.name, to_string(*non_finite));
      return found;
    }
  }
  if (simulated)
    found.note = fmt::format(
        "on '{}' no tensor leaves the range of the simulated device and none becomes Inf or NaN "
        "there: what differs is rounding, or a selection (TopK) that rounding turned over",
        input.name);
  return found;
}

}  // namespace tenonnx
