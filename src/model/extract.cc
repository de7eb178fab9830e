// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/extract.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/status.h"
#include "model/graph.h"
#include "model/shapes.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

// "'a', 'b'" with at most `most` names.
template <typename Names>
std::string quoted_list(const Names& names, std::size_t most = 10) {
  std::string out;
  std::size_t i = 0;
  for (const auto& name : names) {
    if (i == most) {
      out += fmt::format(" and {} more", names.size() - most);
      break;
    }
    out += fmt::format("{}'{}'", i++ == 0 ? "" : ", ", name);
  }
  return out;
}

class Extraction {
 public:
  Extraction(const Model& model, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs, const ExtractOptions& options)
      : model_(model),
        graph_(model.proto().graph()),
        index_(graph_),
        inputs_(inputs),
        outputs_(outputs),
        options_(options) {}

  Result<Model> run() {
    TENONNX_RETURN_IF_ERROR(check_names());
    TENONNX_RETURN_IF_ERROR(collect());
    proto_ = std::make_unique<onnx::ModelProto>();
    copy_header();
    copy_nodes();
    copy_tensors();
    TENONNX_RETURN_IF_ERROR(add_boundary());
    TENONNX_RETURN_IF_ERROR(rename());
    pass_through();
    remove_unused(*proto_);
    if (!options_.keep_metadata) strip_metadata(*proto_);
    return model_.with_proto(std::move(proto_));
  }

 private:
  Status check_names() {
    if (outputs_.empty()) return InvalidArgument("extraction without an output");
    for (const auto* list : {&inputs_, &outputs_}) {
      std::unordered_set<std::string_view> seen;
      const char* side = list == &inputs_ ? "input" : "output";
      for (const std::string& name : *list) {
        if (index_.find(name) == nullptr)
          return NotFound("the {} '{}' is no tensor of the model", side, name);
        if (!seen.insert(name).second)
          return InvalidArgument("the {} '{}' is named twice", side, name);
      }
    }
    is_input_.insert(inputs_.begin(), inputs_.end());
    return {};
  }

  // Marks what the outputs need; stops at the inputs.
  Status collect() {
    struct Wanted {
      std::string_view name;
      int by;  // the node that needs it, -1 for an output
    };
    needed_.assign(static_cast<std::size_t>(graph_.node_size()), false);
    // What is missing, in the order of the model's inputs, with the nodes that need it.
    std::map<const Value*, std::vector<int>> missing;
    std::unordered_set<std::string_view> seen;
    std::vector<Wanted> stack;
    for (const std::string& name : outputs_) stack.push_back({name, -1});
    while (!stack.empty()) {
      const Wanted wanted = stack.back();
      stack.pop_back();
      if (wanted.name.empty() || is_input_.contains(wanted.name)) continue;
      const Value* value = index_.find(wanted.name);
      if (value == nullptr)
        return DataLoss("{} uses '{}', which nothing makes", label(wanted.by), wanted.name);
      if (value->is_initializer()) {
        stored_.insert(wanted.name);
        continue;
      }
      if (value->producer < 0) {
        missing[value].push_back(wanted.by);
        continue;
      }
      if (!seen.insert(wanted.name).second) continue;
      const auto i = static_cast<std::size_t>(value->producer);
      if (needed_[i]) continue;
      needed_[i] = true;
      for (const auto& input : graph_.node(value->producer).input())
        stack.push_back({input, value->producer});
      for (std::string_view name : index_.captures(value->producer))
        stack.push_back({name, value->producer});
    }
    if (missing.empty()) return {};
    std::string list;
    for (auto& [value, nodes] : missing) {
      std::sort(nodes.begin(), nodes.end());
      std::vector<std::string> labels;
      for (int node : nodes) labels.push_back(label(node));
      std::string by;
      for (std::size_t i = 0; i < labels.size() && i < 3; ++i) by += (i ? ", " : "") + labels[i];
      if (labels.size() > 3) by += fmt::format(" and {} more", labels.size() - 3);
      list += fmt::format("{}'{}' (needed by {})", list.empty() ? "" : "; ", value->name, by);
    }
    return InvalidArgument("the part from [{}] to [{}] needs {} more input{}: {}",
                           quoted_list(inputs_), quoted_list(outputs_), missing.size(),
                           missing.size() == 1 ? "" : "s", list);
  }

  std::string label(int node) const {
    return node < 0 ? "the outputs themselves" : node_label(graph_.node(node));
  }

  void copy_header() {
    const onnx::ModelProto& from = model_.proto();
    *proto_->mutable_opset_import() = from.opset_import();
    // Before IR 4 every initializer is an input as well, which an input of the part must not be;
    // before IR 3 there is one opset, 1.
    proto_->set_ir_version(std::max<std::int64_t>(from.ir_version(), 4));
    if (from.opset_import_size() == 0) proto_->add_opset_import()->set_version(1);
    proto_->set_producer_name(from.producer_name());
    proto_->set_producer_version(from.producer_version());
    *proto_->mutable_functions() = from.functions();
    if (options_.keep_metadata) {
      proto_->set_doc_string(from.doc_string());
      *proto_->mutable_metadata_props() = from.metadata_props();
    }
    proto_->mutable_graph()->set_name(graph_.name().empty() ? "part" : graph_.name());
  }

  void copy_nodes() {
    auto& to = *proto_->mutable_graph();
    std::optional<UniqueNames> names;
    for (int i = 0; i < graph_.node_size(); ++i) {
      if (!needed_[static_cast<std::size_t>(i)]) continue;
      onnx::NodeProto& node = *to.add_node();
      node = graph_.node(i);
      // One of several outputs is fed from outside although the node runs: its own one steps aside.
      for (auto& output : *node.mutable_output()) {
        if (output.empty() || !is_input_.contains(output)) continue;
        if (!names) names.emplace(model_.proto());
        output = names->make(fmt::format("{}_unused", output));
      }
    }
  }

  void copy_tensors() {
    auto& to = *proto_->mutable_graph();
    for (const auto& t : graph_.initializer())
      if (stored_.contains(t.name())) *to.add_initializer() = t;
    for (const auto& s : graph_.sparse_initializer())
      if (stored_.contains(s.values().name())) *to.add_sparse_initializer() = s;
    // remove_unused() drops what concerns no tensor of the part; boundary tensors carry their type
    // themselves.
    std::unordered_set<std::string_view> boundary(inputs_.begin(), inputs_.end());
    boundary.insert(outputs_.begin(), outputs_.end());
    for (const auto& info : graph_.value_info())
      if (!boundary.contains(info.name())) *to.add_value_info() = info;
    // A graph output that is inside now.
    for (const auto& info : graph_.output())
      if (!boundary.contains(info.name())) *to.add_value_info() = info;
    *to.mutable_quantization_annotation() = graph_.quantization_annotation();
  }

  static bool has_type(const onnx::ValueInfoProto* info) {
    if (info == nullptr || !info->has_type()) return false;
    const auto& type = info->type();
    return type.has_tensor_type() ? type.tensor_type().elem_type() != 0
                                  : type.value_case() != onnx::TypeProto::VALUE_NOT_SET;
  }

  static bool has_shape(const onnx::ValueInfoProto* info) {
    return has_type(info) &&
           (!info->type().has_tensor_type() || info->type().tensor_type().has_shape());
  }

  Result<onnx::ValueInfoProto> boundary_info(const std::string& name) {
    for (const TensorInfo& given : options_.types)
      if (given.name == name) return to_value_info(given);
    const Value& value = *index_.find(name);
    if (has_type(value.info)) {
      onnx::ValueInfoProto info = *value.info;
      // A recorded type without a shape is completed where inference can.
      if (info.type().has_tensor_type() && !info.type().tensor_type().has_shape())
        if (const TensorInfo* more = inferred(name); more != nullptr && more->has_rank)
          return to_value_info(*more);
      return info;
    }
    if (value.initializer != nullptr) {
      onnx::ValueInfoProto info;
      info.set_name(name);
      auto* type = info.mutable_type()->mutable_tensor_type();
      type->set_elem_type(value.initializer->data_type());
      auto* shape = type->mutable_shape();
      for (std::int64_t d : value.initializer->dims()) shape->add_dim()->set_dim_value(d);
      return info;
    }
    if (const TensorInfo* info = inferred(name)) return to_value_info(*info);
    const std::string by =
        value.producer < 0 ? "an input" : node_label(graph_.node(value.producer));
    return FailedPrecondition(
        "the type of the boundary tensor '{}' is unknown: {} does not say "
        "it, and no shape is recorded; give its dtype and shape, or cut at "
        "another tensor",
        name, by);
  }

  const TensorInfo* inferred(const std::string& name) {
    if (!infos_) {
      std::vector<std::string> boundary = inputs_;
      boundary.insert(boundary.end(), outputs_.begin(), outputs_.end());
      // Only what is not recorded: the graph outputs are, and lie behind everything.
      std::erase_if(boundary,
                    [&](const std::string& n) { return has_shape(index_.find(n)->info); });
      infos_ = infer_shapes(model_, boundary);
    }
    const auto it = infos_->find(name);
    return it == infos_->end() ? nullptr : &it->second;
  }

  Status add_boundary() {
    auto& to = *proto_->mutable_graph();
    for (const std::string& name : inputs_) {
      TENONNX_ASSIGN_OR_RETURN(*to.add_input(), boundary_info(name));
    }
    for (const std::string& name : outputs_) {
      TENONNX_ASSIGN_OR_RETURN(*to.add_output(), boundary_info(name));
    }
    return {};
  }

  Status rename() {
    if (options_.renames.empty()) return {};
    std::unordered_set<std::string_view> boundary(inputs_.begin(), inputs_.end());
    boundary.insert(outputs_.begin(), outputs_.end());
    remove_unused(*proto_);  // names of what is gone must not stand in the way
    const UniqueNames present = UniqueNames::of_tensors(*proto_);
    std::set<std::string> targets;
    for (const auto& [from, to] : options_.renames) {
      if (!boundary.contains(from))
        return InvalidArgument("cannot rename '{}': it is neither input nor output of the part",
                               from);
      if (to.empty()) return InvalidArgument("cannot rename '{}' to nothing", from);
      if (present.taken(to) && !options_.renames.contains(to))
        return InvalidArgument("cannot rename '{}' to '{}': that name is taken", from, to);
      if (!targets.insert(to).second)
        return InvalidArgument("two boundary tensors would be named '{}'", to);
    }
    // Over names that are free, so that two tensors may also swap their names.
    UniqueNames names(*proto_);
    std::map<std::string, std::string> between;
    for (const auto& [from, to] : options_.renames) {
      between[from] = names.make(from + "_renamed");
      rename_tensor(*proto_->mutable_graph(), from, between[from]);
    }
    for (const auto& [from, to] : options_.renames)
      rename_tensor(*proto_->mutable_graph(), between[from], to);
    return {};
  }

  // A tensor that is both input and output gets an Identity between the two. Where the input has
  // been renamed the output keeps the old name.
  void pass_through() {
    auto& to = *proto_->mutable_graph();
    std::map<std::string, std::string> old_names;
    for (const auto& [from, name] : options_.renames)
      if (from != name) old_names[name] = from;
    for (auto& output : *to.mutable_output()) {
      const bool passes = std::any_of(to.input().begin(), to.input().end(), [&](const auto& input) {
        return input.name() == output.name();
      });
      if (!passes) continue;
      UniqueNames names(*proto_);
      const auto old = old_names.find(output.name());
      const std::string made =
          names.make(old == old_names.end() ? output.name() + "_output" : old->second);
      onnx::NodeProto& node = *to.add_node();
      node.set_op_type("Identity");
      node.set_name(names.make("pass_through_" + output.name()));
      node.add_input(output.name());
      node.add_output(made);
      output.set_name(made);
    }
  }

  const Model& model_;
  const onnx::GraphProto& graph_;
  const GraphIndex index_;
  const std::vector<std::string>& inputs_;
  const std::vector<std::string>& outputs_;
  const ExtractOptions& options_;
  std::unordered_set<std::string_view> is_input_;
  std::unordered_set<std::string_view> stored_;
  std::vector<bool> needed_;
  std::optional<TensorInfos> infos_;
  std::unique_ptr<onnx::ModelProto> proto_;
};

}  // namespace

Result<Model> extract(const Model& model, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, const ExtractOptions& options) {
  return Extraction(model, inputs, outputs, options).run();
}

}  // namespace tenonnx
