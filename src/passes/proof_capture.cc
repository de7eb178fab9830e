// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_capture.h"

#include <set>
#include <utility>

#include "base/status.h"
#include "model/extract.h"
#include "ort/capture.h"

namespace tenonnx {

BoundaryCapture::BoundaryCapture(const Executor& executor, int threads, const Model& before,
                                 const GraphIndex& index, const TensorInfos& infos,
                                 std::span<const ChangedRegion* const> regions)
    : executor_(executor), threads_(threads), before_(before), infos_(infos) {
  std::set<std::string> names;
  for (const ChangedRegion* region : regions)
    for (const auto* list : {&region->inputs, &region->outputs})
      for (const RegionTensor& tensor : *list) names.insert(tensor.before);
  for (const std::string& name : names) {
    const Value* value = index.find(name);
    if (value == nullptr) continue;
    if (value->producer >= 0)
      computed_.push_back(name);
    else if (value->is_initializer() && !value->is_input)
      constants_.push_back(name);
    else
      inputs_.push_back(name);
  }
}

Result<TensorMap> BoundaryCapture::take(const TensorMap& real) {
  TensorMap values;
  for (const std::string& name : inputs_) {
    const auto it = real.find(name);
    if (it == real.end()) return InvalidArgument("no value for the input '{}'", name);
    values.emplace(name, it->second);
  }
  for (const std::string& name : constants_) {
    TENONNX_ASSIGN_OR_RETURN(Tensor tensor, before_.constant(name));
    values.emplace(name, std::move(tensor));
  }
  if (computed_.empty()) return values;
  if (graph_ == nullptr) {
    ExtractOptions extraction;
    for (const std::string& name : computed_)
      if (const auto it = infos_.find(name); it != infos_.end())
        extraction.types.push_back(it->second);
    std::vector<std::string> inputs;
    for (const TensorInfo& input : before_.inputs()) inputs.push_back(input.name);
    TENONNX_ASSIGN_OR_RETURN(const Model part, extract(before_, inputs, computed_, extraction));
    LoadOptions load;
    load.intra_op_threads = threads_;
    load.optimization = Optimization::kDisabled;
    TENONNX_ASSIGN_OR_RETURN(graph_, executor_.load(part, load));
  }
  TENONNX_ASSIGN_OR_RETURN(TensorMap computed, graph_->run(inputs_of(*graph_, real)));
  values.merge(computed);
  return values;
}

}  // namespace tenonnx
