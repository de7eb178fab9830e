// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// narrow_index_types: computes indices in int32 where they provably fit.
//
// before: values, i = TopK(scores, 300)      int64; j = Div(i, 80); y = Gather(x, j)
// after:  values, i = TopK(scores, 300); i32 = Cast<int32>(i); j = Div(i32, 80); y = Gather(x, j)
//
// The bounds come from constants, static dimensions (an index of TopK or ArgMax lies below its
// dimension) and the operators between (value_ranges.h). A node's int64 operands and results that
// must be of one type are narrowed together, where all of them lie in int32 and the operator's
// schema takes int32. Where one side stays int64 a Cast stands between; an input or output of the
// graph keeps its type. Constant bounds of Slice beyond int32 (2^63 - 1 for "to the end") become
// the ends of int32, where the dimensions are known to be smaller. A float32 that a Cast makes a
// pixel number is clipped to +-2^30 first, where that leaves no trace (saturating_casts.h).
//
// Conditions: the bounds are proved. Arithmetic cannot overflow then, as its result fits too.
// Refuses, with the node: operands without proved bounds, operators that take int64 alone (TopK's
// own index, GatherND, ScatterND, a computed shape of Reshape or Expand), and chains of copies that
// nothing takes as int32.
// Class bitwise: int64 results that remain are the same numbers.
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/status.h"
#include "model/graph.h"
#include "model/guarded_schemas.h"
#include "model/tensor_proto.h"
#include "passes/edit.h"
#include "passes/inference.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/saturating_casts.h"
#include "passes/value_ranges.h"

namespace tenonnx {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();

// What an operator does with the operands of one type parameter.
enum class Use {
  kNone,
  kCopies,    // moves elements: worth narrowing for its users' sake alone
  kComputes,  // arithmetic, comparison
  kConverts,  // the operand of a Cast: goes with what else takes it
  kIndexes,   // reads them as indices
};

Use use_of(std::string_view op, std::string_view parameter) {
  static const std::set<std::string_view> kCopies = {
      "Identity", "Reshape", "Unsqueeze", "Squeeze",   "Flatten",        "Transpose",
      "Slice",    "Expand",  "Tile",      "Concat",    "Gather",         "GatherElements",
      "GatherND", "Split",   "Where",     "ScatterND", "ScatterElements"};
  static const std::set<std::string_view> kComputes = {
      "Add",       "Sub",      "Mul",     "Div",         "Mod",
      "Max",       "Min",      "Clip",    "Neg",         "Abs",
      "Equal",     "Less",     "Greater", "LessOrEqual", "GreaterOrEqual",
      "ReduceMax", "ReduceMin"};
  if (parameter == "Tind")
    return op == "Gather" || op == "GatherElements" || op == "ScatterElements" || op == "Slice"
               ? Use::kIndexes
               : Use::kNone;
  if (op == "Cast") return parameter == "T1" ? Use::kConverts : Use::kComputes;
  if (op == "Where" && parameter == "B") return Use::kNone;
  if (kCopies.contains(op)) return Use::kCopies;
  return kComputes.contains(op) ? Use::kComputes : Use::kNone;
}

// The int64 operands and results of a node that share a type parameter.
struct Group {
  int node = -1;
  std::string parameter;
  std::vector<int> inputs, outputs;
  Use use = Use::kNone;
  bool computed = false;  // not constant operands alone
  bool narrow = false;
  std::string int64_alone;  // why it can be nothing else
  std::string why_not;
};

class Narrower {
 public:
  explicit Narrower(Model& model)
      : model_(model),
        names_(model.proto()),
        inference_(infer(model)),
        saturating_(saturating_casts(model, GraphIndex(model.proto().graph()), inference_)) {
    const onnx::GraphProto& graph = model.proto().graph();
    std::unordered_set<std::string> given;
    for (const auto& input : graph.input()) given.insert(input.name());
    for (const auto& t : graph.initializer())
      if (!given.contains(t.name())) constants_.insert(t.name());
    for (const auto& output : graph.output()) fixed_.insert(output.name());
    for (const auto& node : graph.node()) {
      if (is_op(node, "Constant")) constants_.insert(node.output(0));
      for (const std::string_view name : captured_names(node)) fixed_.emplace(name);
    }
  }

  PassOutcome run() {
    const onnx::GraphProto& graph = model_.proto().graph();
    for (int i = 0; i < graph.node_size(); ++i) find_groups(i, graph.node(i));
    do {
      std::unordered_map<std::string, ValueRange> clipped;
      for (const SaturatingCast& cast : saturating_)
        clipped[node(cast.node).output(0)] = {-kSaturation, kSaturation};
      ranges_ = value_ranges(model_, inference_, clipped);
      for (Group& group : groups_) decide(group);
      drop_idle();
    } while (drop_visible_casts());
    if (std::any_of(groups_.begin(), groups_.end(), [](const Group& g) { return g.narrow; }))
      rebuild();
    report();
    return std::move(outcome_);
  }

 private:
  const onnx::NodeProto& node(int index) const { return model_.proto().graph().node(index); }

  bool is_int64(const std::string& name) const {
    const auto& types = inference_.graphs.front();
    const auto it = types.find(name);
    return it != types.end() && it->second.onnx_type == onnx::TensorProto::INT64;
  }

  const ValueRange* narrow_range(const std::string& name) const {
    const auto it = ranges_.find(name);
    return it != ranges_.end() && it->second.low >= kMin && it->second.high <= kMax ? &it->second
                                                                                    : nullptr;
  }

  void find_groups(int index, const onnx::NodeProto& n) {
    if (!normalized_domain(n.domain()).empty() || is_op(n, "Constant")) return;
    const onnx::OpSchema* schema =
        guarded_schemas().GetSchema(n.op_type(), static_cast<int>(model_.opset()), "");
    if (schema == nullptr) return;
    std::map<std::string, Group> groups;
    const auto collect = [&](const auto& names, const auto& formals,
                             std::vector<int> Group::*list) {
      for (int i = 0; i < names.size() && !formals.empty(); ++i) {
        const auto& formal = formals[std::min(static_cast<std::size_t>(i), formals.size() - 1)];
        if (names[i].empty() || !is_int64(names[i])) continue;
        Group& group = groups[formal.GetTypeStr()];
        (group.*list).push_back(i);
        const auto& types = formal.GetTypes();
        const bool takes = std::any_of(types.begin(), types.end(),
                                       [](const std::string* t) { return *t == "tensor(int32)"; });
        if (!takes) group.int64_alone = fmt::format("{} takes int64 alone there", n.op_type());
      }
    };
    collect(n.input(), schema->inputs(), &Group::inputs);
    collect(n.output(), schema->outputs(), &Group::outputs);
    for (auto& [parameter, group] : groups) {
      group.node = index;
      group.parameter = parameter;
      group.use = use_of(n.op_type(), parameter);
      group.computed = !group.outputs.empty();
      for (const int i : group.inputs) group.computed |= !constants_.contains(n.input(i));
      labels_.try_emplace(index, node_label(n));
      groups_.push_back(std::move(group));
    }
  }

  void decide(Group& group) const {
    const onnx::NodeProto& n = node(group.node);
    group.narrow = false;
    group.why_not = group.int64_alone;
    if (!group.why_not.empty()) return;
    if (group.use == Use::kNone) {
      group.why_not = fmt::format("{} is not among the operators that are narrowed", n.op_type());
      return;
    }
    for (const int i : group.inputs) {
      const std::string& name = n.input(i);
      if (narrow_range(name) != nullptr || can_clamp(group, name)) continue;
      group.why_not = fmt::format("'{}' has no proved bounds within int32", name);
      return;
    }
    for (const int i : group.outputs) {
      if (narrow_range(n.output(i)) != nullptr) continue;
      group.why_not = fmt::format("'{}' has no proved bounds within int32", n.output(i));
      return;
    }
    group.narrow = true;
  }

  // "To the end" of a Slice: as int32 it must still lie beyond every dimension.
  bool can_clamp(const Group& group, const std::string& name) const {
    const onnx::NodeProto& n = node(group.node);
    if (!is_op(n, "Slice") || group.use != Use::kIndexes || !constants_.contains(name))
      return false;
    const auto& types = inference_.graphs.front();
    const auto it = types.find(n.input(0));
    return it != types.end() && it->second.is_static() &&
           std::all_of(it->second.shape.begin(), it->second.shape.end(),
                       [](std::int64_t dim) { return dim < kMax; });
  }

  // Copies whose results nobody takes as int32 would only gain a Cast on either side; so would a
  // conversion of what is int64 otherwise.
  void drop_idle() {
    std::unordered_map<std::string, std::vector<std::size_t>> takers;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const int i : groups_[g].inputs) takers[node(groups_[g].node).input(i)].push_back(g);
    for (bool changed = true; changed;) {
      changed = false;
      for (Group& group : groups_) {
        if (!group.narrow || group.use != Use::kCopies) continue;
        bool taken = false;
        for (const int i : group.outputs)
          for (const std::size_t g : takers[node(group.node).output(i)])
            taken |= groups_[g].narrow && groups_[g].use != Use::kConverts;
        if (taken) continue;
        group.narrow = false;
        group.why_not = "nothing takes its copy as int32";
        changed = true;
      }
    }
    std::unordered_set<std::string> twins;
    for (const Group& group : groups_) {
      if (!group.narrow || group.use == Use::kConverts) continue;
      for (const int i : group.inputs) twins.insert(node(group.node).input(i));
      for (const int i : group.outputs) twins.insert(node(group.node).output(i));
    }
    for (Group& group : groups_) {
      if (!group.narrow || group.use != Use::kConverts) continue;
      group.narrow = twins.contains(node(group.node).input(group.inputs.front()));
      if (!group.narrow) group.why_not = "it converts what is int64 otherwise";
    }
  }

  // A float may be clipped before its Cast only where all that the clip changes is narrowed, and so
  // has other names. True where a Cast is no longer among them.
  bool drop_visible_casts() {
    std::set<std::string> wide(fixed_.begin(), fixed_.end());
    for (const Group& group : groups_) {
      if (group.narrow) continue;
      for (const int i : group.inputs) wide.insert(node(group.node).input(i));
      for (const int i : group.outputs) wide.insert(node(group.node).output(i));
    }
    const auto visible = [&](const SaturatingCast& cast) {
      return std::any_of(cast.tensors.begin(), cast.tensors.end(),
                         [&](const std::string& name) { return wide.contains(name); });
    };
    return std::erase_if(saturating_, visible) > 0;
  }

  std::string float_constant(float value, const char* name) {
    std::string& known = floats_[value];
    if (known.empty()) {
      known = names_.make(name);
      new_constants_.push_back(
          to_tensor_proto(Tensor::from<float>(DType::kFloat32, {}, {value}), known));
    }
    return known;
  }

  // Clips the float input of a saturating Cast; makes x + 0 of a Cast back.
  void rewrite_saturating(int index, onnx::NodeProto& changed) {
    constexpr auto kBound = static_cast<float>(kSaturation);
    for (const SaturatingCast& cast : saturating_) {
      const std::string& from = node(cast.node).input(0);
      if (cast.node == index) {
        const std::string clipped = names_.make(from + "_clipped");
        onnx::NodeProto clip = make_node(
            "Clip",
            {from, float_constant(-kBound, "int32_low"), float_constant(kBound, "int32_high")},
            {clipped});
        clip.set_name(names_.make(clipped + "_Clip"));
        nodes_.push_back(std::move(clip));
        changed.set_input(0, clipped);
      } else if (std::find(cast.returns.begin(), cast.returns.end(), index) != cast.returns.end()) {
        onnx::NodeProto add =
            make_node("Add", {from, float_constant(0, "float_zero")}, {changed.output(0)});
        add.set_name(changed.name());
        changed = std::move(add);
      }
    }
  }

  // The int32 twin of an int64 tensor, made right here where there is none yet.
  std::string narrowed(const std::string& name) {
    const auto [it, added] = twins_.try_emplace(name);
    if (!added) return it->second;
    it->second = names_.make(name + "_int32");
    if (constants_.contains(name)) {
      const auto value = model_.constant(name);
      if (value.ok()) {
        Tensor small(DType::kInt32, value->shape());
        for (std::int64_t i = 0; i < value->size(); ++i)
          small.mutable_data<std::int32_t>()[i] =
              static_cast<std::int32_t>(std::clamp(value->data<std::int64_t>()[i], kMin, kMax));
        new_constants_.push_back(to_tensor_proto(small, it->second));
        return it->second;
      }
    }
    cast(name, it->second, onnx::TensorProto::INT32);
    return it->second;
  }

  void cast(const std::string& from, const std::string& to, int type) {
    onnx::NodeProto n = make_node("Cast", {from}, {to});
    n.set_name(names_.make(to + "_Cast"));
    set_attribute(n, "to", std::int64_t{type});
    nodes_.push_back(std::move(n));
  }

  void rebuild() {
    onnx::GraphProto& graph = *model_.mutable_proto().mutable_graph();
    // Who still reads a tensor as int64.
    std::unordered_set<std::string> wide = fixed_;
    std::map<std::pair<int, int>, bool> narrow_input;
    for (const Group& group : groups_)
      for (const int i : group.inputs) narrow_input[{group.node, i}] = group.narrow;
    for (int n = 0; n < graph.node_size(); ++n)
      for (int i = 0; i < graph.node(n).input_size(); ++i) {
        const auto it = narrow_input.find({n, i});
        if (it == narrow_input.end() || !it->second) wide.insert(graph.node(n).input(i));
      }
    std::size_t g = 0;
    for (int n = 0; n < graph.node_size(); ++n) {
      onnx::NodeProto changed = graph.node(n);
      std::vector<std::string> widened;
      for (; g < groups_.size() && groups_[g].node == n; ++g) {
        const Group& group = groups_[g];
        if (!group.narrow) continue;
        for (const int i : group.inputs) changed.set_input(i, narrowed(graph.node(n).input(i)));
        for (const int i : group.outputs) {
          const std::string& name = graph.node(n).output(i);
          std::string& twin = twins_[name];
          if (twin.empty()) twin = names_.make(name + "_int32");
          changed.set_output(i, twin);
          if (wide.contains(name)) widened.push_back(name);
          if (is_op(changed, "Cast"))
            set_attribute(changed, "to", std::int64_t{onnx::TensorProto::INT32});
        }
      }
      rewrite_saturating(n, changed);
      nodes_.push_back(std::move(changed));
      for (const std::string& name : widened) cast(twins_[name], name, onnx::TensorProto::INT64);
    }
    graph.clear_node();
    for (onnx::NodeProto& n : nodes_) *graph.add_node() = std::move(n);
    for (auto& tensor : new_constants_) *graph.add_initializer() = std::move(tensor);
    remove_dead_nodes(graph);
    remove_unused(model_.mutable_proto());
  }

  void report() {
    std::set<int> reported;
    for (const Group& group : groups_) {
      if (!group.narrow || !reported.insert(group.node).second) continue;
      outcome_.sites.push_back({labels_[group.node], group.use == Use::kIndexes
                                                         ? "takes int32 indices"
                                                         : "works in int32"});
    }
    for (const Group& group : groups_)
      if (!group.narrow && group.computed && reported.insert(group.node).second)
        outcome_.skipped.push_back({labels_[group.node], group.why_not});
    outcome_.applied = static_cast<int>(outcome_.sites.size());
  }

  Model& model_;
  UniqueNames names_;
  const Inference inference_;
  std::vector<SaturatingCast> saturating_;
  std::unordered_map<std::string, ValueRange> ranges_;
  std::map<float, std::string> floats_;  // constants of rewrite_saturating()
  std::unordered_set<std::string> constants_;
  std::unordered_set<std::string> fixed_;  // outputs of the graph, captured by bodies: stay int64
  std::vector<Group> groups_;              // in node order
  std::map<int, std::string> labels_;      // of the nodes with groups
  std::unordered_map<std::string, std::string> twins_;  // int64 -> int32
  std::vector<onnx::NodeProto> nodes_;
  std::vector<onnx::TensorProto> new_constants_;
  PassOutcome outcome_;
};

}  // namespace

namespace passes {

Result<PassOutcome> narrow_index_types(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("narrow_index_types", options, {}));
  return Narrower(model).run();
}

}  // namespace passes
}  // namespace tenonnx
