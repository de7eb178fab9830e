// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/noise_path.h"

#include <onnx/onnx_pb.h>

#include <cmath>
#include <limits>
#include <set>

#include "adapters/sim.h"
#include "base/status.h"
#include "device/device.h"
#include "model/graph.h"
#include "passes/sim_nodes.h"

namespace tenonnx {
namespace {

// Distinct magnitudes of constants beyond the range that are known as masks.
constexpr std::size_t kMostMasks = 1000;

Result<std::unique_ptr<Executor>> executor_of(std::string name, Arithmetic arithmetic) {
  Device device;
  device.name = std::move(name);
  device.file = device.name;
  device.arithmetic = std::move(arithmetic);
  return make_sim_executor(device);
}

}  // namespace

Arithmetic rounding_only(DType storage) {
  Arithmetic a;
  a.storage = storage;
  a.round_inputs = a.round_weights = a.round_outputs = true;
  Overflow none;
  none.kind = Overflow::Kind::kSaturate;
  none.max = std::numeric_limits<double>::infinity();
  a.elementwise = a.matmul_result = a.matmul_operand = none;
  return a;
}

Arithmetic one_rounding_more(const Model& model) {
  Arithmetic a;
  a.storage = DType::kFloat32;
  for_each_graph(model.proto().graph(), [&](const onnx::GraphProto& graph) {
    for (const onnx::NodeProto& node : graph.node())
      if (!only_moves(node) && node.op_type() != "Constant")
        a.relative_error[node.op_type()] = 0x1p-24;
  });
  return a;
}

DeviceForms forms_of(const Device& device) {
  DeviceForms out;
  if (!device.arithmetic) return out;
  for (auto [op, form] : device.arithmetic->operators) {
    if (form.form.empty()) continue;
    form.overflow.reset();
    out.operators.emplace(op, std::move(form));
  }
  if (!out.operators.empty()) out.device = device.name;
  return out;
}

Result<NoisePaths> noise_paths(const Model& reference, DType storage, const DeviceForms& forms) {
  NoisePaths paths;
  if (storage != DType::kFloat32) {
    std::string name = fmt::format("the whole path in {}", to_string(storage));
    Arithmetic arithmetic = rounding_only(storage);
    arithmetic.operators = forms.operators;
    if (!forms.device.empty()) name += fmt::format(", operators in the forms of {}", forms.device);
    TENONNX_ASSIGN_OR_RETURN(auto executor, executor_of(name, std::move(arithmetic)));
    paths.executors.push_back(std::move(executor));
    paths.runs.push_back({paths.executors[0].get(), Optimization::kDisabled, name, false});
    return paths;
  }
  paths.executors.push_back(make_cpu_executor());
  paths.runs.push_back(
      {paths.executors[0].get(), Optimization::kAll, "two optimisation levels", false});
  const std::string name = "one float32 rounding more a tensor";
  TENONNX_ASSIGN_OR_RETURN(auto executor, executor_of(name, one_rounding_more(reference)));
  paths.executors.push_back(std::move(executor));
  paths.runs.push_back({paths.executors[1].get(), Optimization::kDisabled, name, true});
  return paths;
}

std::vector<double> mask_magnitudes(const Model& model, DType storage) {
  if (storage == DType::kFloat32) return {};
  const double limit = largest_of(storage);
  std::set<double> masks;
  for_each_tensor(model.proto(), [&](const onnx::TensorProto& proto) {
    if (proto.data_type() != onnx::TensorProto::FLOAT) return;
    const auto tensor = model.tensor(proto);
    if (!tensor.ok()) return;
    for (std::int64_t i = 0; i < tensor->size() && masks.size() < kMostMasks; ++i) {
      const double magnitude = std::fabs(static_cast<double>(tensor->data<float>()[i]));
      if (magnitude > limit) masks.insert(magnitude);
    }
  });
  return {masks.begin(), masks.end()};
}

}  // namespace tenonnx
