// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_grids.h"

#include <onnx/onnx_pb.h>

#include <random>
#include <utility>
#include <vector>

#include "model/graph.h"
#include "model/shapes.h"
#include "model/tensor_proto.h"
#include "passes/edit.h"

namespace tenonnx {
namespace {

// g * (1 + 2^-23) is one or two units from g, g * (1 - 2^-24) one.
constexpr float kFactors[] = {1 - 0x1p-24F, 1, 1 + 0x1p-23F};
constexpr float kSteps[] = {-0x1p-24F, 0, 0x1p-24F};

Tensor one_of(const float (&choice)[3], const Shape& shape, std::uint64_t seed) {
  Tensor tensor(DType::kFloat32, shape);
  std::mt19937_64 engine(seed);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.mutable_data<float>()[i] = choice[engine() % 3];
  return tensor;
}

}  // namespace

Status disturb_grids(Model& model, std::uint64_t seed) {
  const auto& original = model.proto().graph();
  std::vector<std::string> grids;
  for (const auto& node : original.node())
    if (is_op(node, "GridSample") && node.input_size() > 1) grids.push_back(node.input(1));
  if (grids.empty()) return {};
  TensorInfos infos = infer_shapes(model, grids);
  // Stored grids, which are rounded like any other.
  for (const auto& stored : original.initializer())
    if (stored.data_type() == onnx::TensorProto::FLOAT)
      infos.try_emplace(stored.name(),
                        TensorInfo{stored.name(), DType::kFloat32,
                                   Shape(stored.dims().begin(), stored.dims().end())});
  UniqueNames names(model.proto());
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  std::vector<onnx::NodeProto> nodes;
  for (auto& node : *graph.mutable_node()) {
    if (is_op(node, "GridSample") && node.input_size() > 1) {
      const auto info = infos.find(node.input(1));
      const bool known = info != infos.end() && info->second.dtype == DType::kFloat32 &&
                         info->second.has_rank && element_count(info->second.shape) > 0;
      if (known) {
        const std::string factor = names.make(node.input(1) + "_rounding");
        const std::string step = names.make(node.input(1) + "_step");
        const std::string scaled = names.make(node.input(1) + "_scaled");
        const std::string moved = names.make(node.input(1) + "_rounded");
        const Shape& shape = info->second.shape;
        *graph.add_initializer() = to_tensor_proto(one_of(kFactors, shape, ++seed), factor);
        *graph.add_initializer() = to_tensor_proto(one_of(kSteps, shape, ++seed), step);
        nodes.push_back(make_node("Mul", {node.input(1), factor}, {scaled}));
        nodes.back().set_name(scaled);
        nodes.push_back(make_node("Add", {scaled, step}, {moved}));
        nodes.back().set_name(moved);
        node.set_input(1, moved);
      }
    }
    nodes.push_back(std::move(node));
  }
  graph.clear_node();
  for (onnx::NodeProto& node : nodes) *graph.add_node() = std::move(node);
  return {};
}

}  // namespace tenonnx
