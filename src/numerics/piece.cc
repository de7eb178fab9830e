// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/piece.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <unordered_set>

#include "base/nearest.h"
#include "base/status.h"
#include "model/extract.h"

namespace tenonnx {
namespace {

bool is_computed(const GraphIndex& index, std::string_view name) {
  const Value* value = index.find(name);
  if (value == nullptr || value->is_initializer()) return false;
  return value->producer < 0 || index.graph().node(value->producer).op_type() != "Constant";
}

bool is_below(std::string_view name, std::string_view block) {
  return name == block || (name.size() > block.size() && name.starts_with(block) &&
                           (block.ends_with('/') || name[block.size()] == '/'));
}

// `end` as the end of `name`, not in the middle of a word: "x" is not meant to be "softmax".
bool ends_with_part(std::string_view name, std::string_view end) {
  if (end.empty() || !name.ends_with(end)) return false;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return name.size() == end.size() || !is_word(name[name.size() - end.size() - 1]) ||
         !is_word(end.front());
}

// The node that is meant by its name, by a tensor that it makes, or by the end of either.
Result<int> find_node(const GraphIndex& index, const std::string& wanted) {
  constexpr std::size_t kMost = 10;
  std::vector<int> ends;
  if (const Value* value = index.find(wanted); value != nullptr && value->producer < 0)
    return InvalidArgument(
        "'{}' is an input or a constant of the model, which no node makes: name a node or a tensor "
        "that one makes",
        wanted);
  for (int n = 0; n < index.graph().node_size(); ++n) {
    const onnx::NodeProto& node = index.graph().node(n);
    const auto& outputs = node.output();
    if (node.name() == wanted || std::find(outputs.begin(), outputs.end(), wanted) != outputs.end())
      return n;
    const auto ends_so = [&](const std::string& name) { return ends_with_part(name, wanted); };
    if (ends_so(node.name()) || std::any_of(outputs.begin(), outputs.end(), ends_so))
      ends.push_back(n);
  }
  if (ends.empty()) return -1;
  if (ends.size() == 1) return ends.front();
  std::string list;
  for (std::size_t i = 0; i < ends.size() && i < kMost; ++i)
    list += (i == 0 ? "" : ", ") + node_label(index.graph().node(ends[i]));
  if (ends.size() > kMost) list += ", ...";
  return InvalidArgument(
      "'{}' is the end of the names of {} nodes, or of what they make: {}; give a longer one",
      wanted, ends.size(), list);
}

Status none_found(const GraphIndex& index, const PieceSelection& selection) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const onnx::NodeProto& node : index.graph().node()) {
    std::string one = selection.op.empty() ? node.name() : node.op_type();
    if (one.empty() && selection.block.empty() && node.output_size() > 0) one = node.output(0);
    if (!selection.block.empty() && one.rfind('/') != std::string::npos) one.resize(one.rfind('/'));
    if (!one.empty() && seen.insert(one).second) names.push_back(std::move(one));
  }
  const auto said = [&](std::string_view what, const std::string& wanted) {
    const std::string near = nearest_names(wanted, names);
    return NotFound("the model has no {} '{}'; {}", what, wanted,
                    near.empty() ? "its nodes have no names: give a tensor that the node makes"
                                 : "near it: " + near);
  };
  if (!selection.op.empty()) return said("operator", selection.op);
  if (!selection.block.empty()) return said("block", selection.block);
  return said("node", selection.node);
}

}  // namespace

Piece make_piece(const GraphIndex& index, std::vector<int> nodes, std::string label) {
  Piece piece;
  piece.label = std::move(label);
  piece.nodes = std::move(nodes);
  const std::set<int> inside(piece.nodes.begin(), piece.nodes.end());
  std::unordered_set<std::string_view> seen;
  const auto add_input = [&](std::string_view name) {
    if (name.empty() || !is_computed(index, name) || !seen.insert(name).second) return;
    if (inside.contains(index.find(name)->producer)) return;
    piece.inputs.emplace_back(name);
  };
  for (const int n : piece.nodes) {
    const onnx::NodeProto& node = index.graph().node(n);
    for (const std::string& name : node.input()) add_input(name);
    for (const std::string_view name : index.captures(n)) add_input(name);
    for (const std::string& name : node.output()) {
      const Value* value = name.empty() ? nullptr : index.find(name);
      if (value == nullptr) continue;
      const bool leaves = value->is_output ||
                          std::any_of(value->uses.begin(), value->uses.end(),
                                      [&](const Use& use) { return !inside.contains(use.node); });
      if (leaves) piece.outputs.push_back(name);
    }
  }
  return piece;
}

Result<std::vector<Piece>> select_pieces(const GraphIndex& index, const PieceSelection& selection) {
  const int given = !selection.node.empty() + !selection.op.empty() + !selection.block.empty();
  if (given != 1)
    return InvalidArgument(
        "give one of --node NAME, --op TYPE and --block NAME: each says what is looked at ({} are "
        "given)",
        given);
  std::vector<Piece> pieces;
  std::vector<int> of_block;
  int named = -1;
  if (!selection.node.empty()) {
    TENONNX_ASSIGN_OR_RETURN(named, find_node(index, selection.node));
  }
  for (int n = 0; n < index.graph().node_size(); ++n) {
    const onnx::NodeProto& node = index.graph().node(n);
    if (!selection.block.empty()) {
      if (is_below(node.name(), selection.block)) of_block.push_back(n);
      continue;
    }
    const bool chosen = selection.node.empty() ? node.op_type() == selection.op : n == named;
    if (chosen) pieces.push_back(make_piece(index, {n}, node_label(node)));
  }
  if (!of_block.empty())
    pieces.push_back(make_piece(index, std::move(of_block), "block '" + selection.block + "'"));
  if (pieces.empty()) return none_found(index, selection);
  const auto fixed =
      std::erase_if(pieces, [](const Piece& p) { return p.inputs.empty() || p.outputs.empty(); });
  if (pieces.empty())
    return InvalidArgument(
        "what was named ({} nodes) takes constants alone or gives nothing out: there is nothing to "
        "feed it with; name a node that follows from the model's inputs",
        fixed);
  return pieces;
}

std::set<int> nodes_that_make(const GraphIndex& index, const std::vector<std::string>& tensors,
                              const std::function<bool(std::string_view)>& there) {
  std::set<int> nodes;
  std::vector<int> open;
  const auto need = [&](std::string_view name) {
    const Value* value = index.find(name);
    if (value != nullptr && value->producer >= 0 && nodes.insert(value->producer).second)
      open.push_back(value->producer);
  };
  for (const std::string& name : tensors) need(name);
  while (!open.empty()) {
    const int n = open.back();
    open.pop_back();
    for (const std::string& name : index.graph().node(n).input())
      if (!there(name)) need(name);
    for (const std::string_view name : index.captures(n))
      if (!there(name)) need(name);
  }
  return nodes;
}

Piece piece_between(const GraphIndex& index, const std::string& tensor,
                    const std::set<std::string, std::less<>>& shared) {
  const std::set<int> nodes = nodes_that_make(
      index, {tensor}, [&](std::string_view name) { return shared.contains(name); });
  Piece piece = make_piece(index, {nodes.begin(), nodes.end()}, "piece of '" + tensor + "'");
  piece.outputs = {tensor};
  return piece;
}

Result<Model> cut_out(const Model& model, const Piece& piece) {
  auto part = extract(model, piece.inputs, piece.outputs);
  if (!part.ok()) return part.status().at(piece.label);
  return part;
}

}  // namespace tenonnx
