// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The proof of placement: where each node of a model ran, from the profile of a run. A list of
// registered providers proves nothing, nor does a toolchain's own table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "flow/prepare.h"
#include "metrics/limit.h"
#include "ort/executor.h"

namespace tenonnx {

struct PlacementOptions {
  std::filesystem::path model;
  std::string on;                     // executor address
  std::vector<std::string> affinity;  // "Softmax=cpu": operator types to be left to the CPU
  bool allow_fallback = false;        // the whole of a model that is meant to be shared
  std::filesystem::path context;      // compile to here, reload, and prove that too; empty: no
  bool embed = false;                 // the compiled partitions inside the model, not beside it
  std::uint64_t seed = 1;             // of the random input
  Preparation preparation;
  LoadOptions load;
  Progress progress;
};

// Where a node was computed. Three of these are the CPU, and they are three different things.
enum class NodePlace : std::uint8_t {
  kDevice,
  kFallback,   // the provider left it to ONNX Runtime
  kVendorCpu,  // the provider took it, and its own code on the CPU computes it
  kCpu,        // meant for the CPU: pinned, or the executor is the CPU
  kFolded,     // constant: computed when the model was loaded
  kUnknown,
};
// "device", "provider fallback", "vendor's CPU backend", "CPU", "folded", "unknown"
std::string_view to_string(NodePlace place);

struct PlacedNode {
  std::string node, op_type;
  NodePlace place = NodePlace::kUnknown;
  int partition = -1;  // index into PlacementResult::partitions; -1: none
  std::string why;     // not on the device, or not known
};

// A part of the graph that the provider runs in one piece.
struct PlacedPartition {
  std::string name;  // as the profile has it
  NodePlace place = NodePlace::kDevice;
  std::size_t nodes = 0;
  std::int64_t duration_us = 0;  // of the profiled run; 0: not known, or an emulator's
};

// What goes from one partition to another, or from or to the CPU (-1).
struct PlacementBoundary {
  int from = -1, to = -1;
  std::vector<std::string> tensors;
  std::int64_t bytes = 0;  // 0 where a shape is not static
};

struct PlacementResult {
  std::string model, address, provider;
  std::vector<PlacedNode> nodes;  // those of the model, in its order, then nodes that folding made
  std::vector<PlacedPartition> partitions;
  std::vector<PlacementBoundary> boundaries;
  std::vector<PlacementBoundary> inputs, outputs;  // of the model, to and from partitions
  std::vector<std::string> findings;               // sentences
  std::vector<std::string> causes;                 // likely ones, of a provider that took nothing
  std::vector<Check> checks;
  Verdict verdict = Verdict::kInconclusive;
  std::size_t count(NodePlace place) const;
};

// InvalidArgument: --affinity or a context for an executor that has none. Unsupported: an executor
// without placement (files:, sim:). What a vendor refuses or gets wrong is a failed check, no
// error.
Result<PlacementResult> prove_placement(const PlacementOptions& options);

// docs/reference/json.md, "placement".
Json to_json(const PlacementResult& result);
std::string describe(const PlacementResult& result);

}  // namespace tenonnx
