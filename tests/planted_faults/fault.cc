// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "fault.h"

#include <onnx/onnx_pb.h>

#include "base/status.h"

namespace tenonnx::planted {
namespace {

class FaultyExecutor : public Executor {
 public:
  FaultyExecutor(std::unique_ptr<Executor> inner, std::string tensor, Fault fault)
      : inner_(std::move(inner)), tensor_(std::move(tensor)), fault_(std::move(fault)) {}

  const std::string& address() const override { return inner_->address(); }
  Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                            const LoadOptions& options) const override {
    Model changed = model.clone();
    plant(changed, tensor_, fault_);
    return inner_->load(changed, options);
  }
  std::vector<std::pair<std::string, std::string>> versions() const override {
    return inner_->versions();
  }

 private:
  const std::unique_ptr<Executor> inner_;
  const std::string tensor_;
  const Fault fault_;
};

class CopyExecutor : public Executor {
 public:
  CopyExecutor(std::string address, bool optimised)
      : address_(std::move(address)), optimised_(optimised) {}

  const std::string& address() const override { return address_; }
  Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                            const LoadOptions& options) const override {
    LoadOptions load = options;
    if (!optimised_) load.optimization = Optimization::kDisabled;
    return cpu_->load(model, load);
  }
  std::vector<std::pair<std::string, std::string>> versions() const override {
    return cpu_->versions();
  }

 private:
  const std::unique_ptr<Executor> cpu_ = make_cpu_executor();
  const std::string address_;
  const bool optimised_;
};

}  // namespace

const onnx::NodeProto& Facts::node(int n) const { return model.proto().graph().node(n); }

Shape Facts::shape(const std::string& tensor) const {
  const auto found = infos.find(tensor);
  if (found == infos.end() || !found->second.has_rank) return {};
  for (const std::int64_t length : found->second.shape)
    if (length < 0) return {};
  return found->second.shape;
}

bool Facts::is_float(const std::string& tensor) const {
  const auto found = infos.find(tensor);
  return found != infos.end() && found->second.dtype == DType::kFloat32;
}

void Facts::find_computed() {
  const onnx::GraphProto& graph = model.proto().graph();
  for (const TensorInfo& input : model.inputs()) computed.insert(input.name);
  for (int n = 0; n < graph.node_size(); ++n) {
    bool follows = false;
    for (const std::string& name : graph.node(n).input()) follows |= computed.contains(name);
    for (const std::string_view name : index.captures(n))
      follows |= computed.contains(std::string(name));
    if (follows)
      for (const std::string& name : graph.node(n).output())
        if (!name.empty()) computed.insert(name);
  }
}

void plant(Model& model, const std::string& tensor, const Fault& fault) {
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  for (int n = 0; n < graph.node_size(); ++n) {
    if (graph.node(n).output_size() == 0 || graph.node(n).output(0) != tensor) continue;
    fault.change(model, n);
    static_cast<void>(sort_nodes(*model.mutable_proto().mutable_graph()).ok());
    return;
  }
}

std::unique_ptr<Executor> make_faulty(std::unique_ptr<Executor> inner, std::string tensor,
                                      Fault fault) {
  return std::make_unique<FaultyExecutor>(std::move(inner), std::move(tensor), std::move(fault));
}

std::unique_ptr<Executor> make_copy(std::string address, bool optimised) {
  return std::make_unique<CopyExecutor>(std::move(address), optimised);
}

}  // namespace tenonnx::planted
