// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/bound_noise.h"

#include <onnx/onnx_pb.h>

#include <random>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/graph.h"
#include "model/shapes.h"
#include "model/tensor_proto.h"
#include "passes/edit.h"
#include "passes/sim_round.h"

namespace tenonnx {
namespace {

// +-bound for each element, of a shape that is known: ONNX Runtime 1.29 has no random operator of
// opset 22.
Tensor stored_errors(const Shape& shape, float bound, std::uint64_t seed) {
  Tensor tensor(DType::kFloat32, shape);
  std::mt19937_64 engine(seed);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.mutable_data<float>()[i] = engine() % 2 == 0 ? bound : -bound;
  return tensor;
}

// The same for each element of `like`, whose shape is not known.
std::vector<onnx::NodeProto> errors(const std::string& like, const std::string& base,
                                    const std::string& bound, std::uint64_t seed) {
  std::vector<onnx::NodeProto> nodes = {make_node("RandomUniformLike", {like}, {base + "_random"}),
                                        make_node("Sign", {base + "_random"}, {base + "_sign"}),
                                        make_node("Mul", {base + "_sign", bound}, {base})};
  set_attribute(nodes[0], "low", -1.0F);
  set_attribute(nodes[0], "high", 1.0F);
  // A float: as many bits as it holds.
  set_attribute(nodes[0], "seed", static_cast<float>(seed & 0xFFFFFF));
  for (onnx::NodeProto& node : nodes) node.set_name(node.output(0));
  return nodes;
}

}  // namespace

Result<int> add_bound_noise(Model& model, const std::map<std::string, double>& bounds,
                            std::uint64_t seed) {
  if (bounds.empty()) return 0;
  const TensorInfos infos = infer_shapes(model);
  UniqueNames names(model.proto());
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  std::vector<onnx::NodeProto> nodes;
  int moved = 0;
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    std::vector<onnx::NodeProto> behind;
    for (std::string& output : *node.mutable_output()) {
      const auto bound = bounds.find(output);
      const auto info = infos.find(output);
      if (bound == bounds.end() || info == infos.end() || info->second.dtype != DType::kFloat32)
        continue;
      const std::string exact = names.make(output + "/exact");
      const std::string error = names.make(output + "/error");
      const auto most = static_cast<float>(bound->second);
      const std::uint64_t own_seed = tensor_seed(seed, output);
      if (info->second.has_rank && element_count(info->second.shape) >= 0) {
        *graph.add_initializer() =
            to_tensor_proto(stored_errors(info->second.shape, most, own_seed), error);
      } else {
        const std::string size = names.make(output + "/bound");
        *graph.add_initializer() =
            to_tensor_proto(Tensor::from<float>(DType::kFloat32, {}, {most}), size);
        for (onnx::NodeProto& one : errors(exact, error, size, own_seed))
          behind.push_back(std::move(one));
      }
      behind.push_back(make_node("Add", {exact, error}, {output}));
      behind.back().set_name(names.make(output + "/Error"));
      output = exact;
      ++moved;
    }
    nodes.push_back(std::move(node));
    for (onnx::NodeProto& one : behind) nodes.push_back(std::move(one));
  }
  graph.clear_node();
  for (onnx::NodeProto& node : nodes) *graph.add_node() = std::move(node);
  return moved;
}

}  // namespace tenonnx
