// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/placement_fingerprint.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ort/capture.h"
#include "passes/sim_common.h"
#include "passes/sim_nodes.h"
#include "passes/sim_round.h"

namespace tenonnx {
namespace {

// The first value that rounding to the device's storage changes; nothing where it stores all.
std::optional<float> foreign_value(const Tensor& tensor, bool product, const Arithmetic& a) {
  RoundSpec spec;
  spec.storage = a.storage;
  // What a product stores as a NaN's pattern is an ordinary number to whoever reads it.
  const bool pattern = a.matmul_result.kind == Overflow::Kind::kPattern;
  spec.overflow = product && !pattern ? a.matmul_result : a.elementwise;
  spec.keep_subnormals = a.keep_subnormals;
  std::vector<float> rounded(static_cast<std::size_t>(tensor.size()));
  const float* values = tensor.data<float>();
  round_values(spec, values, rounded.data(), tensor.size());
  for (std::size_t i = 0; i < rounded.size(); ++i)
    if (!(rounded[i] == values[i]) && !(std::isnan(rounded[i]) && std::isnan(values[i])))
      return values[i];
  return std::nullopt;
}

// First and last node of each operator that the vendor calls the device's.
std::vector<const onnx::NodeProto*> representatives(const Model& model,
                                                    const ProviderRecord& record) {
  std::unordered_map<std::string, const VendorNode*> labelled;
  for (const VendorNode& node : record.vendor)
    if (node.backend == "device") labelled[node.node] = &node;
  std::map<std::string, std::pair<const onnx::NodeProto*, const onnx::NodeProto*>> ends;
  for (const onnx::NodeProto& node : model.proto().graph().node()) {
    if (!labelled.contains(node.name()) || node.output_size() == 0 || only_moves(node)) continue;
    auto& pair = ends[node.op_type()];
    if (pair.first == nullptr) pair.first = &node;
    pair.second = &node;
  }
  std::vector<const onnx::NodeProto*> nodes;
  for (const auto& [op_type, pair] : ends) {
    nodes.push_back(pair.first);
    if (pair.second != pair.first) nodes.push_back(pair.second);
  }
  return nodes;
}

}  // namespace

Result<Fingerprint> take_fingerprint(const Executor& executor, const Model& model,
                                     const ProviderRecord& record, const Device& device,
                                     const TensorMap& inputs, const LoadOptions& options) {
  Fingerprint out;
  const auto nodes = representatives(model, record);
  if (nodes.empty() || !device.arithmetic || !device.arithmetic->round_outputs ||
      device.arithmetic->storage == DType::kFloat32)
    return out;
  std::vector<std::string> outputs;
  for (const onnx::NodeProto* node : nodes) outputs.push_back(node->output(0));
  LoadOptions own = options;
  own.profile = own.disable_fallback = false;
  TENONNX_ASSIGN_OR_RETURN(const auto graph, load_with_outputs(executor, model, outputs, own));
  TENONNX_ASSIGN_OR_RETURN(const TensorMap made, graph->run(inputs_of(*graph, inputs)));
  for (const onnx::NodeProto* node : nodes) {
    const auto it = made.find(node->output(0));
    if (it == made.end() || it->second.dtype() != DType::kFloat32) continue;
    ++out.looked_at;
    const auto value = foreign_value(it->second, is_product(node->op_type()), *device.arithmetic);
    if (!value) continue;
    out.mislabelled.insert(node->op_type());
    if (out.example.empty())
      out.example = fmt::format("{} '{}' gives {:.9g}, which {} does not hold", node->op_type(),
                                node->name(), *value, to_string(device.arithmetic->storage));
  }
  return out;
}

}  // namespace tenonnx
