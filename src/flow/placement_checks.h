// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the places of nodes come to: checks, and sentences for people.
#pragma once

#include <string>

#include "adapters/provider.h"
#include "flow/placement_fingerprint.h"
#include "flow/placement_proof.h"

namespace tenonnx {

Check passed_check(std::string name);
Check failed_check(std::string name, std::string why);

// Of a run that succeeded; nodes and partitions are filled.
void add_placement_checks(const Fingerprint& fingerprint, const Placement& profile,
                          bool allow_fallback, PlacementResult& result);

// How many nodes the provider took with and without the operators pinned. More moved than was
// pinned: an equal result then says nothing about those operators.
void add_affinity_findings(const ProviderRecord& pinned, const ProviderRecord& without,
                           PlacementResult& result);

}  // namespace tenonnx
