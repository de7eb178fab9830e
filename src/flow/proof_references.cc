// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/proof_references.h"

#include <utility>

#include "base/status.h"
#include "flow/context_segments.h"

namespace tenonnx {

const std::filesystem::path& plain_package(const ProofRequest& request) {
  return request.plain.empty() ? request.package : request.plain;
}

Result<std::unique_ptr<ProofReferences>> ProofReferences::load(const ProofRequest& request) {
  std::unique_ptr<ProofReferences> made(new ProofReferences(request));
  if (request.source != nullptr) TENONNX_RETURN_IF_ERROR(made->load_all());
  return made;
}

Status ProofReferences::load_all() {
  const auto report = [&](std::int64_t done) {
    if (request_.progress) request_.progress("load references", done, 3);
  };
  report(0);
  TENONNX_ASSIGN_OR_RETURN(whole_, load_whole(request_.load));
  report(1);
  if (!request_.boundaries.empty()) {
    TENONNX_ASSIGN_OR_RETURN(
        sources_, BoundarySources::load(*request_.source, request_.boundaries, request_.load));
  }
  report(2);
  // The cpu does not run what a vendor has compiled.
  if (!request_.plain.empty() || !any_context(*request_.segments)) {
    TENONNX_ASSIGN_OR_RETURN(parts_, load_parts(request_.load));
  } else {
    TENONNX_RETURN_IF_ERROR(load_tail());
  }
  report(3);
  return {};
}

Status ProofReferences::load_tail() {
  if (!sources_ || sources_->check().verdict != Verdict::kPass ||
      !CpuTail::exists(*request_.segments, request_.boundaries))
    return {};
  TENONNX_ASSIGN_OR_RETURN(
      tail_, CpuTail::load(request_.package, *request_.segments, *sources_, request_.load));
  // Boundaries that are not what they are said to be do not fit into what follows: the chain level
  // says so, and there is nothing that could be run on the cpu.
  if (request_.inputs->size() == 0) return {};
  TENONNX_ASSIGN_OR_RETURN(const ReferenceInput first, request_.inputs->load(0));
  if (!tail_->run(first.tensors).ok()) tail_.reset();
  return {};
}

Result<std::unique_ptr<LoadedGraph>> ProofReferences::load_whole(const LoadOptions& options) const {
  auto graph = make_cpu_executor()->load(*request_.source, options);
  if (!graph.ok()) return graph.status().at("the whole model on the cpu");
  return graph;
}

Result<std::unique_ptr<LoadedSegments>> ProofReferences::load_parts(
    const LoadOptions& options) const {
  TENONNX_ASSIGN_OR_RETURN(
      LoadedSegments loaded,
      LoadedSegments::load(plain_package(request_), *request_.segments, options, "cpu"));
  return std::make_unique<LoadedSegments>(std::move(loaded));
}

Result<Observation> ProofReferences::run_whole(const TensorMap& inputs) const {
  return tenonnx::run_whole(*whole_, inputs);
}

Result<Observation> ProofReferences::run_package(const TensorMap& inputs) const {
  return parts_ != nullptr ? parts_->run(inputs) : tail_->run(inputs);
}

LoadOptions ProofReferences::without_optimization() const {
  LoadOptions options = request_.load;
  options.optimization = Optimization::kDisabled;
  return options;
}

Result<Observation> ProofReferences::decoded(const ReferenceInput& input,
                                             Result<Observation> ran) const {
  if (!ran.ok()) return ran;
  if (!decode(*request_.contract, input, *ran).ok()) ran->detections.clear();
  return ran;
}

Result<Observation> ProofReferences::whole_disabled(const ReferenceInput& input) {
  if (whole_disabled_ == nullptr) {
    TENONNX_ASSIGN_OR_RETURN(whole_disabled_, load_whole(without_optimization()));
  }
  return decoded(input, tenonnx::run_whole(*whole_disabled_, input.tensors));
}

Result<Observation> ProofReferences::package_disabled(const ReferenceInput& input) {
  if (tail_) {
    if (!tail_disabled_) {
      const LoadOptions options = without_optimization();
      TENONNX_ASSIGN_OR_RETURN(
          BoundarySources sources,
          BoundarySources::load(*request_.source, request_.boundaries, options));
      TENONNX_ASSIGN_OR_RETURN(tail_disabled_, CpuTail::load(request_.package, *request_.segments,
                                                             std::move(sources), options));
    }
    return decoded(input, tail_disabled_->run(input.tensors));
  }
  if (parts_disabled_ == nullptr) {
    TENONNX_ASSIGN_OR_RETURN(parts_disabled_, load_parts(without_optimization()));
  }
  return decoded(input, parts_disabled_->run(input.tensors));
}

}  // namespace tenonnx
