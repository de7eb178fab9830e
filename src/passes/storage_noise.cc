// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/storage_noise.h"

#include <onnx/onnx_pb.h>

#include <utility>
#include <vector>

#include "base/status.h"
#include "model/graph.h"
#include "model/shapes.h"
#include "passes/edit.h"
#include "passes/proof_inputs.h"
#include "passes/sim_common.h"
#include "passes/sim_nodes.h"

namespace tenonnx {
namespace {

// Half a unit in the last place, relative to a value at the lower end of its binade; 0 of types
// that are no narrow floats.
double half_unit(DType dtype) {
  if (dtype == DType::kFloat16) return 0x1p-11;
  return dtype == DType::kBFloat16 ? 0x1p-8 : 0;
}

onnx::NodeProto cast(const std::string& from, const std::string& to, int onnx_type) {
  onnx::NodeProto node = make_node("Cast", {from}, {to});
  set_attribute(node, "to", std::int64_t{onnx_type});
  return node;
}

int onnx_type_of(DType dtype) {
  return dtype == DType::kFloat16 ? onnx::TensorProto::FLOAT16 : onnx::TensorProto::BFLOAT16;
}

}  // namespace

Result<int> add_storage_noise(Model& model, std::uint64_t seed) {
  const TensorInfos infos = infer_shapes(model);
  UniqueNames names(model.proto());
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  std::vector<onnx::NodeProto> nodes;
  int rounded = 0;
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    const bool computes = !only_moves(node) && !is_op(node, "Constant");
    std::vector<onnx::NodeProto> behind;
    for (std::string& output : *node.mutable_output()) {
      const auto info = infos.find(output);
      if (!computes || info == infos.end()) continue;
      RoundSpec spec;
      spec.relative_error = half_unit(info->second.dtype);
      if (spec.relative_error == 0) continue;
      spec.seed = tensor_seed(seed, output);
      const std::string stored = names.make(output + "/stored");
      const std::string wide = names.make(output + "/wide");
      const std::string noisy = names.make(output + "/noisy");
      behind.push_back(cast(stored, wide, onnx::TensorProto::FLOAT));
      behind.push_back(
          round_node(spec, onnx::TensorProto::FLOAT, names.make(output + "/Round"), wide, noisy));
      behind.push_back(cast(noisy, output, onnx_type_of(info->second.dtype)));
      output = stored;
      ++rounded;
    }
    nodes.push_back(std::move(node));
    for (onnx::NodeProto& one : behind) nodes.push_back(std::move(one));
  }
  graph.clear_node();
  for (onnx::NodeProto& node : nodes) *graph.add_node() = std::move(node);
  if (rounded == 0) return 0;
  TENONNX_RETURN_IF_ERROR(import_opset(model.mutable_proto(), kSimDomain, 1));
  TENONNX_RETURN_IF_ERROR(disturb_constants(model, seed));
  return rounded;
}

}  // namespace tenonnx
