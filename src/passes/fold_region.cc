// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/fold_region.h"

#include <onnx/onnx_pb.h>

#include <memory>
#include <string_view>
#include <unordered_set>

#include "base/status.h"
#include "model/graph.h"
#include "model/tensor_proto.h"
#include "ort/executor.h"
#include "ort/library.h"
#include "ort/session.h"

namespace tenonnx {

Result<std::vector<Tensor>> evaluate(const Model& model, const Region& region) {
  auto proto = std::make_unique<onnx::ModelProto>();
  proto->set_ir_version(model.proto().ir_version());
  *proto->mutable_opset_import() = model.proto().opset_import();
  onnx::GraphProto& graph = *proto->mutable_graph();
  graph.set_name("constants");

  std::unordered_set<std::string_view> wanted;
  for (const TensorInfo& output : region.outputs) {
    onnx::ValueInfoProto& info = *graph.add_output();
    if (output.dtype != DType::kUndefined)
      info = to_value_info(output);
    else
      info.set_name(output.name);
    wanted.insert(output.name);
  }
  // Only what the outputs need, backwards.
  std::vector<const onnx::NodeProto*> needed;
  for (auto it = region.nodes.rbegin(); it != region.nodes.rend(); ++it) {
    bool used = false;
    for (const std::string& name : (*it)->output()) used |= wanted.contains(name);
    if (!used) continue;
    needed.push_back(*it);
    for (const std::string& name : (*it)->input()) wanted.insert(name);
    for (const std::string_view name : captured_names(**it)) wanted.insert(name);
  }
  for (auto it = needed.rbegin(); it != needed.rend(); ++it) *graph.add_node() = **it;
  for (const onnx::TensorProto* constant : region.constants)
    if (wanted.contains(constant->name())) *graph.add_initializer() = *constant;

  const Model part = model.with_proto(std::move(proto));
  LoadOptions options;
  options.intra_op_threads = 1;
  options.optimization = Optimization::kDisabled;
  // As proofs compute, and as ONNX Runtime's own constant folding does.
  TENONNX_RETURN_IF_ERROR(onnxruntime().status());
  TENONNX_ASSIGN_OR_RETURN(const auto loaded, load_session(part, options, without_packing()));
  std::vector<Tensor> values;
  TENONNX_RETURN_IF_ERROR(loaded->run(std::span<const Tensor>(), values));
  if (values.size() != region.outputs.size())
    return Internal("constants: {} values wanted, {} came", region.outputs.size(), values.size());
  return values;
}

}  // namespace tenonnx
