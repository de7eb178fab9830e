// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The segments of a package whose target's device computes everything but some nodes, which are
// kept on the cpu: what `deploy --keep-on-cpu FILE` packs. Which nodes go together is
// cut/kept_nodes.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "device/device.h"
#include "flow/split.h"
#include "model/model.h"

namespace tenonnx {

struct KeptSegments {
  struct Part {
    std::string name;      // "segment_0" and so on, in the order in which they run
    std::string executor;  // "cpu", or the device's
    Model model;
  };
  std::vector<Part> parts;
  // What a later segment takes, by the segment that makes it, each once; "boundary_0" and so on
  // (with another ending where the model has a tensor of that name). An output of the model that
  // crosses keeps its name, too.
  std::vector<BoundaryTensor> boundaries;
  std::vector<std::string> nodes;  // that are kept, by listed_name(), in the graph's order
  std::string price;               // "9 segments; 12 tensors cross between them, 1.20 MiB in a run"
  std::vector<std::string> notes;
};

// The executor of a target's device: that of a whole graph ("model"), else of the "encoder", else
// of any role, the first that is not "cpu". FailedPrecondition for a target that has no device.
Result<std::string> device_executor(const Device& target);

// `list` names nodes of `source`; those that `prepared` has no more, as they have become constants,
// are left out with a note. A segment of the device that would only rename or reshape is computed
// on the cpu, too. Errors as read_node_list and device_executor; InvalidArgument for a list after
// which nothing is left for the device, or that keeps nothing.
Result<KeptSegments> keep_on_cpu(const Model& source, const Model& prepared, const Device& target,
                                 const std::filesystem::path& list);

}  // namespace tenonnx
