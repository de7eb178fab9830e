// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Of a package that holds a segment compiled only: what runs on the cpu behind it, fed with the
// source model's own tensors, so that the graph level can be proved without the vendor.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "flow/boundary_sources.h"
#include "flow/comparison.h"
#include "flow/segments.h"
#include "ort/executor.h"
#include "package/manifest.h"

namespace tenonnx {

class CpuTail {
 public:
  // Whether the cpu makes all of the model's outputs out of boundaries.
  static bool exists(const std::vector<Segment>& segments,
                     const BoundarySources::Names& boundaries);
  // Reads the segments' files below `package`. `sources` is loaded with the same options.
  static Result<CpuTail> load(const std::filesystem::path& package,
                              const std::vector<Segment>& segments, BoundarySources sources,
                              const LoadOptions& options);

  // Boundaries are the source model's, outputs the package's. No detections.
  Result<Observation> run(const TensorMap& inputs) const;

 private:
  CpuTail(LoadedSegments segments, BoundarySources sources)
      : segments_(std::move(segments)), sources_(std::move(sources)) {}
  LoadedSegments segments_;
  BoundarySources sources_;
};

}  // namespace tenonnx
