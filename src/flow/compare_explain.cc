// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare_explain.h"

#include "base/status.h"
#include "flow/contract_errors.h"
#include "metrics/tensor_error.h"
#include "ort/capture.h"
#include "pipeline/image.h"
#include "pipeline/image_file.h"

namespace tenonnx {
namespace {

Result<TensorMap> outputs_of(const Executor& executor, const Model& model,
                             const ReferenceInput& input, const LoadOptions& options) {
  TENONNX_ASSIGN_OR_RETURN(const auto graph, executor.load(model, options));
  TENONNX_RETURN_IF_ERROR(graph->select_case(input.name, 0));
  return graph->run(inputs_of(*graph, input.tensors));
}

}  // namespace

Result<Check> folding_check(const Executor& executor, const Model& given, const Model& folded,
                            const ReferenceInput& input, const LoadOptions& load) {
  TENONNX_ASSIGN_OR_RETURN(const TensorMap before, outputs_of(executor, given, input, load));
  TENONNX_ASSIGN_OR_RETURN(const TensorMap after, outputs_of(executor, folded, input, load));
  std::int64_t differing = 0;
  for (const auto& [name, tensor] : before) {
    const auto found = after.find(name);
    if (found == after.end()) return Internal("folding constants lost the output '{}'", name);
    TENONNX_ASSIGN_OR_RETURN(const Identity same, compare_identical(tensor, found->second));
    differing += same.differing;
  }
  const std::string name = "folding constants of the reference: elements that differ";
  if (differing == 0)
    return make_check(name, 0, Comparison::kAtMost, {0, "the same operators on the same values"});
  return inconclusive_check(
      name, fmt::format("{} elements of the outputs, on '{}'; --no-fold-constants compares the "
                        "model as it was given",
                        differing, input.name));
}

Result<std::vector<std::string>> explain_difference(const FedSides& sides, const Contract& contract,
                                                    const InputSource& images,
                                                    const LoadOptions& load) {
  TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, images.load(0));
  TENONNX_ASSIGN_OR_RETURN(const TensorMap outputs,
                           outputs_of(*sides.other.executor, *sides.other.model, input, load));
  TENONNX_ASSIGN_OR_RETURN(const auto graph,
                           sides.runnable.executor->load(*sides.runnable.model, load));
  TENONNX_ASSIGN_OR_RETURN(const Image image, read_image(images.files().front()));
  TENONNX_ASSIGN_OR_RETURN(const ContractExplanation found,
                           explain_contract_errors(contract, *graph, view_of(image), outputs,
                                                   {sides.runnable.title, sides.other.title}));
  std::vector<std::string> sentences;
  for (const ContractFinding& finding : found.findings) sentences.push_back(finding.sentence);
  return sentences;
}

}  // namespace tenonnx
