// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/sim.h"

#include "adapters/device_versions.h"
#include "adapters/differing_op.h"
#include "adapters/sim_round_op.h"
#include "base/status.h"
#include "ort/library.h"
#include "ort/session.h"
#include "passes/runner.h"
#include "passes/sim_common.h"

namespace tenonnx {
namespace {

class SimExecutor : public Executor {
 public:
  explicit SimExecutor(Device device)
      : device_(std::move(device)), address_("sim:" + device_.name) {}

  const std::string& address() const override { return address_; }

  Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                            const LoadOptions& options) const override {
    TENONNX_RETURN_IF_ERROR(onnxruntime().status());
    auto simulated = simulated_model(model, *device_.arithmetic);
    if (!simulated.ok()) return simulated.status().at(address_);
    return load_simulated(*simulated, options, address_);
  }

  std::vector<std::pair<std::string, std::string>> versions() const override {
    return device_versions(device_);
  }

 private:
  const Device device_;
  const std::string address_;
};

class ProofExecutor : public Executor {
 public:
  explicit ProofExecutor(DifferingListener listener) : listener_(std::move(listener)) {}

  const std::string& address() const override { return cpu_->address(); }

  Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                            const LoadOptions& options) const override {
    TENONNX_RETURN_IF_ERROR(onnxruntime().status());
    SessionSetup setup = without_packing();
    setup.custom_ops.push_back(make_sim_ops());
    setup.custom_ops.push_back(make_proof_ops(listener_));
    return load_session(model, options, setup);
  }

  std::vector<std::pair<std::string, std::string>> versions() const override {
    return cpu_->versions();
  }

 private:
  const std::unique_ptr<Executor> cpu_ = make_cpu_executor();
  const DifferingListener listener_;
};

}  // namespace

Result<std::optional<Device>> simulated_device(std::string_view address) {
  constexpr std::string_view kSim = "sim:";
  if (!address.starts_with(kSim)) return std::optional<Device>();
  TENONNX_ASSIGN_OR_RETURN(Device device, find_device(address.substr(kSim.size())));
  return std::optional<Device>(std::move(device));
}

std::unique_ptr<Executor> make_proof_executor(DifferingListener listener) {
  return std::make_unique<ProofExecutor>(std::move(listener));
}

Result<std::unique_ptr<LoadedGraph>> load_simulated(const Model& simulated,
                                                    const LoadOptions& options,
                                                    std::string_view address) {
  TENONNX_RETURN_IF_ERROR(onnxruntime().status());
  SessionSetup setup;
  setup.custom_ops.push_back(make_sim_ops());
  setup.provider = address;
  LoadOptions unfused = options;
  unfused.optimization = Optimization::kDisabled;
  return load_session(simulated, unfused, setup);
}

Result<Model> simulated_model(const Model& model, const Arithmetic& arithmetic) {
  Model simulated = model.clone();
  const std::vector<std::string> fold = {"fold_constants"};
  TENONNX_RETURN_IF_ERROR(run_passes(simulated, fold, {}).status());
  TENONNX_RETURN_IF_ERROR(simulate(simulated, arithmetic).status());
  return simulated;
}

Result<std::unique_ptr<Executor>> make_sim_executor(const Device& device) {
  if (!device.arithmetic) {
    return InvalidArgument(
        "device '{}' ({}) has no \"arithmetic\" section: sim:{} has nothing to simulate{}",
        device.name, device.file.string(), device.name,
        device.is_target() ? "; it is a target, whose roles name executors" : "");
  }
  return std::unique_ptr<Executor>(std::make_unique<SimExecutor>(device));
}

}  // namespace tenonnx
