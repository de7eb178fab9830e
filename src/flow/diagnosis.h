// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Where a failure of a simulated device begins.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "flow/comparison.h"
#include "flow/segments.h"

namespace tenonnx {

struct Diagnosis {
  std::string first_bad_tensor;  // "" where no tensor stands out
  std::string text;              // which, where, and how far it goes
  std::string note;              // what it is not, where all segments are simulated without a find
};

// Runs each simulated segment of the package in `package` on its own, fed with what the parts gave
// on the cpu (`parts`), in order: the first tensor beyond the range of the device's storage, or the
// first Inf or NaN. Of a chip that has a simulation the range alone; `package` then holds the
// segments as they were before they were compiled.
Result<Diagnosis> diagnose_simulated(const std::filesystem::path& package,
                                     const std::vector<Segment>& segments,
                                     const ReferenceInput& input, const Observation& parts,
                                     const Progress& progress);

}  // namespace tenonnx
