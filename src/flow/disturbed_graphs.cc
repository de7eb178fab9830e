// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/disturbed_graphs.h"

#include "base/status.h"
#include "passes/bound_noise.h"
#include "passes/proof_grids.h"
#include "passes/storage_noise.h"

namespace tenonnx {
namespace {

constexpr std::uint64_t kSeed = 7;

}  // namespace

Result<LoadedGraph*> DisturbedGraphs::load(Lazy& lazy, const LoadOptions& options,
                                           const std::function<Result<int>(Model&)>& change) {
  if (lazy.known) return lazy.graph.get();
  lazy.known = true;
  Model model = model_.clone();
  TENONNX_ASSIGN_OR_RETURN(const int changed, change(model));
  if (changed > 0) {
    TENONNX_ASSIGN_OR_RETURN(lazy.graph, executor_.load(model, options));
  }
  return lazy.graph.get();
}

Result<LoadedGraph*> DisturbedGraphs::optimized() {
  LoadOptions options = load_;
  options.optimization = Optimization::kAll;
  return load(optimized_, options, [](Model&) -> Result<int> { return 1; });
}

Result<LoadedGraph*> DisturbedGraphs::grids() {
  return load(grids_, load_, [](Model& model) -> Result<int> {
    TENONNX_RETURN_IF_ERROR(disturb_grids(model, kSeed));
    return 1;
  });
}

Result<LoadedGraph*> DisturbedGraphs::storage() {
  return load(storage_, load_, [](Model& model) { return add_storage_noise(model, kSeed); });
}

Result<LoadedGraph*> DisturbedGraphs::bounds() {
  return load(of_bounds_, load_,
              [&](Model& model) { return add_bound_noise(model, bounds_, kSeed); });
}

}  // namespace tenonnx
