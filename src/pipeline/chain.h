// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The segments of a package behind the public Pipeline: loaded once, run by many threads, each with
// slots of its own.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ort/executor.h"
#include "package/manifest.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct PackageChainOptions {
  LoadOptions load;
  // Refuse a runtime older than the one that the evidence names, and anything else below the
  // executor (a device file) whose version is another.
  bool check_versions = true;
};

// Thread-safe once loaded.
class PackageChain {
 public:
  // `manifest` as read_package() returned it for `package`. The optimisation level is the one that
  // the manifest's settings name; falling back to the CPU is an error where the executor is a
  // device. Errors name the segment; FailedPrecondition for versions, DataLoss where a segment's
  // file is not what the manifest says of its inputs and outputs.
  static Result<PackageChain> load(const std::filesystem::path& package, const Manifest& manifest,
                                   const PackageChainOptions& options);

  // The graph's inputs as the contract orders them: the image, then the size where there is one.
  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  // One slot for each output of each segment: those that the contract names first and in its order
  // (labels, boxes, scores), the others, boundaries among them, after them.
  const std::vector<TensorInfo>& slots() const { return slots_; }
  std::size_t output_count() const { return output_count_; }

  // Inputs in the order of inputs(). Resizes `values` to slots() and writes into the tensors that
  // are there already where they fit, so that the second run of a thread allocates nothing.
  Status run(std::span<const Tensor> inputs, std::vector<Tensor>& values) const;

  // The same in steps, for whoever measures each: prepare() once, then every segment in order.
  void prepare(std::vector<Tensor>& values) const;
  Status run_segment(std::size_t segment, std::span<const Tensor> inputs,
                     std::vector<Tensor>& values) const;
  std::size_t segment_count() const { return segments_.size(); }
  // LoadedGraph::description() of a segment.
  std::string segment_description(std::size_t segment) const;
  // Milliseconds that reading its file and creating its session took.
  double segment_load_ms(std::size_t segment) const { return segments_[segment].load_ms; }

 private:
  // Where a segment's input comes from.
  struct Source {
    bool from_slot = false;  // else from inputs()
    std::size_t index = 0;
  };
  struct Loaded {
    std::string name;
    std::shared_ptr<LoadedGraph> graph;
    double load_ms = 0;
    std::vector<Source> sources;
    std::vector<std::size_t> targets;  // slots of its outputs
  };
  Status connect(const Manifest& manifest);

  std::vector<TensorInfo> inputs_, slots_;
  std::size_t output_count_ = 0;
  std::vector<Loaded> segments_;
};

// Names of the outputs that the contract names, in the order of its fields.
std::vector<std::string> output_names(const Contract& contract);

}  // namespace tenonnx
