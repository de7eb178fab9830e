// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// From a profile, an assignment record and a vendor's own record to a place for each node.
#pragma once

#include <set>
#include <string>

#include "adapters/provider.h"
#include "device/device.h"
#include "flow/placement_proof.h"
#include "model/model.h"
#include "ort/placement.h"

namespace tenonnx {

struct PlacementEvidence {
  const Model& original;
  const Model& prepared;         // what was loaded: constants folded, names kept
  const Placement& profile;      // of a run
  const ProviderRecord* record;  // nullptr: an executor that has none
  const Device* device;          // whose rules and arithmetic are expected; nullptr: none
  const std::set<std::string>& mislabelled;  // operators whose values are not the device's
  bool run_failed = false;                   // the profile has the partition that failed as well
};

// Fills nodes and partitions.
void place_nodes(const PlacementEvidence& evidence, PlacementResult& result);

// Fills boundaries, inputs and outputs.
void find_boundaries(const Model& prepared, PlacementResult& result);

}  // namespace tenonnx
