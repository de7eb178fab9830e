// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The segments of a package, read from their files, in fresh sessions; run one after the other,
// with what crosses kept for comparison.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flow/comparison.h"
#include "flow/run_budget.h"
#include "ort/executor.h"
#include "package/manifest.h"

namespace tenonnx {

// How many nodes ran where, from the profile.
struct SegmentPlacement {
  std::string segment, executor;
  std::vector<std::pair<std::string, int>> providers;
  std::string problem;  // the profile and the assignment record disagree, or there is none
  bool failed =
      false;  // the problem is one that was seen: nodes of a provider's segment on the CPU
};

class LoadedSegments {
 public:
  // Reads each segment's file below `package` and loads it where the manifest says, or at
  // `executor` where that is not empty. Errors name the segment.
  static Result<LoadedSegments> load(const std::filesystem::path& package,
                                     const std::vector<Segment>& segments,
                                     const LoadOptions& options, const std::string& executor = "");

  // versions() of what would be loaded; for where that fails, perhaps since they are others.
  static Result<std::vector<std::pair<std::string, std::string>>> versions_of(
      const std::vector<Segment>& segments);

  // Outputs that a later segment takes are boundaries, all others outputs. Inputs that no segment
  // needs are not looked at. No detections: decode() adds them.
  Result<Observation> run(const TensorMap& inputs) const;

  // Runs on devices count against it from now on; nullptr: they are not counted. Where it is used
  // up run() is FailedPrecondition, and nothing has run on the device that was about to. It must
  // outlive this.
  void set_budget(RunBudget* budget) { budget_ = budget; }
  // Segments that are not on the cpu: what a run of all of them costs.
  std::size_t on_devices() const;

  // Of the files as they were loaded: what no segment before makes, each once; and all that is
  // made.
  std::vector<TensorInfo> inputs() const;
  std::vector<TensorInfo> outputs() const;
  // tenonnx, and what the executors say of what is below them; each name once ("NAME of SEGMENT"
  // where two executors have different versions of one thing).
  const std::vector<std::pair<std::string, std::string>>& versions() const { return versions_; }
  // Ends profiling; for what was loaded with LoadOptions::profile.
  std::vector<SegmentPlacement> placement() const;
  // "encoder: onnxruntime 1.29.0, ...": one line a segment.
  std::vector<std::string> description() const;

 private:
  struct Loaded {
    std::string name, executor;
    std::unique_ptr<LoadedGraph> graph;
  };
  void add_versions(const Executor& executor, const std::string& segment);
  Status spend(const Loaded& segment, const TensorMap& inputs) const;

  RunBudget* budget_ = nullptr;
  std::vector<Loaded> segments_;
  std::vector<std::pair<std::string, std::string>> versions_;
};

// One graph as an Observation: the whole model on the cpu.
Result<Observation> run_whole(LoadedGraph& graph, const TensorMap& inputs);

// Adds the detections, all of them. A NaN score, or a box that is not finite, is DataLoss.
Status decode(const Contract& contract, const ReferenceInput& input, Observation& observation);

}  // namespace tenonnx
