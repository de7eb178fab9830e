// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "kernel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "adapters/sim.h"
#include "api.h"
#include "base/status.h"
#include "ort/values.h"

namespace tenonnx::simnpu {
namespace {

Result<std::vector<std::size_t>> positions(const std::vector<TensorInfo>& infos,
                                           const std::vector<std::string>& names,
                                           const std::vector<std::size_t>& at,
                                           const std::string& partition) {
  std::vector<std::size_t> out;
  for (const TensorInfo& info : infos) {
    const auto it = std::find(names.begin(), names.end(), info.name);
    if (it == names.end())
      return DataLoss("partition '{}': its graph has the tensor '{}', its node does not", partition,
                      info.name);
    out.push_back(at[static_cast<std::size_t>(it - names.begin())]);
  }
  return out;
}

Tensor view_of(const Ort::ConstValue& value) {
  const auto info = value.GetTensorTypeAndShapeInfo();
  return Tensor::view(dtype_from_ort(info.GetElementType()), info.GetShape(),
                      value.GetTensorRawData(), nullptr);
}

}  // namespace

Kernel::Kernel() : OrtNodeComputeInfo{} {
  ort_version_supported = ORT_API_VERSION;
  CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) -> OrtStatus* {
    *state = self;
    return nullptr;
  };
  Compute = [](OrtNodeComputeInfo*, void* state, OrtKernelContext* context) -> OrtStatus* {
    return guarded([&] { return static_cast<const Kernel*>(state)->compute(context); });
  };
  ReleaseState = [](OrtNodeComputeInfo*, void*) {};
}

Result<std::unique_ptr<Kernel>> Kernel::create(const Compiled& compiled,
                                               const SimNpuOptions& options) {
  std::unique_ptr<Kernel> kernel(new Kernel());
  kernel->partition_ = compiled.partition;
  for (const ReportedNode& node : compiled.nodes)
    if (node.op_type == options.no_kernel && kernel->no_kernel_.empty())
      kernel->no_kernel_ =
          fmt::format("unsupported operator {} ('{}') in this runtime", node.op_type, node.name);
  TENONNX_ASSIGN_OR_RETURN(const Model model,
                           Model::from_bytes(compiled.model, {}, compiled.partition));
  LoadOptions load;
  load.intra_op_threads = options.threads;
  load.optimization = Optimization::kDisabled;
  TENONNX_ASSIGN_OR_RETURN(kernel->graph_, load_simulated(model, load));
  TENONNX_ASSIGN_OR_RETURN(kernel->inputs_, positions(kernel->graph_->inputs(), compiled.inputs,
                                                      compiled.input_at, compiled.partition));
  TENONNX_ASSIGN_OR_RETURN(kernel->outputs_, positions(kernel->graph_->outputs(), compiled.outputs,
                                                       compiled.output_at, compiled.partition));
  return kernel;
}

Status Kernel::compute(OrtKernelContext* raw) const {
  if (!no_kernel_.empty()) return FailedPrecondition("partition '{}': {}", partition_, no_kernel_);
  const Ort::KernelContext context(raw);
  std::vector<Tensor> inputs;
  for (const std::size_t i : inputs_) inputs.push_back(view_of(context.GetInput(i)));
  std::vector<Tensor> made(outputs_.size());
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    // A static shape is known before the run, and computed in place.
    const TensorInfo& info = graph_->outputs()[i];
    if (!info.has_rank || element_count(info.shape) < 0) continue;
    auto output = context.GetOutput(outputs_[i], info.shape);
    made[i] = Tensor::view(info.dtype, info.shape, output.GetTensorMutableRawData(), nullptr);
  }
  std::vector<Tensor> results = made;
  TENONNX_RETURN_IF_ERROR(graph_->run(inputs, results).at("partition '" + partition_ + "'"));
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (made[i].defined() && results[i].raw() == made[i].raw()) continue;
    auto output = context.GetOutput(outputs_[i], results[i].shape());
    if (results[i].bytes() > 0)
      std::memcpy(output.GetTensorMutableRawData(), results[i].raw(), results[i].bytes());
  }
  return {};
}

}  // namespace tenonnx::simnpu
