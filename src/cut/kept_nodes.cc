// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "cut/kept_nodes.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>

#include "base/files.h"
#include "base/nearest.h"
#include "base/status.h"
#include "model/extract.h"
#include "model/shapes.h"

namespace tenonnx {
namespace {

// What a node reads: inputs and captures of its bodies.
std::vector<std::string_view> reads(const GraphIndex& index, int node) {
  std::vector<std::string_view> out;
  for (const std::string& name : index.graph().node(node).input())
    if (!name.empty()) out.push_back(name);
  for (const std::string_view name : index.captures(node)) out.push_back(name);
  return out;
}

// Nodes that follow from an input of the graph, or that read nothing and are no constant.
std::vector<bool> computed_nodes(const GraphIndex& index) {
  std::vector<bool> computed(static_cast<std::size_t>(index.graph().node_size()));
  for (int n = 0; n < index.graph().node_size(); ++n) {
    for (const std::string_view name : reads(index, n)) {
      const Value* value = index.find(name);
      if (value == nullptr || value->is_initializer()) continue;
      if (value->is_input || (value->producer >= 0 && computed[value->producer]))
        computed[n] = true;
    }
  }
  return computed;
}

class Division {
 public:
  Division(const GraphIndex& index, const std::set<int>& kept)
      : index_(index), kept_(kept), computed_(computed_nodes(index)) {
    const auto count = computed_.size();
    readers_.resize(count);
    waits_.resize(count);
    for (std::size_t n = 0; n < count; ++n) {
      if (!computed_[n]) continue;
      std::set<int> before;
      for (const std::string_view name : reads(index, static_cast<int>(n)))
        if (const Value* value = index.find(name); value != nullptr && value->producer >= 0)
          if (computed_[value->producer]) before.insert(value->producer);
      waits_[n] = static_cast<int>(before.size());
      for (const int b : before) readers_[b].push_back(static_cast<int>(n));
    }
  }

  // Whoever begins: the side with `first`.
  std::vector<NodeSegment> schedule(bool first) const {
    std::vector<int> waits = waits_;
    std::array<std::vector<int>, 2> ready;
    for (std::size_t n = 0; n < computed_.size(); ++n)
      if (computed_[n] && waits[n] == 0)
        ready[side(static_cast<int>(n))].push_back(static_cast<int>(n));
    std::vector<NodeSegment> out;
    bool now = first;
    while (!ready[0].empty() || !ready[1].empty()) {
      if (ready[now].empty()) now = !now;
      NodeSegment segment;
      segment.kept = now;
      while (!ready[now].empty()) {
        const int n = ready[now].back();
        ready[now].pop_back();
        segment.nodes.push_back(n);
        for (const int r : readers_[n])
          if (--waits[r] == 0) ready[side(r)].push_back(r);
      }
      std::sort(segment.nodes.begin(), segment.nodes.end());
      out.push_back(std::move(segment));
      now = !now;
    }
    return out;
  }

  void add_edges(std::vector<NodeSegment>& segments) const {
    std::map<int, std::size_t> segment_of;
    for (std::size_t s = 0; s < segments.size(); ++s)
      for (const int n : segments[s].nodes) segment_of[n] = s;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      NodeSegment& segment = segments[s];
      std::unordered_set<std::string_view> seen;
      // A node that follows from constants alone comes along with whoever reads it, so what it
      // reads is no edge; nor is it one.
      for (const int n : segment.nodes) {
        for (const std::string_view name : reads(index_, n)) {
          const Value* value = index_.find(name);
          if (value == nullptr || value->is_initializer() || !seen.insert(name).second) continue;
          const bool from_before = value->producer >= 0 && computed_[value->producer] &&
                                   segment_of.at(value->producer) != s;
          if (value->is_input || from_before) segment.inputs.emplace_back(name);
        }
        for (const std::string& name : index_.graph().node(n).output()) {
          const Value* value = name.empty() ? nullptr : index_.find(name);
          if (value == nullptr) continue;
          const bool leaves =
              value->is_output ||
              std::any_of(value->uses.begin(), value->uses.end(), [&](const Use& u) {
                const auto at = segment_of.find(u.node);
                return at != segment_of.end() && at->second != s;
              });
          if (leaves) segment.outputs.push_back(name);
        }
      }
    }
    // Nothing of it is needed by anybody.
    std::erase_if(segments, [](const NodeSegment& segment) { return segment.outputs.empty(); });
  }

 private:
  bool side(int node) const { return kept_.contains(node); }

  const GraphIndex& index_;
  const std::set<int>& kept_;
  const std::vector<bool> computed_;
  std::vector<std::vector<int>> readers_;
  std::vector<int> waits_;
};

}  // namespace

std::vector<NodeSegment> divide_nodes(const GraphIndex& index, const std::set<int>& kept) {
  const Division division(index, kept);
  std::vector<NodeSegment> out = division.schedule(false);
  if (auto other = division.schedule(true); other.size() < out.size()) out = std::move(other);
  division.add_edges(out);
  return out;
}

Result<Model> cut_out(const Model& model, const NodeSegment& segment) {
  return extract(model, segment.inputs, segment.outputs);
}

DivisionPrice price_of(const Model& model, const GraphIndex& index,
                       const std::vector<NodeSegment>& segments) {
  DivisionPrice price;
  price.segments = segments.size();
  std::set<std::string> crossing;
  for (const NodeSegment& segment : segments)
    for (const std::string& name : segment.inputs)
      if (!index.find(name)->is_input) crossing.insert(name);
  price.tensors = crossing.size();
  const TensorInfos infos =
      infer_shapes(model, std::vector<std::string>(crossing.begin(), crossing.end()));
  for (const std::string& name : crossing) {
    const auto info = infos.find(name);
    const bool ranked = info != infos.end() && info->second.has_rank;
    const std::int64_t elements = ranked ? element_count(info->second.shape) : -1;
    if (elements < 0)
      price.bytes_known = false;
    else
      price.bytes += elements * static_cast<std::int64_t>(size_of(info->second.dtype));
  }
  return price;
}

std::string listed_name(const GraphIndex& index, int node) {
  const onnx::NodeProto& own = index.graph().node(node);
  const auto same = [&](const onnx::NodeProto& other) { return other.name() == own.name(); };
  const auto& nodes = index.graph().node();
  // A name that is also a tensor's would be looked up as either.
  if (!own.name().empty() && std::count_if(nodes.begin(), nodes.end(), same) == 1 &&
      index.producer(own.name()) == nullptr)
    return own.name();
  for (const std::string& output : own.output())
    if (!output.empty()) return output;
  return own.name();
}

std::string node_list_text(const GraphIndex& index, const std::set<int>& nodes,
                           const std::vector<std::string>& comments) {
  std::string text;
  for (const std::string& comment : comments) text += fmt::format("# {}\n", comment);
  for (const int n : nodes) text += listed_name(index, n) + "\n";
  return text;
}

Result<std::set<int>> read_node_list(const std::filesystem::path& file, const GraphIndex& index) {
  TENONNX_ASSIGN_OR_RETURN(const std::string text, read_file(file));
  std::map<std::string_view, int> by_name;
  std::vector<std::string> names;
  for (int n = 0; n < index.graph().node_size(); ++n) {
    const onnx::NodeProto& node = index.graph().node(n);
    for (const std::string& output : node.output()) {
      by_name.emplace(output, n);
      names.push_back(output);
    }
  }
  std::set<std::string_view> twice;
  for (int n = 0; n < index.graph().node_size(); ++n) {
    const std::string& name = index.graph().node(n).name();
    if (name.empty()) continue;
    const auto [at, added] = by_name.emplace(name, n);
    if (!added && at->second != n) twice.insert(name);
    names.push_back(name);
  }
  std::set<int> out;
  std::size_t line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view name(text.data() + begin, end - begin);
    begin = end + 1;
    ++line;
    if (line == 1 && name.starts_with("\xEF\xBB\xBF")) name.remove_prefix(3);  // of some editors
    while (!name.empty() && (name.front() == ' ' || name.front() == '\t')) name.remove_prefix(1);
    while (!name.empty() && (name.back() == ' ' || name.back() == '\r' || name.back() == '\t'))
      name.remove_suffix(1);
    if (name.empty() || name.front() == '#') continue;
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      const std::string near = nearest_names(name, names);
      return NotFound("{}, line {}: the model has no node and no tensor '{}'{}", file.string(),
                      line, name, near.empty() ? "" : "; near it: " + near);
    }
    if (twice.contains(name))
      return InvalidArgument(
          "{}, line {}: '{}' names several nodes or tensors; name a tensor that only one node "
          "makes",
          file.string(), line, name);
    out.insert(found->second);
  }
  if (out.empty())
    return InvalidArgument(
        "{} names no node: a name a line, of a node or of a tensor that it makes", file.string());
  return out;
}

}  // namespace tenonnx
