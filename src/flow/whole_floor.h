// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The outputs of a changed graph against the noise floor of the whole graph before it, of which
// each measurement is a run of it: no more are made than what explains the difference, as each can
// only raise the limit.
#pragma once

#include <optional>
#include <vector>

#include "flow/comparison.h"
#include "flow/disturbed_graphs.h"
#include "flow/inputs.h"
#include "metrics/limit.h"
#include "model/model.h"
#include "ort/executor.h"
#include "passes/runner.h"

namespace tenonnx {

class WholeFloor {
 public:
  // `disturbed`: of `before`; both must outlive it.
  WholeFloor(const Model& before, DisturbedGraphs& disturbed, PassClass exactness);

  // Of each output its checks. `before` is what gave `was` on `input`. nullopt where every
  // disturbance exchanges rows behind a selection: that would be a floor within which anything
  // passes.
  Result<std::optional<std::vector<Check>>> judge(LoadedGraph& before, const ReferenceInput& input,
                                                  const Observation& was, const Observation& is);
  // A selection is in the graph: rows of its outputs may change places.
  bool selects() const { return selects_; }

 private:
  Result<bool> add_disturbed(LoadedGraph& before, const ReferenceInput& input,
                             const Observation& was, std::vector<Observation>& others) const;
  Status add_run(LoadedGraph& graph, const ReferenceInput& input, const Observation& was,
                 std::vector<Observation>& others) const;
  bool exchanges_rows(const Observation& was, const Observation& other) const;

  DisturbedGraphs& disturbed_;
  const PassClass exactness_;
  const bool selects_, samples_;
};

}  // namespace tenonnx
