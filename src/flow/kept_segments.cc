// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/kept_segments.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/status.h"
#include "base/wording.h"
#include "cut/kept_nodes.h"
#include "model/extract.h"
#include "model/graph.h"
#include "passes/edit.h"
#include "passes/layout.h"

namespace tenonnx {
namespace {

constexpr std::string_view kCpu = "cpu";

// Gives the same bytes another name or shape.
bool only_renames(const onnx::NodeProto& node) {
  return is_op(node, "Identity") || is_reshape_like(node);
}

bool has_work(const GraphIndex& index, const NodeSegment& segment) {
  return std::any_of(segment.nodes.begin(), segment.nodes.end(),
                     [&](int n) { return !only_renames(index.graph().node(n)); });
}

// The listed nodes as those of the prepared graph, found by what they make.
std::set<int> find_prepared(const GraphIndex& source, const std::set<int>& listed,
                            const GraphIndex& prepared, std::vector<std::string>& gone) {
  std::set<int> out;
  for (const int n : listed) {
    bool found = false;
    for (const std::string& output : source.graph().node(n).output()) {
      const Value* value = output.empty() ? nullptr : prepared.find(output);
      if (value == nullptr || value->producer < 0) continue;
      out.insert(value->producer);
      found = true;
    }
    if (!found) gone.push_back(listed_name(source, n));
  }
  return out;
}

// Divides; what the device would only rename joins the kept nodes, until nothing changes. Moving
// such a segment can only join others, so that this ends.
std::vector<NodeSegment> divide(const GraphIndex& index, std::set<int>& kept,
                                std::size_t& renamed) {
  for (;;) {
    std::vector<NodeSegment> segments = divide_nodes(index, kept);
    std::size_t moved = 0;
    for (const NodeSegment& segment : segments) {
      if (segment.kept || has_work(index, segment)) continue;
      moved += segment.nodes.size();
      kept.insert(segment.nodes.begin(), segment.nodes.end());
    }
    if (moved == 0) return segments;
    renamed += moved;
  }
}

// Outputs of the model that follow from constants alone are nobody's: the last segment has them.
void add_constant_outputs(const GraphIndex& index, std::vector<NodeSegment>& segments) {
  std::set<std::string_view> made;
  for (const NodeSegment& segment : segments)
    made.insert(segment.outputs.begin(), segment.outputs.end());
  for (const onnx::ValueInfoProto& output : index.graph().output()) {
    const Value* value = index.find(output.name());
    if (!made.contains(output.name()) && value != nullptr && !value->is_input)
      segments.back().outputs.push_back(output.name());
  }
}

// The tensor leaves under its own name as well.
void keep_output(Model& part, const onnx::ValueInfoProto& output, const std::string& boundary) {
  onnx::ModelProto& proto = part.mutable_proto();
  UniqueNames names(proto);
  onnx::NodeProto& node = *proto.mutable_graph()->add_node();
  node.set_op_type("Identity");
  node.set_name(names.make("output_" + output.name()));
  node.add_input(boundary);
  node.add_output(output.name());
  *proto.mutable_graph()->add_output() = output;
}

class Packing {
 public:
  Packing(const Model& model, const GraphIndex& index, const std::vector<NodeSegment>& segments,
          std::string device)
      : model_(model),
        index_(index),
        segments_(segments),
        device_(std::move(device)),
        names_(UniqueNames::of_tensors(model.proto())) {}

  Status run(KeptSegments& out) {
    name_boundaries(out);
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const std::string name = fmt::format("segment_{}", s);
      auto part = part_of(segments_[s]);
      if (!part.ok()) return part.status().at("segment '" + name + "'");
      const std::vector<TensorInfo> outputs = part->outputs();
      for (BoundaryTensor& boundary : out.boundaries)
        for (const TensorInfo& info : outputs)
          if (info.name == boundary.name) describe_boundary(info, boundary);
      out.parts.push_back(
          {name, segments_[s].kept ? std::string(kCpu) : device_, std::move(*part)});
    }
    return {};
  }

 private:
  void name_boundaries(KeptSegments& out) {
    std::set<std::string_view> taken;
    for (const NodeSegment& segment : segments_)
      taken.insert(segment.inputs.begin(), segment.inputs.end());
    for (const NodeSegment& segment : segments_) {
      for (const std::string& source : segment.outputs) {
        if (!taken.contains(source)) continue;
        BoundaryTensor boundary;
        boundary.name = names_.make(fmt::format("boundary_{}", out.boundaries.size()));
        boundary.source = source;
        new_names_.emplace(source, boundary.name);
        out.boundaries.push_back(std::move(boundary));
      }
    }
  }

  static void describe_boundary(const TensorInfo& info, BoundaryTensor& boundary) {
    boundary.info = info;
    const std::int64_t count = element_count(info.shape);
    if (count > 0) boundary.bytes = static_cast<std::uint64_t>(count) * size_of(info.dtype);
  }

  Result<Model> part_of(const NodeSegment& segment) const {
    ExtractOptions options;
    for (const auto* side : {&segment.inputs, &segment.outputs})
      for (const std::string& name : *side)
        if (const auto found = new_names_.find(name); found != new_names_.end())
          options.renames.insert(*found);
    TENONNX_ASSIGN_OR_RETURN(Model part, extract(model_, segment.inputs, segment.outputs, options));
    for (const onnx::ValueInfoProto& output : index_.graph().output()) {
      const auto renamed = new_names_.find(output.name());
      if (renamed != new_names_.end() && std::find(segment.outputs.begin(), segment.outputs.end(),
                                                   output.name()) != segment.outputs.end())
        keep_output(part, output, renamed->second);
    }
    return part;
  }

  const Model& model_;
  const GraphIndex& index_;
  const std::vector<NodeSegment>& segments_;
  const std::string device_;
  UniqueNames names_;
  std::map<std::string, std::string> new_names_;
};

std::string spell_price(const DivisionPrice& price) {
  const std::string tensors = counted(price.tensors, "tensor crosses", "tensors cross");
  return fmt::format("{}; {} between them, {}{} in a run", counted(price.segments, "segment"),
                     tensors, spell_bytes(static_cast<std::uint64_t>(price.bytes)),
                     price.bytes_known ? "" : " and those of dynamic shapes");
}

}  // namespace

Result<std::string> device_executor(const Device& target) {
  for (const char* segment : {"model", "encoder"})
    if (const auto found = target.executor_for(segment); found.ok() && *found != kCpu)
      return *found;
  for (const auto& [role, address] : target.roles)
    if (address != kCpu) return address;
  return FailedPrecondition(
      "target '{}' ({}) has no device: all its roles run on the cpu, so that a list of nodes to "
      "keep there (--keep-on-cpu) changes nothing; leave it out, or name a target with a device",
      target.name, target.file.string());
}

Result<KeptSegments> keep_on_cpu(const Model& source, const Model& prepared, const Device& target,
                                 const std::filesystem::path& list) {
  TENONNX_ASSIGN_OR_RETURN(std::string device, device_executor(target));
  const GraphIndex given(source.proto().graph());
  TENONNX_ASSIGN_OR_RETURN(const std::set<int> listed, read_node_list(list, given));
  // A dead node would let tensors cross for nobody; without folding there may be some.
  Model live = prepared.clone();
  remove_dead_nodes(*live.mutable_proto().mutable_graph());
  const GraphIndex index(live.proto().graph());
  KeptSegments out;
  std::vector<std::string> gone;
  std::set<int> kept = find_prepared(given, listed, index, gone);
  for (const int n : kept) out.nodes.push_back(listed_name(index, n));
  std::size_t renamed = 0;
  std::vector<NodeSegment> segments = divide(index, kept, renamed);
  const auto side = [&](bool of_cpu) {
    return std::any_of(segments.begin(), segments.end(),
                       [&](const NodeSegment& one) { return one.kept == of_cpu; });
  };
  if (!side(true))
    return InvalidArgument(
        "{} keeps nothing on the cpu: what it names ('{}'{}) follows from constants alone or is "
        "needed by no output",
        list.string(), listed_name(given, *listed.begin()),
        listed.size() > 1 ? fmt::format(" and {} more", listed.size() - 1) : "");
  if (!side(false))
    return InvalidArgument(
        "{} leaves nothing for '{}' to compute{}: list fewer nodes, or deploy to --target cpu",
        list.string(), device,
        renamed == 0 ? ": every node that computes something is listed"
                     : fmt::format(" but names and shapes ({})", counted(renamed, "node")));
  if (!gone.empty())
    out.notes.push_back(fmt::format(
        "--keep-on-cpu: '{}'{} became constant when constants were folded, or no output needs it: "
        "nobody computes it",
        gone[0], gone.size() > 1 ? fmt::format(" and {} more, each", gone.size() - 1) : ""));
  if (renamed > 0)
    out.notes.push_back(fmt::format(
        "--keep-on-cpu: {} beside the kept ones would give the device only names and shapes to "
        "change and stay on the cpu, too",
        counted(renamed, "node")));
  out.price = spell_price(price_of(live, index, segments));
  out.notes.push_back(fmt::format("{} kept on the cpu, all others on {}: {}",
                                  counted(out.nodes.size(), "node"), device, out.price));
  add_constant_outputs(index, segments);
  TENONNX_RETURN_IF_ERROR(Packing(live, index, segments, std::move(device)).run(out));
  return out;
}

}  // namespace tenonnx
