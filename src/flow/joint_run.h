// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Two graphs in one run (joint_graph.h): of a detector at 640 px the runs are most of what a check
// of the whole graph takes, and most of its nodes are in both graphs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "ort/executor.h"
#include "passes/joint_graph.h"

namespace tenonnx {

class JointRun {
 public:
  // nullopt where one graph cannot hold both, or does not load: then two runs tell.
  static Result<std::optional<JointRun>> load(const Model& before, const Model& after,
                                              const std::map<std::string, std::string>& renamed,
                                              const Executor& executor, const LoadOptions& load);

  // The outputs of both graphs, where all that they compute apart agrees bit for bit; nullopt where
  // something does not, or the joint graph does not run.
  Result<std::optional<TensorMap>> run(const TensorMap& inputs);

  // "1,374 nodes of both graphs ran once, 1,744 of the old one beside them: 210 tensors compared"
  std::string description() const;

 private:
  std::unique_ptr<LoadedGraph> graph_;
  std::vector<JointPair> pairs_;
  std::vector<std::string> outputs_;
  int shared_ = 0, only_before_ = 0;
};

}  // namespace tenonnx
