// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/selected_rows.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/files.h"
#include "base/status.h"
#include "model/graph.h"
#include "model/model.h"
#include "model/selects.h"

namespace tenonnx {
namespace {

bool selects(const GraphIndex& index, const onnx::NodeProto& node) {
  if (!is_selection(node)) return false;
  if (node.op_type() != "TopK" || node.output_size() < 2) return true;
  const Value* indices = node.output(1).empty() ? nullptr : index.find(node.output(1));
  return indices != nullptr && (indices->is_output || !indices->uses.empty());
}

// A shape is the same whatever was chosen, but for what chooses how many.
bool ends_there(const onnx::NodeProto& node) {
  return normalized_domain(node.domain()).empty() &&
         (node.op_type() == "Shape" || node.op_type() == "Size");
}

void follow(const Model& model, SelectedRows& rows) {
  const onnx::GraphProto& graph = model.proto().graph();
  const GraphIndex index(graph);
  std::set<std::string_view> reached;
  for (const onnx::ValueInfoProto& input : graph.input())
    if (rows.tensors.contains(input.name())) reached.insert(input.name());
  for (int n = 0; n < graph.node_size(); ++n) {
    const onnx::NodeProto& node = graph.node(n);
    const auto is_reached = [&](std::string_view name) { return reached.contains(name); };
    const auto& inputs = node.input();
    const auto& captures = index.captures(n);
    const bool selecting = selects(index, node);
    if (selecting && rows.first.empty()) rows.first = node_label(node);
    if (selecting ||
        (!ends_there(node) && (std::any_of(inputs.begin(), inputs.end(), is_reached) ||
                               std::any_of(captures.begin(), captures.end(), is_reached))))
      reached.insert(node.output().begin(), node.output().end());
  }
  for (const onnx::ValueInfoProto& output : graph.output())
    if (reached.contains(output.name())) rows.tensors.insert(output.name());
}

}  // namespace

Result<SelectedRows> selected_rows(const std::filesystem::path& package,
                                   const std::vector<Segment>& segments) {
  SelectedRows rows;
  for (const Segment& segment : segments) {
    TENONNX_ASSIGN_OR_RETURN(const auto path, resolve_inside(package, segment.file));
    auto model = Model::load(path);
    if (!model.ok()) return model.status().at("segment '" + segment.name + "'");
    follow(*model, rows);
  }
  return rows;
}

}  // namespace tenonnx
