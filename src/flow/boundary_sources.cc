// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/boundary_sources.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>

#include "base/status.h"
#include "metrics/elements.h"
#include "metrics/tensor_error.h"
#include "ort/capture.h"

namespace tenonnx {
namespace {

// Why `crossed` is not `own`; empty where it is.
Result<std::string> difference(const Tensor& own, const Tensor& crossed, bool values) {
  if (own.dtype() != crossed.dtype() || own.shape() != crossed.shape())
    return fmt::format("it is {} {}, the model's tensor {} {}", to_string(crossed.dtype()),
                       to_string(crossed.shape()), to_string(own.dtype()), to_string(own.shape()));
  if (!values || !is_floating(own.dtype())) return std::string();
  TENONNX_ASSIGN_OR_RETURN(const Tensor left, to_float32(own));
  TENONNX_ASSIGN_OR_RETURN(const Tensor right, to_float32(crossed));
  TENONNX_ASSIGN_OR_RETURN(const TensorError error, compare_tensors(left, right));
  if (!error.cosine || *error.cosine >= kSameTensorCosine) return std::string();
  return fmt::format(
      "the cosine with the model's tensor is {:.6g}, on the cpu at least {} is "
      "expected",
      *error.cosine, kSameTensorCosine);
}

}  // namespace

Result<BoundarySources> BoundarySources::load(const Model& source, const Names& boundaries,
                                              const LoadOptions& options) {
  BoundarySources out;
  std::set<std::string> computed;
  for (const auto& node : source.proto().graph().node())
    computed.insert(node.output().begin(), node.output().end());
  std::vector<std::string> outputs;
  for (const auto& [name, tensor] : boundaries) {
    if (!computed.contains(tensor)) {
      out.missing_.push_back(
          fmt::format("'{}' is said to be '{}', which the source model has not", name, tensor));
      continue;
    }
    out.boundaries_.emplace_back(name, tensor);
    if (std::find(outputs.begin(), outputs.end(), tensor) == outputs.end())
      outputs.push_back(tensor);
  }
  if (outputs.empty()) return out;
  LoadOptions load = options;
  load.profile = false;
  const auto executor = make_cpu_executor();
  auto graph = load_with_outputs(*executor, source, outputs, load);
  if (!graph.ok()) return graph.status().at("the source model up to the package's boundaries");
  out.graph_ = std::move(*graph);
  return out;
}

Result<TensorMap> BoundarySources::run(const TensorMap& inputs) const {
  TensorMap out;
  if (graph_ == nullptr) return out;
  TENONNX_ASSIGN_OR_RETURN(const TensorMap tensors, graph_->run(inputs_of(*graph_, inputs)));
  for (const auto& [name, tensor] : boundaries_)
    if (const auto found = tensors.find(tensor); found != tensors.end())
      out.emplace(name, found->second);
  return out;
}

Status BoundarySources::compare(const TensorMap& own, const TensorMap& crossed,
                                const std::set<std::string>& selected, bool values) {
  for (const auto& [name, tensor] : boundaries_) {
    const auto left = own.find(name), right = crossed.find(name);
    if (left == own.end() || right == crossed.end() || wrong_.contains(name)) continue;
    if (selected.contains(name) && left->second.shape() != right->second.shape()) continue;
    TENONNX_ASSIGN_OR_RETURN(const std::string why, difference(left->second, right->second,
                                                               values && !selected.contains(name)));
    if (!why.empty()) wrong_.emplace(name, fmt::format("'{}' is not '{}': {}", name, tensor, why));
  }
  return {};
}

Check BoundarySources::check() const {
  constexpr const char* kName = "boundaries that are not their source tensors";
  if (wrong_.empty() && !missing_.empty())
    return inconclusive_check(
        kName, fmt::format("{}; give the boundaries the names that the deploy gave them, or deploy "
                           "the model again",
                           fmt::join(missing_, "; ")));
  std::vector<std::string> notes;
  for (const auto& [name, sentence] : wrong_) notes.push_back(sentence);
  notes.insert(notes.end(), missing_.begin(), missing_.end());
  return make_check(kName, static_cast<double>(wrong_.size()), Comparison::kAtMost,
                    {0, "each is the tensor of the source model that the manifest names"},
                    fmt::format("{}", fmt::join(notes, "; ")));
}

}  // namespace tenonnx
