// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/joint_run.h"

#include <utility>

#include "base/status.h"
#include "base/wording.h"
#include "metrics/tensor_error.h"
#include "model/shapes.h"

namespace tenonnx {

Result<std::optional<JointRun>> JointRun::load(const Model& before, const Model& after,
                                               const std::map<std::string, std::string>& renamed,
                                               const Executor& executor, const LoadOptions& load) {
  TENONNX_ASSIGN_OR_RETURN(std::optional<JointGraph> joint, join_graphs(before, after, renamed));
  if (!joint) return std::optional<JointRun>();
  // With its shapes in it a raw graph of thousands of nodes is planned in half the time: ONNX
  // Runtime 1.29 searches freed memory for each tensor, and finds none without a shape.
  TENONNX_RETURN_IF_ERROR(annotate_shapes(joint->model));
  JointRun run;
  auto graph = executor.load(joint->model, load);
  if (!graph.ok()) return std::optional<JointRun>();
  run.graph_ = std::move(graph).value();
  run.pairs_ = std::move(joint->pairs);
  for (const TensorInfo& output : after.outputs()) run.outputs_.push_back(output.name);
  run.shared_ = joint->shared;
  run.only_before_ = joint->only_before;
  return std::optional<JointRun>(std::move(run));
}

Result<std::optional<TensorMap>> JointRun::run(const TensorMap& inputs) {
  auto all = graph_->run(inputs);
  if (!all.ok()) return std::optional<TensorMap>();
  for (const JointPair& pair : pairs_) {
    const auto same = compare_identical(all->at(pair.was), all->at(pair.is));
    if (!same.ok() || same->differing > 0) return std::optional<TensorMap>();
  }
  TensorMap outputs;
  for (const std::string& name : outputs_) outputs.emplace(name, all->at(name));
  return std::optional<TensorMap>(std::move(outputs));
}

std::string JointRun::description() const {
  return fmt::format("{} of both graphs ran once, {} of the graph before beside them: {} compared",
                     counted(shared_, "node"), only_before_,
                     counted(static_cast<std::int64_t>(pairs_.size()), "tensor"));
}

}  // namespace tenonnx
