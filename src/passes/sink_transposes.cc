// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// sink_transposes: moves Transposes down past operators that do not mind, towards other Transposes.
//
// before: a = Transpose(x, p); b = Relu(a + c); y = Transpose(b, inverse of p)
// after:  y = Relu(x + Transpose(c))
// before: Transpose(u, p) + Transpose(v, p)           after: Transpose(u + v, p)
//
// From a Transpose the region grows downwards: unary and element-wise operators, Concat, Softmax
// and reductions that keep their axes, whose other inputs are constants or Transposes with the same
// p. Where the region ends in a Transpose, both become one (or none); where it ends in anything
// else, a Transpose is put there. The whole region changes at once, and only where fewer Transposes
// remain than there were: so it ends.
// Conditions: every tensor of the region has the rank of p; constants are of one number or at most
// 64 KiB; a Softmax over the last axis stays there (devices want it so).
// Class algebraic: the same operations on the same numbers, but a reduction adds in another order,
// and vector and scalar code of one kernel (Log, Pow, ...) may differ in the last bit.
// Refuses: where as many Transposes would remain. Tensors inside the region are in another layout
// then, under new names: the pass says which and by what permutation.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "base/status.h"
#include "base/wording.h"
#include "passes/elementwise.h"
#include "passes/layout.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

constexpr std::size_t kMaxRegion = 256;  // nodes; the largest of the exports has 14
constexpr int kMaxDepth = 16;  // nodes above one of the region, searched for its other operands
constexpr std::size_t kMaxConstant = 1 << 16;  // bytes of a constant that is transposed anew

class Region {
 public:
  Region(const Rewriter& r, Permutation perm) : r_(r), perm_(std::move(perm)) {}

  void grow(int head) {
    add_head(head);
    while (!waiting_.empty() && nodes_.size() < kMaxRegion) {
      const int node = *waiting_.begin();
      waiting_.erase(waiting_.begin());
      std::set<int> found;
      if (nodes_.contains(node) || !takes(node, found, 0)) continue;
      for (const int index : found) add_node(index);
    }
    find_ends();
  }

  // Transposes before minus Transposes after.
  int gain() const {
    // A Transpose that ends the region and begins it anew would need both layouts.
    for (const int head : heads_)
      if (changed(r_.node(head).input(0))) return 0;
    int gain = -static_cast<int>(exits_.size());
    for (const int head : heads_) gain += stays(head) ? 0 : 1;
    for (const int end : ends_) gain += is_identity(end_perm(end)) ? 1 : 0;
    return gain;
  }

  std::vector<int> claims() const {
    std::vector<int> all(heads_.begin(), heads_.end());
    all.insert(all.end(), nodes_.begin(), nodes_.end());
    all.insert(all.end(), ends_.begin(), ends_.end());
    return all;
  }

  // False where a name cannot be kept. `layouts`: the old tensors of the region, and where their
  // values are now.
  bool rewrite(Rewriter& r, std::map<std::string, MovedTensor>& layouts) {
    std::unordered_map<std::string, std::string> moved;  // tensor -> the same in the layout before
    for (const int head : heads_) moved[r.node(head).output(0)] = r.node(head).input(0);
    // A Transpose that undoes p hands its name to the tensor that it would have made, the first
    // one of a tensor without an alias.
    for (const int end : ends_) {
      const std::string& from = r.node(end).input(0);
      if (is_identity(end_perm(end)) && !moved.contains(from)) moved[from] = r.node(end).output(0);
    }
    for (const int index : nodes_) {
      const std::string& name = r.node(index).output(0);
      if (!moved.contains(name)) moved[name] = r.fresh(name + "_moved");
    }
    for (const int index : nodes_) {
      onnx::NodeProto node = r.node(index);
      move_inputs(r, node, moved);
      move_axes(r, node, index);
      node.set_output(0, moved[node.output(0)]);
      r.replace(index, std::move(node));
    }
    for (const std::string& name : exits_) {
      const int producer = r.producer(name);
      onnx::NodeProto back = make_node("Transpose", {moved[name]}, {name});
      back.set_name(r.fresh(r.node(producer).name() + "_back"));
      set_attribute(back, "perm", perm_);
      r.insert(producer, std::move(back));  // behind it once the sweep has sorted the nodes
    }
    for (const int end : ends_) {
      const onnx::NodeProto& node = r.node(end);
      const std::string& source = moved[node.input(0)];
      const Permutation perm = end_perm(end);
      if (!is_identity(perm)) {
        onnx::NodeProto one = make_node("Transpose", {source}, {node.output(0)});
        set_attribute(one, "perm", perm);
        r.replace(end, std::move(one));
        continue;
      }
      r.remove(end);
      if (source != node.output(0)) {
        if (r.is_graph_output(node.output(0)) || !r.alias(node.output(0), source)) return false;
      }
    }
    for (const auto& [old_name, name] : moved) layouts[old_name] = {name, perm_};
    return true;
  }

 private:
  bool changed(const std::string& name) const { return tensors_.contains(name); }

  void add_tensor(const std::string& name) {
    tensors_.insert(name);
    for (const Use& use : r_.index().uses(name))
      if (use.input >= 0 && !is_op(r_.node(use.node), "Transpose")) waiting_.insert(use.node);
  }

  void add_head(int head) {
    if (heads_.insert(head).second) add_tensor(r_.node(head).output(0));
  }

  void add_node(int index) {
    for (const std::string& name : r_.node(index).input())
      if (const int head = head_of(name); head >= 0) add_head(head);
    nodes_.insert(index);
    add_tensor(r_.node(index).output(0));
  }

  int head_of(const std::string& name) const {
    const int producer = r_.producer(name, "Transpose");
    if (producer < 0 || permutation(r_, r_.node(producer)) != perm_) return -1;
    return producer;
  }

  bool has_rank(const std::string& name) const {
    const auto shape = r_.shape(name);
    return shape && shape->size() == perm_.size();
  }

  // A constant that element-wise operators take beside a tensor of the region.
  bool constant_fits(const std::string& name) const {
    const Tensor* t = r_.constant(name);
    return t != nullptr && t->shape().size() <= perm_.size() &&
           (t->size() == 1 || t->bytes() <= kMaxConstant);
  }

  // Whether a tensor is one of the region, or follows from Transposes by p alone: then `found`
  // holds the nodes between.
  bool reaches(const std::string& name, std::set<int>& found, int depth) const {
    if (changed(name) || head_of(name) >= 0) return has_rank(name);
    const int producer = r_.producer(name);
    return producer >= 0 && depth < kMaxDepth && takes(producer, found, depth + 1);
  }

  // Whether a node can be of the region; `found` then holds it, and what it needs.
  bool takes(int index, std::set<int>& found, int depth) const {
    if (nodes_.contains(index) || found.contains(index)) return true;
    if (!is_movable(index)) return false;
    const onnx::NodeProto& node = r_.node(index);
    const bool all = is_nary_elementwise(node.op_type()) || node.op_type() == "Where" ||
                     node.op_type() == "Concat";
    for (int k = 0; k < (all ? node.input_size() : 1); ++k) {
      const std::string& name = node.input(k);
      if (r_.constant(name) != nullptr) {
        if (!all || !constant_fits(name) || (node.op_type() == "Concat" && !has_rank(name)))
          return false;
      } else if (!reaches(name, found, depth)) {
        return false;
      }
    }
    // What stands beside the data (bounds, axes) is no tensor of the region.
    for (int k = 1; k < (all ? 0 : node.input_size()); ++k)
      if (changed(node.input(k))) return false;
    found.insert(index);
    return true;
  }

  bool is_movable(int index) const {
    const onnx::NodeProto& node = r_.node(index);
    if (!normalized_domain(node.domain()).empty() || node.output_size() != 1) return false;
    if (!has_rank(node.output(0))) return false;
    const std::string_view op = node.op_type();
    if (is_unary_elementwise(op)) return true;
    if (op == "Softmax" || op == "LogSoftmax") {
      // Before opset 13 Softmax flattens what lies behind its axis.
      if (r_.opset() < 13) return false;
      const std::int64_t last = static_cast<std::int64_t>(perm_.size()) - 1;
      const std::int64_t axis = from_front(attribute_or(node, "axis", std::int64_t{-1}));
      return axis != last || old_axis(axis) == last;
    }
    if (is_reduction(op)) {
      if (attribute_or(node, "keepdims", std::int64_t{1}) != 1) return false;
      const auto axes = ints_of(r_, node, "axes", 1);
      return axes && !axes->empty();
    }
    return op == "Concat" || op == "Where" || is_nary_elementwise(op);
  }

  std::int64_t from_front(std::int64_t axis) const {
    return axis < 0 ? axis + static_cast<std::int64_t>(perm_.size()) : axis;
  }
  // Where an axis of a tensor of the region is in the layout before.
  std::int64_t old_axis(std::int64_t axis) const {
    return perm_[static_cast<std::size_t>(from_front(axis))];
  }

  // The Transposes that the region ends in, and the tensors that something else reads as they are.
  void find_ends() {
    for (const std::string& name : tensors_) {
      const bool of_head = heads_.contains(r_.producer(name));
      bool read = r_.is_graph_output(name);
      for (const Use& use : r_.index().uses(name)) {
        if (use.input >= 0 && nodes_.contains(use.node)) continue;
        if (use.input == 0 && is_op(r_.node(use.node), "Transpose") &&
            permutation(r_, r_.node(use.node))) {
          ends_.insert(use.node);
        } else {
          read = true;
        }
      }
      if (!read) continue;
      if (of_head) {
        staying_.insert(r_.producer(name));
      } else {
        exits_.insert(name);
      }
    }
  }

  bool stays(int head) const { return staying_.contains(head); }

  // A Transpose at the end, seen from the layout before.
  Permutation end_perm(int end) const { return composed(perm_, *permutation(r_, r_.node(end))); }

  void move_inputs(Rewriter& r, onnx::NodeProto& node,
                   const std::unordered_map<std::string, std::string>& moved) {
    const bool reduces = is_reduction(node.op_type());
    const bool unary = is_unary_elementwise(node.op_type());
    for (int k = 0; k < node.input_size(); ++k) {
      const std::string& name = node.input(k);
      if (const auto found = moved.find(name); found != moved.end() && changed(name)) {
        node.set_input(k, found->second);
        continue;
      }
      if (name.empty() || unary || reduces) continue;
      const Tensor& constant = *r.constant(name);
      if (constant.size() == 1 && node.op_type() != "Concat") continue;
      Shape full(perm_.size() - constant.shape().size(), 1);
      full.insert(full.end(), constant.shape().begin(), constant.shape().end());
      const auto spread = constant.reshaped(full);
      node.set_input(k, r.add_constant(name + "_moved", transposed(*spread, inverse(perm_))));
    }
  }

  void move_axes(Rewriter& r, onnx::NodeProto& node, int index) {
    const std::string_view op = node.op_type();
    if (op == "Concat" || op == "Softmax" || op == "LogSoftmax")
      set_attribute(node, "axis", old_axis(attribute_or(node, "axis", std::int64_t{-1})));
    if (!is_reduction(op)) return;
    const bool attribute = find_attribute(node, "axes") != nullptr;
    std::vector<std::int64_t> axes = *ints_of(r, r.node(index), "axes", 1);
    for (std::int64_t& axis : axes) axis = old_axis(axis);
    std::sort(axes.begin(), axes.end());
    if (attribute) {
      set_attribute(node, "axes", axes);
    } else {
      const auto count = static_cast<std::int64_t>(axes.size());
      node.set_input(1, r.add_constant(node.output(0) + "_axes",
                                       Tensor::from<std::int64_t>(DType::kInt64, {count}, axes)));
    }
  }

  const Rewriter& r_;
  const Permutation perm_;
  std::set<int> heads_, nodes_, ends_, staying_, waiting_;
  std::set<std::string> tensors_, exits_;  // tensors whose layout changes; those read as they are
};

// What the whole pass moved, of the tensors that are gone: a later sweep may have moved or renamed
// what an earlier one made.
std::map<std::string, MovedTensor> moved_by(const NameRecord& record, const PassOutcome& outcome,
                                            const Model& model) {
  const std::set<std::string> names = computed_names(model.proto().graph());
  std::map<std::string, MovedTensor> all;
  for (const auto& [old_name, there] : record.moved) {
    const auto renamed = outcome.renamed.find(there.name);
    const std::string& name = renamed == outcome.renamed.end() ? there.name : renamed->second;
    if (names.contains(name) && !names.contains(old_name) && !outcome.renamed.contains(old_name))
      all[old_name] = {name, there.perm};
  }
  return all;
}

}  // namespace

namespace passes {

Result<PassOutcome> sink_transposes(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("sink_transposes", options, {}));
  Rewriter r(model);
  NameRecord record;
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const auto perm = permutation(r, r.node(i));
    if (!perm || is_identity(*perm)) return;
    Region region(r, *perm);
    region.grow(i);
    const int gain = region.gain();
    if (gain <= 0) return r.refuse(i, "as many Transposes would remain below it");
    if (!r.begin(region.claims())) return;
    NameRecord one;
    if (!region.rewrite(r, one.moved))
      return r.refuse(i, "an output of the graph below it could not keep its name");
    r.apply(i, fmt::format("moves down: {} fewer", counted(gain, "Transpose")));
    record = join(record, one);
  }));
  PassOutcome outcome = r.finish();
  outcome.moved = moved_by(record, outcome, model);
  return outcome;
}

}  // namespace passes
}  // namespace tenonnx
