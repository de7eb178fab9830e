// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A graph in the forms that its noise floor is measured with, each made and loaded when it is first
// asked for.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "model/model.h"
#include "ort/executor.h"
#include "passes/runner.h"
#include "tenonnx/base.h"

namespace tenonnx {

class DisturbedGraphs {
 public:
  // Everything must outlive it. `bounds`: PassOutcome::recomputed of the passes.
  DisturbedGraphs(const Model& model, const Executor& executor, const LoadOptions& load,
                  const std::map<std::string, double>& bounds)
      : model_(model), executor_(executor), load_(load), bounds_(bounds) {}

  // At the runtime's full optimisation.
  Result<LoadedGraph*> optimized();
  // Sampling coordinates rounded once more (passes/proof_grids.h).
  Result<LoadedGraph*> grids();
  // One rounding more of each float16 or bfloat16 tensor (passes/storage_noise.h); nullptr where
  // there is none.
  Result<LoadedGraph*> storage();
  // An error as large as its bound in every element of `bounds` (passes/bound_noise.h); nullptr
  // where there is none.
  Result<LoadedGraph*> bounds();

 private:
  struct Lazy {
    bool known = false;
    std::unique_ptr<LoadedGraph> graph;
  };
  // `change` says how much it disturbed: 0 for a graph that is none.
  Result<LoadedGraph*> load(Lazy& lazy, const LoadOptions& options,
                            const std::function<Result<int>(Model&)>& change);

  const Model& model_;
  const Executor& executor_;
  const LoadOptions& load_;
  const std::map<std::string, double>& bounds_;
  Lazy optimized_, grids_, storage_, of_bounds_;
};

}  // namespace tenonnx
