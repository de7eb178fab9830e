// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/whole_floor.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/status.h"
#include "flow/segments.h"
#include "metrics/elements.h"
#include "metrics/tensor_error.h"
#include "model/graph.h"
#include "model/selects.h"
#include "passes/proof_floor.h"
#include "passes/proof_inputs.h"

namespace tenonnx {
namespace {

bool has_selection(const Model& model) {
  bool found = false;
  for_each_graph(model.proto().graph(), [&](const onnx::GraphProto& graph) {
    found |= std::any_of(graph.node().begin(), graph.node().end(), is_selection);
  });
  return found;
}

bool has_grid_sample(const Model& model) {
  const auto& nodes = model.proto().graph().node();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const onnx::NodeProto& node) { return node.op_type() == "GridSample"; });
}

// Of the rounding errors of an input's values, for the noise floor (proof_inputs.h, disturb).
constexpr std::uint64_t kWholeSeed = 7;

// More disturbances that are tried where one exchanges rows: of random inputs about every second
// does.
constexpr std::uint64_t kMoreDisturbances = 4;

Result<std::vector<Check>> floor_checks(const Observation& was, const Observation& is,
                                        const std::vector<Observation>& others, bool narrow) {
  std::vector<Check> all;
  for (const auto& [name, tensor] : was.outputs) {
    std::vector<Tensor> disturbed;
    for (const Observation& other : others) disturbed.push_back(other.outputs.at(name));
    TENONNX_ASSIGN_OR_RETURN(OutputFloor floor, output_floor(tensor, disturbed));
    if (narrow) floor.floor.origin += ", each of what is float16 inside by one more";
    TENONNX_ASSIGN_OR_RETURN(auto checks,
                             algebraic_checks(name, tensor, is.outputs.at(name), floor));
    all.insert(all.end(), std::make_move_iterator(checks.begin()),
               std::make_move_iterator(checks.end()));
  }
  return all;
}

// Against what errors as large as the bounds do.
Result<std::vector<Check>> bound_checks(const Observation& was, const Observation& is,
                                        const Observation& bounded) {
  std::vector<Check> all;
  for (const auto& [name, tensor] : was.outputs) {
    TENONNX_ASSIGN_OR_RETURN(const TensorError most,
                             compare_tensors(tensor, bounded.outputs.at(name)));
    constexpr std::string_view kOrigin = "what errors as large as the bounds of the passes do";
    if (!is_floating(tensor.dtype())) {
      TENONNX_ASSIGN_OR_RETURN(const Identity found,
                               compare_identical(tensor, is.outputs.at(name)));
      all.push_back(make_check(name + ": differing elements", static_cast<double>(found.differing),
                               Comparison::kAtMost,
                               {static_cast<double>(most.differing), std::string(kOrigin)}));
      continue;
    }
    TENONNX_ASSIGN_OR_RETURN(
        auto checks, bounded_checks(name, tensor, is.outputs.at(name), most.max_abs, kOrigin));
    all.insert(all.end(), std::make_move_iterator(checks.begin()),
               std::make_move_iterator(checks.end()));
  }
  return all;
}

}  // namespace

WholeFloor::WholeFloor(const Model& before, DisturbedGraphs& disturbed, PassClass exactness)
    : disturbed_(disturbed),
      exactness_(exactness),
      selects_(has_selection(before)),
      samples_(has_grid_sample(before)) {}

Result<std::optional<std::vector<Check>>> WholeFloor::judge(LoadedGraph& before,
                                                            const ReferenceInput& input,
                                                            const Observation& was,
                                                            const Observation& is) {
  std::vector<Observation> others;
  TENONNX_ASSIGN_OR_RETURN(std::vector<Check> checks, floor_checks(was, is, others, false));
  if (overall_verdict(checks) != Verdict::kPass) {
    TENONNX_ASSIGN_OR_RETURN(const bool measured, add_disturbed(before, input, was, others));
    if (!measured) return std::optional<std::vector<Check>>();
    TENONNX_ASSIGN_OR_RETURN(checks, floor_checks(was, is, others, false));
  }
  if (overall_verdict(checks) != Verdict::kPass) {
    TENONNX_ASSIGN_OR_RETURN(LoadedGraph * optimized, disturbed_.optimized());
    TENONNX_RETURN_IF_ERROR(add_run(*optimized, input, was, others));
    TENONNX_ASSIGN_OR_RETURN(checks, floor_checks(was, is, others, false));
  }
  // The rounding of sampling coordinates, of which disturbed inputs show nothing where the grid
  // does not depend on them.
  if (overall_verdict(checks) != Verdict::kPass && samples_) {
    TENONNX_ASSIGN_OR_RETURN(LoadedGraph * moved, disturbed_.grids());
    TENONNX_RETURN_IF_ERROR(add_run(*moved, input, was, others));
    TENONNX_ASSIGN_OR_RETURN(checks, floor_checks(was, is, others, false));
  }
  if (overall_verdict(checks) != Verdict::kPass) {
    TENONNX_ASSIGN_OR_RETURN(LoadedGraph * noisy, disturbed_.storage());
    if (noisy != nullptr) {
      TENONNX_RETURN_IF_ERROR(add_run(*noisy, input, was, others));
      TENONNX_ASSIGN_OR_RETURN(checks, floor_checks(was, is, others, true));
    }
  }
  if (overall_verdict(checks) != Verdict::kPass && exactness_ == PassClass::kBounded) {
    TENONNX_ASSIGN_OR_RETURN(LoadedGraph * moved, disturbed_.bounds());
    if (moved != nullptr) {
      TENONNX_ASSIGN_OR_RETURN(const Observation bounded, run_whole(*moved, input.tensors));
      if (!exchanges_rows(was, bounded)) {
        TENONNX_ASSIGN_OR_RETURN(checks, bound_checks(was, is, bounded));
      }
    }
  }
  return std::optional<std::vector<Check>>(std::move(checks));
}

// A disturbance that exchanges rows behind a selection measures the exchange: with it anything
// would pass. Another one, then; false where all of them do.
Result<bool> WholeFloor::add_disturbed(LoadedGraph& before, const ReferenceInput& input,
                                       const Observation& was,
                                       std::vector<Observation>& others) const {
  for (std::uint64_t more = 0; more <= kMoreDisturbances; ++more) {
    TENONNX_ASSIGN_OR_RETURN(Observation disturbed,
                             run_whole(before, disturb(input.tensors, kWholeSeed + more)));
    if (exchanges_rows(was, disturbed)) continue;
    others.push_back(std::move(disturbed));
    return true;
  }
  return false;
}

// What a disturbed graph gives, where it does not exchange rows.
Status WholeFloor::add_run(LoadedGraph& graph, const ReferenceInput& input, const Observation& was,
                           std::vector<Observation>& others) const {
  TENONNX_ASSIGN_OR_RETURN(Observation run, run_whole(graph, input.tensors));
  if (!exchanges_rows(was, run)) others.push_back(std::move(run));
  return {};
}

// Rounding moves an output by 1e-7 to 1e-3 of itself (the latter with float16 inside); another
// row in its place by 3e-2 and more, as measured on full-size detectors with random inputs.
bool WholeFloor::exchanges_rows(const Observation& was, const Observation& other) const {
  constexpr double kAnotherRow = 1e-2;
  return selects_ && std::any_of(was.outputs.begin(), was.outputs.end(), [&](const auto& output) {
           const auto error = compare_tensors(output.second, other.outputs.at(output.first));
           return error.ok() && error->relative_l2 && *error->relative_l2 > kAnotherRow;
         });
}

}  // namespace tenonnx
