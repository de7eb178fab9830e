// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/diagnose.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <vector>

#include "adapters/sim.h"
#include "base/status.h"
#include "model/graph.h"
#include "ort/capture.h"
#include "passes/runner.h"
#include "passes/sim_common.h"

namespace tenonnx {
namespace {

// Each window loads and runs the graph from its inputs again, so that few large ones cost less: a
// 640 px detector makes 2 GB of tensors in float32, which is 4 windows.
constexpr std::int64_t kWindowBytes = 512 << 20;
// Distinct magnitudes of constants beyond the range that are known as masks.
constexpr std::size_t kMostMasks = 1000;

// In the order of execution: every float32 or float64 tensor that a node makes and something uses.
std::vector<ComputedTensor> watched_tensors(const Model& model, const GraphIndex& index) {
  std::vector<ComputedTensor> tensors = computed_tensors(model, index);
  std::erase_if(tensors, [](const ComputedTensor& tensor) {
    return tensor.info.dtype != DType::kFloat32 && tensor.info.dtype != DType::kFloat64;
  });
  return tensors;
}

using Visit = std::function<bool(const ComputedTensor&, const std::vector<Tensor>& values)>;

// Runs `model` with the watched tensors as outputs on each executor, window after window, and calls
// `visit` with a tensor's value on each of them until it returns true.
Status run_windows(const Model& model, const TensorMap& inputs,
                   const std::vector<const Executor*>& executors,
                   const std::vector<ComputedTensor>& tensors, const Progress& progress,
                   const Visit& visit) {
  LoadOptions options;
  options.optimization = Optimization::kDisabled;
  std::vector<std::int64_t> bytes;
  for (const ComputedTensor& tensor : tensors) bytes.push_back(tensor.bytes);
  for (const Window& window : plan_windows(bytes, kWindowBytes)) {
    std::vector<std::string> outputs;
    for (std::size_t i = window.begin; i < window.end; ++i) outputs.push_back(tensors[i].name);
    if (progress)
      progress("diagnose", static_cast<std::int64_t>(window.begin),
               static_cast<std::int64_t>(tensors.size()));
    std::vector<TensorMap> results;
    for (const Executor* executor : executors) {
      TENONNX_ASSIGN_OR_RETURN(const auto loaded,
                               load_with_outputs(*executor, model, outputs, options));
      TENONNX_ASSIGN_OR_RETURN(TensorMap result, loaded->run(inputs));
      results.push_back(std::move(result));
    }
    for (std::size_t i = window.begin; i < window.end; ++i) {
      std::vector<Tensor> values;
      for (const TensorMap& result : results) {
        const auto found = result.find(tensors[i].name);
        if (found != result.end()) values.push_back(found->second);
      }
      if (values.size() == results.size() && visit(tensors[i], values)) return {};
    }
  }
  return {};
}

double element(const Tensor& tensor, std::int64_t i) {
  return tensor.dtype() == DType::kFloat32 ? tensor.data<float>()[i] : tensor.data<double>()[i];
}

bool is_float(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat32 || tensor.dtype() == DType::kFloat64;
}

// Magnitudes of constants beyond `limit`: what computed tensors repeat of them is a mask.
std::set<double> mask_values(const Model& model, double limit) {
  std::set<double> masks;
  for (const onnx::TensorProto& proto : model.proto().graph().initializer()) {
    const auto tensor = model.tensor(proto);
    if (!tensor.ok() || !is_float(*tensor)) continue;
    for (std::int64_t i = 0; i < tensor->size() && masks.size() < kMostMasks; ++i) {
      const double magnitude = std::abs(element(*tensor, i));
      if (magnitude > limit) masks.insert(magnitude);
    }
  }
  return masks;
}

// The smallest of the limits that apply to a tensor.
void set_limit(RangeFinding& finding, const Value& value, const onnx::NodeProto* node,
               const onnx::GraphProto& graph, const Arithmetic& a) {
  finding.limit = std::numeric_limits<double>::infinity();
  const auto apply = [&](double limit, std::string of) {
    if (limit >= finding.limit) return;
    finding.limit = limit;
    finding.limit_of = std::move(of);
  };
  for (const Use& use : value.uses) {
    const onnx::NodeProto& user = graph.node(use.node);
    if (use.input < 0 || use.input > 1 || !is_product(user.op_type())) continue;
    apply(largest_kept(a, a.matmul_operand), "an operand of " + node_label(user));
  }
  if (node == nullptr) {
    if (a.round_inputs) apply(largest_kept(a, a.elementwise), "an input");
  } else if (a.round_outputs && is_product(node->op_type())) {
    apply(largest_kept(a, a.matmul_result), "a result of " + node->op_type());
  } else if (a.round_outputs) {
    apply(largest_kept(a, a.elementwise), "an element-wise result");
  }
}

// Fills in what exceeds the limit; false where nothing does.
bool exceeds(const Tensor& tensor, const std::set<double>& masks, RangeFinding& finding) {
  finding.count = tensor.size();
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double magnitude = std::abs(element(tensor, i));
    if (!(magnitude > finding.limit) || std::isinf(magnitude) || masks.contains(magnitude))
      continue;
    ++finding.beyond;
    finding.max_abs = std::max(finding.max_abs, magnitude);
  }
  return finding.beyond > 0;
}

Result<Model> folded(const Model& model) {
  Model copy = model.clone();
  const std::vector<std::string> fold = {"fold_constants"};
  TENONNX_RETURN_IF_ERROR(run_passes(copy, fold, {}).status());
  return copy;
}

}  // namespace

std::string to_string(const RangeFinding& f) {
  return fmt::format(
      "tensor '{}' of {} reaches {:.6g} in the reference ({} of {} elements beyond), but the "
      "device "
      "keeps at most {:.6g} as {}",
      f.tensor, f.node, f.max_abs, f.beyond, f.count, f.limit, f.limit_of);
}

std::string to_string(const NonFiniteFinding& f) {
  return fmt::format(
      "tensor '{}' of {} has {} infinite and {} NaN of {} elements where the reference is finite",
      f.tensor, f.node, f.infinite, f.nan, f.count);
}

Result<std::optional<RangeFinding>> first_beyond_range(const Model& model, const TensorMap& inputs,
                                                       const Device& device,
                                                       const Progress& progress) {
  if (!device.arithmetic) {
    return InvalidArgument("device '{}' ({}) has no \"arithmetic\" section, so no range",
                           device.name, device.file.string());
  }
  const Arithmetic& a = *device.arithmetic;
  TENONNX_ASSIGN_OR_RETURN(const Model plain, folded(model));
  const onnx::GraphProto& graph = plain.proto().graph();
  const GraphIndex index(graph);
  const std::set<double> masks = mask_values(plain, largest_kept(a, a.matmul_operand));
  std::optional<RangeFinding> first;
  for (const auto& [name, tensor] : inputs) {
    const Value* value = index.find(name);
    if (value == nullptr || !is_float(tensor)) continue;
    RangeFinding finding{name, fmt::format("input '{}'", name)};
    set_limit(finding, *value, nullptr, graph, a);
    if (exceeds(tensor, masks, finding)) return std::optional(std::move(finding));
  }
  const auto cpu = make_cpu_executor();
  TENONNX_RETURN_IF_ERROR(
      run_windows(plain, inputs, {cpu.get()}, watched_tensors(plain, index), progress,
                  [&](const ComputedTensor& watched, const std::vector<Tensor>& values) {
                    const onnx::NodeProto& node = graph.node(watched.node);
                    RangeFinding finding{watched.name, node_label(node), node.op_type()};
                    set_limit(finding, *index.find(watched.name), &node, graph, a);
                    if (!is_float(values[0]) || !exceeds(values[0], masks, finding)) return false;
                    first = std::move(finding);
                    return true;
                  }));
  return first;
}

Result<std::optional<NonFiniteFinding>> first_non_finite(const Model& model,
                                                         const TensorMap& inputs,
                                                         const Executor& reference,
                                                         const Executor& device,
                                                         const Progress& progress) {
  TENONNX_ASSIGN_OR_RETURN(const Model plain, folded(model));
  const GraphIndex index(plain.proto().graph());
  std::optional<NonFiniteFinding> first;
  TENONNX_RETURN_IF_ERROR(
      run_windows(plain, inputs, {&reference, &device}, watched_tensors(plain, index), progress,
                  [&](const ComputedTensor& watched, const std::vector<Tensor>& values) {
                    const onnx::NodeProto& node = plain.proto().graph().node(watched.node);
                    NonFiniteFinding finding{watched.name, node_label(node), node.op_type()};
                    if (!is_float(values[0]) || values[0].dtype() != values[1].dtype() ||
                        values[0].size() != values[1].size())
                      return false;
                    finding.count = values[0].size();
                    for (std::int64_t i = 0; i < finding.count; ++i) {
                      const double got = element(values[1], i);
                      if (std::isfinite(got) || !std::isfinite(element(values[0], i))) continue;
                      ++(std::isnan(got) ? finding.nan : finding.infinite);
                    }
                    if (finding.nan + finding.infinite == 0) return false;
                    first = std::move(finding);
                    return true;
                  }));
  return first;
}

Result<std::string> explain_failure(const Model& model, const TensorMap& inputs,
                                    std::string_view address) {
  TENONNX_ASSIGN_OR_RETURN(const auto device, simulated_device(address));
  if (!device) return std::string();
  TENONNX_ASSIGN_OR_RETURN(const auto executor, make_sim_executor(*device));
  TENONNX_ASSIGN_OR_RETURN(const auto beyond, first_beyond_range(model, inputs, *device));
  std::string text;
  if (beyond)
    text = "first tensor beyond the range of " + std::string(address) + ": " + to_string(*beyond);
  TENONNX_ASSIGN_OR_RETURN(const auto broken,
                           first_non_finite(model, inputs, *make_cpu_executor(), *executor));
  if (broken) {
    text += fmt::format("{}first tensor with Inf or NaN on {}: {}", text.empty() ? "" : "; ",
                        address, to_string(*broken));
  }
  return text;
}

}  // namespace tenonnx
