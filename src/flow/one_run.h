// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Whether two graphs compute the same, by one run of the second. Of a detector at 640 px the runs
// are most of what a check takes, and passes leave most of its nodes as they are.
//
// What follows from constants and static shapes in the graph before is computed first, in a session
// of its own (passes/constant_part.h). What then differs between the graphs are regions that meet
// in tensors of both (passes/region_diff.h). The graph after runs whole, and gives the tensors at
// their borders and the shapes that were taken for static; each region of the graph before gets
// these tensors. By induction along the graph before:
//
//   every region gives the same bits   all tensors of both graphs are the same, outputs among them
//   one gives others, an algebraic     each of these is within the noise floor of its old form on
//   change                             these tensors (proof_floor.h); what computes the same in
//                                      every row on some of them (passes/local_region.h)
//
// Nothing is believed of names: a wrong one makes a region that gives something else.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "metrics/limit.h"
#include "model/model.h"
#include "ort/executor.h"
#include "passes/region_diff.h"
#include "passes/region_sessions.h"
#include "passes/runner.h"
#include "tenonnx/base.h"

namespace tenonnx {

class OneRun {
 public:
  // `exactness`: only the class algebraic may give other bits. `renamed`: NameRecord::renamed.
  // nullptr where one run cannot tell: names that do not fit, a tensor at a border that is no
  // tensor, borders of more than a GiB, what does not load. The models and the executor must
  // outlive it.
  static Result<std::unique_ptr<OneRun>> prepare(const Model& before, const Model& after,
                                                 const std::map<std::string, std::string>& renamed,
                                                 PassClass exactness, const Executor& executor,
                                                 const LoadOptions& load);

  struct Found {
    TensorMap outputs;           // of the graph after
    std::size_t differing = 0;   // regions that give other bits, within the floor
    std::optional<Check> worst;  // of them
  };
  // nullopt where it does not show that the two are the same: then both have to run. Errors are
  // what prevents the graph or a region from running.
  Result<std::optional<Found>> run(const TensorMap& inputs) const;

  // "1,374 nodes of both ran once, 34 regions of the graph before on their tensors"
  std::string description() const;

 private:
  using Regions = std::vector<const ChangedRegion*>;
  using Borders =
      std::map<std::string, std::string>;  // tensor before -> what the graph after gives
  OneRun(const Model& after, PassClass exactness, const Executor& executor, LoadOptions load)
      : after_(after), exactness_(exactness), executor_(executor), load_(std::move(load)) {}
  Result<TensorMap> values_of(const Borders& borders, const TensorMap& inputs,
                              const TensorMap& outputs) const;
  bool shapes_hold(const TensorMap& outputs) const;
  // False where a region gives other bits and is not within its floor. `values`: of the borders;
  // `has_outputs`: those of the graph after are among them, else its region is run too.
  Result<bool> judge(const Regions& regions, const TensorMap& values, bool has_outputs,
                     Found& found) const;

  const Model& after_;
  const PassClass exactness_;
  const Executor& executor_;
  LoadOptions load_;
  Model before_;  // with its constants computed
  GraphDiff diff_;
  Regions whole_, on_strips_;
  Borders borders_, strip_borders_;
  std::map<std::string, std::pair<std::string, Shape>> shapes_;  // tensor after -> output, shape
  std::unique_ptr<LoadedGraph> graph_;
};

}  // namespace tenonnx
