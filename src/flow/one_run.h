// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Whether two graphs compute the same, by one run of the second. Of a detector at 640 px the runs
// are most of what a check takes, and passes leave most of its nodes as they are.
//
// What follows from constants and static shapes in the graph before is computed first, in a session
// of its own (passes/constant_part.h). What then differs between the graphs are regions that meet
// in tensors of both (passes/region_diff.h). The graph after runs whole, with each region of the
// graph before in it, on the tensors at its borders, and a comparison of what both make of them
// (joined_graph.h); it also gives the shapes that were taken for static. By induction along the
// graph before:
//
//   every region gives the same bits   all tensors of both graphs are the same, outputs among them
//   one gives others, an algebraic     each of these is within the noise floor of its old form on
//   change                             these tensors (proof_floor.h)
//
// What computes the same in every row does so on some of them (passes/local_region.h); of an
// algebraic change, an addition of 0 needs no run (passes/idle_region.h). Nothing is
// believed of names: a wrong one makes a region that gives something else.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flow/joined_graph.h"
#include "metrics/limit.h"
#include "model/model.h"
#include "model/shapes.h"
#include "ort/executor.h"
#include "passes/local_region.h"
#include "passes/region_diff.h"
#include "passes/runner.h"
#include "tenonnx/base.h"

namespace tenonnx {

class OneRun {
 public:
  // `exactness`: only the class algebraic may give other bits. `renamed`: NameRecord::renamed.
  // nullptr where one run cannot tell: names that do not fit, graphs of two opsets, a tensor at a
  // border that is no tensor, what does not load. The models and the executor, for floors that the
  // run itself does not give, must outlive it.
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
  Result<std::optional<Found>> run(const TensorMap& inputs);

  // "1,374 nodes of both ran once, 34 regions of the graph before on their tensors"
  std::string description() const;

 private:
  // What a part gives, judged where the graph makes it. The first part of a floor (what storing the
  // result rounds) is known there, and explains most; for the others tensors are kept.
  struct Outcome {
    bool differs = false;
    std::optional<Check> worst;  // within the first part of the floor
    bool kept = false;           // beyond it
    TensorMap was, is;           // by Part::outputs
    TensorMap borders;           // by the names before
  };
  struct Part {
    const ChangedRegion* region;
    Strip strip;                                // that it takes (strip_of()); of axis 0: all
    std::vector<std::string> outputs, borders;  // names in Outcome
    Outcome outcome;                            // of the last run
  };
  struct Assumed {
    Shape shape;
    std::string output;  // of the joined graph, that tells it
  };
  using Parts = std::vector<Part*>;

  OneRun(const Model& after, PassClass exactness, const Executor& executor, LoadOptions load)
      : after_(after), exactness_(exactness), executor_(executor), load_(std::move(load)) {}
  std::optional<Shape> static_shape(const std::string& tensor) const;
  // False where a tensor at a border is unknown.
  bool find_parts();
  // Makes and loads the graph.
  Status join();
  Status join_parts(Strip strip, JoinedGraph& joined);
  // The listener of the graph's comparisons.
  void judge_here(Part& part, std::span<const Tensor> tensors);
  bool shapes_hold(const TensorMap& outputs) const;
  // False where one of these, all of one strip, is not within its floor.
  Result<bool> judge(Parts parts, Found& found) const;

  const Model& after_;
  const PassClass exactness_;
  const Executor& executor_;
  LoadOptions load_;
  TensorInfos infos_;  // of the graph after
  Model before_;       // with its constants computed
  GraphDiff diff_;
  std::vector<Part> parts_;
  std::size_t idle_ = 0;                    // regions that need no run
  std::map<std::string, Assumed> assumed_;  // by the tensor after
  std::vector<std::string> beyond_;         // outputs of the joined graph, of parts on strips
  std::int64_t kept_bytes_ = 0;
  std::unique_ptr<LoadedGraph> graph_;
};

}  // namespace tenonnx
