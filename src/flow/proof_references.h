// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a proof compares a package with, on the cpu: the source model, the package's own files as
// far as they run there, and the tensors of the source that cross between segments. Each can be run
// without the runtime's optimisation too, which is loaded when it is first asked for.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "flow/boundary_sources.h"
#include "flow/cpu_tail.h"
#include "flow/prove.h"
#include "flow/segments.h"
#include "ort/executor.h"

namespace tenonnx {

class ProofReferences {
 public:
  // Of a request with a source model; without one nothing is loaded, and nothing can be run. The
  // request must outlive it.
  static Result<std::unique_ptr<ProofReferences>> load(const ProofRequest& request);

  // By the model's output names; no detections (decode() adds them).
  Result<Observation> run_whole(const TensorMap& inputs) const;
  // The package's own files, or what runs on the cpu behind compiled ones.
  bool runs_package() const { return parts_ != nullptr || tail_.has_value(); }
  Result<Observation> run_package(const TensorMap& inputs) const;
  // All of its files, which the tail alone is not; nullptr where the cpu does not run them.
  const LoadedSegments* all_parts() const { return parts_.get(); }
  // nullptr where there are no boundaries to prove.
  BoundarySources* sources() { return sources_ ? &*sources_ : nullptr; }
  bool has_tail() const { return tail_.has_value(); }

  // With detections, none where the outputs do not decode.
  Result<Observation> whole_disabled(const ReferenceInput& input);
  Result<Observation> package_disabled(const ReferenceInput& input);

 private:
  explicit ProofReferences(const ProofRequest& request) : request_(request) {}
  Status load_all();
  Status load_tail();
  Result<std::unique_ptr<LoadedGraph>> load_whole(const LoadOptions& options) const;
  Result<std::unique_ptr<LoadedSegments>> load_parts(const LoadOptions& options) const;
  LoadOptions without_optimization() const;
  Result<Observation> decoded(const ReferenceInput& input, Result<Observation> ran) const;

  const ProofRequest& request_;
  std::unique_ptr<LoadedGraph> whole_, whole_disabled_;
  std::unique_ptr<LoadedSegments> parts_, parts_disabled_;
  std::optional<BoundarySources> sources_;
  std::optional<CpuTail> tail_, tail_disabled_;
};

// Where the files lie that the cpu runs in place of the package's (ProofRequest::plain).
const std::filesystem::path& plain_package(const ProofRequest& request);

}  // namespace tenonnx
