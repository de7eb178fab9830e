// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/kept_graph.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>

#include "base/status.h"
#include "model/extract.h"
#include "model/rename.h"
#include "model/tensor_proto.h"
#include "numerics/piece.h"

namespace tenonnx {
namespace {

constexpr std::string_view kOurs = "reference/", kGone = "candidate/";

std::map<std::string, std::int64_t> opsets(const onnx::ModelProto& proto) {
  std::map<std::string, std::int64_t> out;
  for (const auto& opset : proto.opset_import())
    out[std::string(normalized_domain(opset.domain()))] = opset.version();
  return out;
}

Status check_opsets(const Model& a, const Model& b) {
  const auto ours = opsets(a.proto()), theirs = opsets(b.proto());
  for (const auto& [domain, version] : ours) {
    const auto found = theirs.find(domain);
    if (found != theirs.end() && found->second != version)
      return FailedPrecondition(
          "the reference is of opset {} of '{}', the candidate of {}: nodes of both cannot stand "
          "in one graph; bring one to the other's opset (tenonnx rewrite --pass convert_opset)",
          version, domain.empty() ? "ai.onnx" : domain, found->second);
  }
  return {};
}

}  // namespace

KeptGraph::KeptGraph(KeptGraph&& other) noexcept { *this = std::move(other); }

KeptGraph& KeptGraph::operator=(KeptGraph&& other) noexcept {
  const bool owns = other.own.has_value();
  own = std::move(other.own);
  kept = std::move(other.kept);
  model = owns ? &*own : other.model;
  return *this;
}

Result<KeptGraphs> KeptGraphs::make(const CompareSetup& setup, const ErrorTable& table) {
  KeptGraphs out;
  out.setup_ = &setup;
  if (!setup.two_models) return out;
  TENONNX_RETURN_IF_ERROR(check_opsets(setup.reference, setup.other));
  TensorNames names;
  for (const auto& [theirs, ours] : shared_tensors(table)) {
    names[ours] = theirs;
    out.shared_.insert(theirs);
  }
  const GraphIndex index(setup.reference.proto().graph());
  for (const Value& value : index.values()) {
    if (value.is_input && value.initializer == nullptr) continue;
    names.try_emplace(std::string(value.name), std::string(kOurs) + std::string(value.name));
  }
  out.renamed_ = setup.reference.clone();
  onnx::ModelProto& proto = out.renamed_->mutable_proto();
  rename_graph(*proto.mutable_graph(), names);
  // Weights of the reference lie in its own files.
  for (onnx::TensorProto& tensor : *proto.mutable_graph()->mutable_initializer()) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) continue;
    TENONNX_ASSIGN_OR_RETURN(const Tensor value, out.renamed_->tensor(tensor));
    const std::string name = tensor.name();
    tensor = to_tensor_proto(value, name);
  }
  return out;
}

bool KeptGraphs::both_have(std::string_view name) const {
  if (!setup_->two_models || shared_.contains(name)) return true;
  const auto inputs = setup_->other.inputs();
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const TensorInfo& info) { return info.name == name; });
}

Result<KeptGraph> KeptGraphs::keep(const std::set<int>& nodes) const {
  KeptGraph out;
  out.model = &setup_->candidate();
  if (!setup_->two_models) {
    out.kept = nodes;
    return out;
  }
  const Model& candidate = setup_->other;
  auto proto = std::make_unique<onnx::ModelProto>(candidate.proto());
  onnx::GraphProto& graph = *proto->mutable_graph();
  const GraphIndex ours(renamed_->proto().graph());
  std::set<std::string> wanted;  // tensors that the reference is to make
  for (const int n : nodes)
    for (std::string& name : *graph.mutable_node(n)->mutable_output()) {
      if (!shared_.contains(name)) continue;
      wanted.insert(name);
      name = std::string(kGone) + name;
    }
  std::set<std::string> made;  // by the reference's nodes
  for (const int n :
       nodes_that_make(ours, {wanted.begin(), wanted.end()},
                       [&](std::string_view name) { return shared_.contains(name); })) {
    onnx::NodeProto& node = *graph.add_node();
    node = ours.graph().node(n);
    node.set_name(std::string(kOurs) + node.name());
    for (std::string& name : *node.mutable_output()) {
      // Of a node of which another result is wanted.
      if (shared_.contains(name) && !wanted.contains(name)) name = std::string(kOurs) + name;
      if (!name.empty()) made.insert(name);
    }
  }
  for (const onnx::TensorProto& tensor : renamed_->proto().graph().initializer())
    *graph.add_initializer() = tensor;
  for (const onnx::ValueInfoProto& info : renamed_->proto().graph().value_info())
    if (info.name().starts_with(kOurs)) *graph.add_value_info() = info;
  for (const auto& opset : renamed_->proto().opset_import())
    if (opsets(*proto).count(std::string(normalized_domain(opset.domain()))) == 0)
      *proto->add_opset_import() = opset;
  TENONNX_RETURN_IF_ERROR(sort_nodes(graph).status());
  const Model joined = candidate.with_proto(std::move(proto));
  std::vector<std::string> inputs, outputs;
  for (const TensorInfo& info : joined.inputs()) inputs.push_back(info.name);
  for (const TensorInfo& info : joined.outputs()) outputs.push_back(info.name);
  // Without the candidate's nodes that nothing needs any more.
  TENONNX_ASSIGN_OR_RETURN(out.own, extract(joined, inputs, outputs));
  out.model = &*out.own;
  const onnx::GraphProto& whole = out.own->proto().graph();
  for (int n = 0; n < whole.node_size(); ++n)
    if (std::any_of(whole.node(n).output().begin(), whole.node(n).output().end(),
                    [&](const std::string& name) { return made.contains(name); }))
      out.kept.insert(n);
  return out;
}

}  // namespace tenonnx
