// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/decoupled.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <vector>

#include "base/status.h"
#include "model/graph.h"
#include "model/rename.h"
#include "model/shapes.h"
#include "model/tensor_proto.h"
#include "numerics/piece.h"
#include "ort/capture.h"

namespace tenonnx {
namespace {

constexpr std::string_view kPrefix = "reference/";

class DecoupledGraph : public LoadedGraph {
 public:
  DecoupledGraph(std::unique_ptr<LoadedGraph> graph, std::vector<TensorInfo> inputs,
                 const FedTensors& fed, ReferenceTensors& reference)
      : graph_(std::move(graph)), inputs_(std::move(inputs)), reference_(reference) {
    for (const TensorInfo& info : graph_->inputs()) {
      if (!info.name.starts_with(kPrefix)) continue;
      const auto found = fed.find(info.name.substr(kPrefix.size()));
      if (found == fed.end()) continue;  // a graph input of that name
      sources_.emplace(info.name, found->second);
      wanted_.insert(found->second);
    }
  }

  const std::vector<TensorInfo>& inputs() const override { return inputs_; }
  const std::vector<TensorInfo>& outputs() const override { return graph_->outputs(); }
  Result<Placement> placement() override { return graph_->placement(); }
  std::string description() const override { return "decoupled, " + graph_->description(); }
  Status select_case(std::string_view name, std::size_t index) override {
    position_ = index;
    return graph_->select_case(name, index);
  }

  Status run(std::span<const Tensor> inputs, std::vector<Tensor>& outputs) override {
    TENONNX_ASSIGN_OR_RETURN(const TensorMap reference, reference_.get(wanted_, position_));
    std::vector<Tensor> feeds;
    for (const TensorInfo& info : graph_->inputs()) {
      if (const auto source = sources_.find(info.name); source != sources_.end()) {
        feeds.push_back(reference.at(source->second));
        continue;
      }
      const auto own = std::find_if(inputs_.begin(), inputs_.end(),
                                    [&](const TensorInfo& one) { return one.name == info.name; });
      if (own == inputs_.end() || static_cast<std::size_t>(own - inputs_.begin()) >= inputs.size())
        return Internal("nothing feeds '{}' of a decoupled graph", info.name);
      feeds.push_back(inputs[static_cast<std::size_t>(own - inputs_.begin())]);
    }
    return graph_->run(feeds, outputs);
  }

 private:
  std::unique_ptr<LoadedGraph> graph_;
  const std::vector<TensorInfo> inputs_;
  ReferenceTensors& reference_;
  std::map<std::string, std::string> sources_;  // input of graph_ -> the reference's tensor
  std::set<std::string> wanted_;
  std::size_t position_ = 0;
};

}  // namespace

ReferenceTensors::ReferenceTensors(const Executor& executor, const Model& model,
                                   const TensorInputs& inputs, LoadOptions options)
    : executor_(executor), model_(model), inputs_(inputs), options_(options) {
  options_.optimization = Optimization::kDisabled;
}

ReferenceTensors::Entry& ReferenceTensors::entry_for(const std::set<std::string>& names) {
  for (Entry& entry : entries_)
    if (entry.names == names) return entry;
  // Two sides of a comparison at most ask in turn, each for its own.
  if (entries_.size() == 2) entries_.erase(entries_.begin());
  entries_.push_back({names, nullptr, 0, {}});
  return entries_.back();
}

Result<TensorMap> ReferenceTensors::get(const std::set<std::string>& names, std::size_t position) {
  Entry& entry = entry_for(names);
  if (!entry.tensors.empty() && entry.position == position) return entry.tensors;
  entry.tensors.clear();
  TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, inputs_.load(position));
  TensorMap out;
  std::vector<std::string> computed;
  for (const std::string& name : names) {
    if (const auto fed = input.tensors.find(name); fed != input.tensors.end())
      out.insert(*fed);
    else
      computed.push_back(name);
  }
  if (!computed.empty()) {
    if (entry.graph == nullptr) {
      TENONNX_ASSIGN_OR_RETURN(entry.graph,
                               load_with_outputs(executor_, model_, computed, options_));
    }
    TENONNX_RETURN_IF_ERROR(entry.graph->select_case(input.name, position));
    TENONNX_ASSIGN_OR_RETURN(TensorMap made,
                             entry.graph->run(inputs_of(*entry.graph, input.tensors)));
    out.merge(made);
  }
  entry.position = position;
  entry.tensors = out;
  return out;
}

Result<std::size_t> ReferenceTensors::position_of(const std::string& input) {
  if (positions_.empty())
    for (std::size_t n = 0; n < inputs_.size(); ++n) {
      TENONNX_ASSIGN_OR_RETURN(const ReferenceInput one, inputs_.load(n));
      positions_.emplace(one.name, n);
    }
  const auto found = positions_.find(input);
  return found == positions_.end() ? 0 : found->second;
}

Result<Model> decouple(const Model& model, const FedTensors& fed) {
  const GraphIndex index(model.proto().graph());
  std::vector<std::string> outputs;
  for (const onnx::ValueInfoProto& output : index.graph().output())
    outputs.push_back(output.name());
  auto proto = std::make_unique<onnx::ModelProto>(model.proto());
  onnx::GraphProto& graph = *proto->mutable_graph();
  graph.clear_node();
  std::set<std::string> read;
  for (const int n :
       nodes_that_make(index, outputs, [&](std::string_view name) { return fed.contains(name); })) {
    onnx::NodeProto& node = *graph.add_node();
    node = index.graph().node(n);
    TensorNames names;
    const auto feed = [&](std::string_view name) {
      const Value* value = index.find(name);
      if (value == nullptr || value->is_input || !fed.contains(name)) return;
      read.emplace(name);
      names.emplace(name, std::string(kPrefix) + std::string(name));
    };
    for (const std::string& name : node.input()) feed(name);
    for (const std::string_view name : index.captures(n)) feed(name);
    rename_reads(node, names);
  }
  const TensorInfos infos = infer_shapes(model, std::vector<std::string>(read.begin(), read.end()));
  for (const std::string& name : read) {
    const auto info = infos.find(name);
    if (info == infos.end() || info->second.dtype == DType::kUndefined)
      return FailedPrecondition("the type of '{}' is not known, so that it cannot be fed", name);
    TensorInfo typed = info->second;
    typed.name = std::string(kPrefix) + name;
    *graph.add_input() = to_value_info(typed);
  }
  remove_unused(*proto);
  return model.with_proto(std::move(proto));
}

Result<std::unique_ptr<LoadedGraph>> DecoupledExecutor::load(const Model& model,
                                                             const LoadOptions& options) const {
  TENONNX_ASSIGN_OR_RETURN(const Model apart, decouple(model, fed_));
  TENONNX_ASSIGN_OR_RETURN(auto graph, inner_.load(apart, options));
  return std::unique_ptr<LoadedGraph>(
      std::make_unique<DecoupledGraph>(std::move(graph), model.inputs(), fed_, reference_));
}

}  // namespace tenonnx
