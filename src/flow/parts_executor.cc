// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/parts_executor.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>

#include "base/status.h"
#include "model/extract.h"
#include "model/graph.h"

namespace tenonnx {
namespace {

class PartsGraph : public LoadedGraph {
 public:
  PartsGraph(std::unique_ptr<LoadedGraph> first, std::unique_ptr<LoadedGraph> second,
             std::vector<TensorInfo> inputs, std::vector<TensorInfo> outputs)
      : first_(std::move(first)),
        second_(std::move(second)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}

  const std::vector<TensorInfo>& inputs() const override { return inputs_; }
  const std::vector<TensorInfo>& outputs() const override { return outputs_; }
  Result<Placement> placement() override {
    return Unsupported("the placement of parts is asked of each part");
  }
  std::string description() const override {
    return fmt::format("two parts: {}", first_->description());
  }

  Status run(std::span<const Tensor> inputs, std::vector<Tensor>& outputs) override {
    TensorMap known;
    for (std::size_t i = 0; i < inputs_.size() && i < inputs.size(); ++i)
      known.emplace(inputs_[i].name, inputs[i]);
    for (LoadedGraph* part : {first_.get(), second_.get()}) {
      TensorMap feeds;
      for (const TensorInfo& info : part->inputs())
        if (const auto found = known.find(info.name); found != known.end()) feeds.insert(*found);
      TENONNX_ASSIGN_OR_RETURN(const TensorMap made, part->run(feeds));
      for (const auto& [name, tensor] : made) known.insert_or_assign(name, tensor);
    }
    outputs.resize(outputs_.size());
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const auto found = known.find(outputs_[i].name);
      if (found == known.end()) return Internal("no part made the output '{}'", outputs_[i].name);
      outputs[i] = found->second;
    }
    return {};
  }

 private:
  std::unique_ptr<LoadedGraph> first_, second_;
  std::vector<TensorInfo> inputs_, outputs_;
};

}  // namespace

Result<std::unique_ptr<LoadedGraph>> PartsExecutor::load(const Model& model,
                                                         const LoadOptions& options) const {
  const GraphIndex index(model.proto().graph());
  const std::set<std::string> at_cut(cut_.begin(), cut_.end());
  const bool all_there = std::all_of(cut_.begin(), cut_.end(), [&](const std::string& name) {
    const Value* value = index.find(name);
    return value != nullptr && !value->uses.empty();
  });
  const std::vector<TensorInfo> outputs = model.outputs();
  const bool only_cut = std::all_of(outputs.begin(), outputs.end(), [&](const TensorInfo& info) {
    return at_cut.contains(info.name);
  });
  if (cut_.empty() || only_cut || !all_there) return inner_.load(model, options);

  // The parts as a package has them; what is asked for at the cut, the first part gives.
  std::vector<std::string> inputs, behind;
  for (const TensorInfo& info : model.inputs()) inputs.push_back(info.name);
  for (const TensorInfo& info : outputs)
    if (!at_cut.contains(info.name)) behind.push_back(info.name);
  TENONNX_ASSIGN_OR_RETURN(const Model rest, extract(model, inputs, behind));
  TENONNX_ASSIGN_OR_RETURN(const SplitModel parts, split(rest, cut_));
  TENONNX_ASSIGN_OR_RETURN(auto first, inner_.load(parts.first, options));
  TENONNX_ASSIGN_OR_RETURN(auto second, inner_.load(parts.second, options));
  return std::unique_ptr<LoadedGraph>(
      std::make_unique<PartsGraph>(std::move(first), std::move(second), model.inputs(), outputs));
}

}  // namespace tenonnx
