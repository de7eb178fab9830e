// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <onnx/onnx_pb.h>

#include <set>

#include "model/graph.h"

namespace tenonnx {
namespace {

// With `apply` false it only looks. Returns whether there was anything to drop.
class MetadataStripper {
 public:
  explicit MetadataStripper(bool apply) : apply_(apply) {}

  bool run(onnx::ModelProto& model) {
    drop_both(model);
    visit(*model.mutable_graph());
    for (auto& function : *model.mutable_functions()) {
      drop_both(function);
      for (auto& info : *function.mutable_value_info()) drop_both(info);
      for (auto& attribute : *function.mutable_attribute_proto()) drop_doc(attribute);
      visit_nodes(*function.mutable_node());
    }
    return found_;
  }

 private:
  template <typename Message>
  void drop_doc(Message& message) {
    if (message.doc_string().empty()) return;
    found_ = true;
    if (apply_) message.clear_doc_string();
  }
  template <typename Message>
  void drop_both(Message& message) {
    drop_doc(message);
    if (message.metadata_props_size() == 0) return;
    found_ = true;
    if (apply_) message.clear_metadata_props();
  }
  void visit(onnx::GraphProto& graph) {
    drop_both(graph);
    for (auto& info : *graph.mutable_input()) drop_both(info);
    for (auto& info : *graph.mutable_output()) drop_both(info);
    for (auto& info : *graph.mutable_value_info()) drop_both(info);
    for (auto& tensor : *graph.mutable_initializer()) drop_both(tensor);
    visit_nodes(*graph.mutable_node());
  }
  template <typename Nodes>
  void visit_nodes(Nodes& nodes) {
    for (auto& node : nodes) {
      drop_both(node);
      for (auto& attribute : *node.mutable_attribute()) {
        drop_doc(attribute);
        if (attribute.has_t()) drop_both(*attribute.mutable_t());
        if (attribute.has_g()) visit(*attribute.mutable_g());
        for (auto& g : *attribute.mutable_graphs()) visit(g);
      }
    }
  }
  bool apply_;
  bool found_ = false;
};

// Removes the items for which `keep` is false, in place: large tensors are swapped, not copied.
template <typename Items, typename Keep>
int keep_only(Items* items, const Keep& keep) {
  int kept = 0;
  for (int i = 0; i < items->size(); ++i)
    if (keep(items->Get(i))) items->SwapElements(kept++, i);
  const int removed = items->size() - kept;
  items->DeleteSubrange(kept, removed);
  return removed;
}

// What calls and imports need: operators by (domain, op_type, overload), and domains.
struct Needed {
  std::set<std::tuple<std::string, std::string, std::string>> operators;
  std::set<std::string, std::less<>> domains;

  template <typename Nodes>
  void add(const Nodes& nodes) {
    for (const auto& node : nodes) {
      const std::string domain(normalized_domain(node.domain()));
      domains.insert(domain);
      operators.emplace(domain, node.op_type(), node.overload());
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) add(attribute.g().node());
        for (const auto& g : attribute.graphs()) add(g.node());
      }
    }
  }
};

void remove_unused_functions(onnx::ModelProto& model) {
  Needed needed;
  needed.add(model.graph().node());
  const auto is_needed = [&](const onnx::FunctionProto& f) {
    return needed.operators.contains(
        {std::string(normalized_domain(f.domain())), f.name(), f.overload()});
  };
  // Functions call functions; each round takes in one more level.
  std::set<const onnx::FunctionProto*> taken;
  for (std::size_t before = SIZE_MAX; before != taken.size();) {
    before = taken.size();
    for (const auto& f : model.functions())
      if (is_needed(f) && taken.insert(&f).second) needed.add(f.node());
  }
  keep_only(model.mutable_functions(), is_needed);
  needed.domains.insert("");
  keep_only(model.mutable_opset_import(), [&](const onnx::OperatorSetIdProto& import) {
    return needed.domains.contains(normalized_domain(import.domain()));
  });
}

}  // namespace

bool strip_metadata(onnx::ModelProto& model) { return MetadataStripper(true).run(model); }

bool has_metadata(const onnx::ModelProto& model) {
  // A walk that changes nothing.
  if (!model.has_graph()) return !model.doc_string().empty() || model.metadata_props_size() > 0;
  return MetadataStripper(false).run(const_cast<onnx::ModelProto&>(model));
}

int remove_unused(onnx::ModelProto& model) {
  auto& graph = *model.mutable_graph();
  std::unordered_set<std::string_view> used;
  std::unordered_set<std::string_view> made;
  for (const auto& node : graph.node()) {
    used.insert(node.input().begin(), node.input().end());
    made.insert(node.output().begin(), node.output().end());
    for (std::string_view name : captured_names(node)) used.insert(name);
  }
  for (const auto& output : graph.output()) used.insert(output.name());
  const auto is_used = [&](const auto& item) { return used.contains(item.name()); };

  // Before IR 4 an initializer is also listed as an input: both go together.
  std::unordered_set<std::string> stored;
  for (const auto& t : graph.initializer())
    if (!is_used(t)) stored.insert(t.name());
  keep_only(graph.mutable_input(),
            [&](const auto& input) { return !stored.contains(input.name()); });
  int removed = keep_only(graph.mutable_initializer(), is_used);
  removed += keep_only(graph.mutable_sparse_initializer(),
                       [&](const auto& s) { return used.contains(s.values().name()); });
  keep_only(graph.mutable_value_info(), [&](const auto& info) {
    return used.contains(info.name()) || made.contains(info.name());
  });
  keep_only(graph.mutable_quantization_annotation(), [&](const auto& a) {
    return used.contains(a.tensor_name()) || made.contains(a.tensor_name());
  });
  remove_unused_functions(model);
  return removed;
}

}  // namespace tenonnx
