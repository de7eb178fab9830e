// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The segments of a package as one chain that can be run segment by segment: what bench.h times.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ort/executor.h"
#include "package/manifest.h"
#include "tenonnx/base.h"

namespace tenonnx {

// What goes from one segment to another. Segments of one process hand a tensor over without a copy;
// where one of them runs on a device the runtime copies at least once, which copy() stands for.
struct Boundary {
  int from = 0;  // indices of segments
  int to = 0;
  std::vector<std::string> tensors;
  std::uint64_t bytes = 0;  // known after the first run
};

class SegmentChain {
 public:
  // One session a segment; load_ms() is the time of each: reading its file and creating the
  // session. FailedPrecondition where a segment takes what no earlier one makes and `inputs` does
  // not hold.
  static Result<SegmentChain> load(const std::filesystem::path& package, const Manifest& manifest,
                                   const LoadOptions& options, TensorMap inputs);

  std::size_t size() const { return segments_.size(); }
  const std::string& name(std::size_t i) const { return segments_[i].name; }
  const std::string& executor(std::size_t i) const { return segments_[i].executor; }
  std::string description(std::size_t i) const { return segments_[i].graph->description(); }
  double load_ms(std::size_t i) const { return segments_[i].load_ms; }

  // Runs one segment on what the earlier ones left. Outputs of the run before are written into
  // again, as a deployed program would do.
  Status run(std::size_t i);
  // Of its last run.
  const std::vector<Tensor>& outputs(std::size_t i) const { return segments_[i].outputs; }

  // After a first run.
  std::vector<Boundary> boundaries() const;
  // Copies the tensors of a boundary in host memory, once.
  void copy(const Boundary& boundary);

 private:
  struct Source {
    int segment = -1;  // -1: of inputs_
    std::size_t output = 0;
  };
  struct Loaded {
    std::string name, executor;
    std::unique_ptr<LoadedGraph> graph;
    double load_ms = 0;
    std::vector<Source> sources;  // of each input
    std::vector<Tensor> inputs, outputs;
  };
  Status connect(Loaded& segment);

  TensorMap given_;
  std::vector<Loaded> segments_;
  std::vector<std::vector<char>> copies_;
};

}  // namespace tenonnx
