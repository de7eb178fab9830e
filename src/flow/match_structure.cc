// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/match_structure.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "metrics/tensor_error.h"
#include "model/graph.h"

namespace tenonnx {
namespace {

// A graph, and what of it follows from its inputs.
struct Side {
  explicit Side(const Model& of) : model(of), index(of.proto().graph()) {
    for (const TensorInfo& info : of.inputs()) computed.insert(info.name);
    for (int n = 0; n < index.graph().node_size(); ++n) {
      const onnx::NodeProto& node = index.graph().node(n);
      const auto follows = [&](std::string_view name) {
        return computed.contains(std::string(name));
      };
      if (!std::any_of(node.input().begin(), node.input().end(), follows) &&
          !std::any_of(index.captures(n).begin(), index.captures(n).end(), follows))
        continue;
      for (const std::string& name : node.output())
        if (!name.empty()) computed.insert(name);
    }
  }
  const onnx::NodeProto& node(int n) const { return index.graph().node(n); }
  bool follows(const std::string& name) const { return computed.contains(name); }
  int producer(const std::string& name) const {
    const Value* value = index.find(name);
    return value == nullptr || !follows(name) ? -1 : value->producer;
  }

  const Model& model;
  GraphIndex index;
  std::unordered_set<std::string> computed;
};

class Matcher {
 public:
  Matcher(const Model& reference, const Model& candidate)
      : ours_(reference),
        theirs_(candidate),
        node_of_(static_cast<std::size_t>(ours_.index.graph().node_size()), -1) {}

  std::map<std::string, std::string> run(const NameRecord& known) {
    for (const TensorInfo& info : ours_.model.inputs()) pair(info.name, info.name);
    for (const onnx::NodeProto& node : ours_.index.graph().node())
      for (const std::string& name : node.output())
        if (ours_.follows(name)) take_name(name, known);
    bool more = true;
    while (more) more = forwards() | backwards();
    std::map<std::string, std::string> out;
    for (const auto& [name, there] : pairs_)
      if (!left_out_.contains(name) && !taken_.contains(there) && name != there) out[name] = there;
    return out;
  }

 private:
  // What has a counterpart of its name, or of the passes' record.
  void take_name(const std::string& name, const NameRecord& known) {
    if (known.removed.contains(name) || known.moved.contains(name)) {
      left_out_.insert(name);
      return;
    }
    const auto renamed = known.renamed.find(name);
    const std::string& there = renamed == known.renamed.end() ? name : renamed->second;
    if (!theirs_.follows(there)) return;
    taken_.insert(there);
    left_out_.insert(name);
    const int a = ours_.producer(name), b = theirs_.producer(there);
    if (a >= 0 && b >= 0 && same_form(a, b)) pair_nodes(a, b);
    pair(name, there);
  }

  bool same_form(int a, int b) const {
    const onnx::NodeProto &x = ours_.node(a), &y = theirs_.node(b);
    return x.op_type() == y.op_type() && x.input_size() == y.input_size() &&
           x.output_size() == y.output_size() &&
           normalized_domain(x.domain()) == normalized_domain(y.domain());
  }

  bool pair(const std::string& ours, const std::string& theirs) {
    if (ours.empty() || theirs.empty() || pairs_.contains(ours)) return false;
    if (!paired_.insert(theirs).second) return false;
    pairs_[ours] = theirs;
    return true;
  }

  bool pair_nodes(int a, int b) {
    if (node_of_[static_cast<std::size_t>(a)] >= 0 || !nodes_taken_.insert(b).second) return false;
    node_of_[static_cast<std::size_t>(a)] = b;
    for (int i = 0; i < ours_.node(a).output_size(); ++i)
      pair(ours_.node(a).output(i), theirs_.node(b).output(i));
    return true;
  }

  // Whether the candidate's node reads what the reference's does, constants in the same places.
  bool reads_the_same(int a, int b) const {
    if (!same_form(a, b)) return false;
    for (int i = 0; i < ours_.node(a).input_size(); ++i) {
      const std::string &x = ours_.node(a).input(i), &y = theirs_.node(b).input(i);
      if (!ours_.follows(x) && !theirs_.follows(y)) continue;
      const auto found = pairs_.find(x);
      if (found == pairs_.end() || found->second != y) return false;
    }
    return true;
  }

  // The inputs that follow from the graph's, all of them paired; "" where one is not.
  std::string key_of(int a) const {
    std::string key;
    for (const std::string& name : ours_.node(a).input()) {
      if (!ours_.follows(name)) continue;
      if (!pairs_.contains(name)) return "";
      key += name + "\n";
    }
    return key.empty() ? key : ours_.node(a).op_type() + "\n" + key;
  }

  bool forwards() {
    // Nodes with one operator and the same inputs stand together.
    std::map<std::string, std::vector<int>> groups;
    for (int a = 0; a < ours_.index.graph().node_size(); ++a) {
      if (node_of_[static_cast<std::size_t>(a)] >= 0) continue;
      if (const std::string key = key_of(a); !key.empty()) groups[key].push_back(a);
    }
    bool any = false;
    for (const auto& [key, group] : groups) any |= pair_group(group);
    return any;
  }

  std::vector<int> readers_of(int a) const {
    std::vector<int> out;
    for (const std::string& name : ours_.node(a).input()) {
      const auto found = pairs_.find(name);
      if (found == pairs_.end()) continue;
      for (const Use& use : theirs_.index.uses(found->second))
        if (use.node >= 0 && !nodes_taken_.contains(use.node) && reads_the_same(a, use.node) &&
            std::find(out.begin(), out.end(), use.node) == out.end())
          out.push_back(use.node);
      break;
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  bool pair_group(const std::vector<int>& group) {
    bool any = false;
    std::vector<int> rest;
    for (const int a : group) {
      const std::vector<int> readers = readers_of(a);
      if (group.size() == 1 && readers.size() == 1) return pair_nodes(a, readers.front());
      const auto equal = std::find_if(readers.begin(), readers.end(),
                                      [&](int b) { return constants(a, b, true); });
      if (equal != readers.end())
        any |= pair_nodes(a, *equal);
      else
        rest.push_back(a);
    }
    // In their order, where there are equally many of these shapes.
    for (const int a : rest) {
      std::vector<int> alike, there;
      for (const int other : rest)
        if (node_of_[static_cast<std::size_t>(other)] < 0 && shapes_of(other) == shapes_of(a))
          alike.push_back(other);
      for (const int b : readers_of(a))
        if (constants(a, b, false)) there.push_back(b);
      if (alike.size() != there.size()) continue;
      for (std::size_t i = 0; i < alike.size(); ++i) any |= pair_nodes(alike[i], there[i]);
    }
    return any;
  }

  std::string shapes_of(int a) const {
    std::string out;
    for (const std::string& name : ours_.node(a).input()) {
      if (ours_.follows(name)) continue;
      const auto constant = ours_.model.constant(name);
      out += constant.ok() ? to_string(constant->shape()) : "-";
    }
    return out;
  }

  // Of equal shape and type, and of equal value where `values`.
  bool constants(int a, int b, bool values) const {
    for (int i = 0; i < ours_.node(a).input_size(); ++i) {
      const std::string &x = ours_.node(a).input(i), &y = theirs_.node(b).input(i);
      if (ours_.follows(x) || (x.empty() && y.empty())) continue;
      const auto ours = ours_.model.constant(x), theirs = theirs_.model.constant(y);
      if (!ours.ok() || !theirs.ok() || ours->shape() != theirs->shape() ||
          ours->dtype() != theirs->dtype())
        return false;
      if (!values) continue;
      const auto same = compare_identical(*ours, *theirs);
      if (!same.ok() || !same->identical) return false;
    }
    return true;
  }

  // What makes a paired tensor is a pair where it has one form, and so is what that reads.
  bool backwards() {
    bool any = false;
    for (int a = ours_.index.graph().node_size() - 1; a >= 0; --a) {
      int b = node_of_[static_cast<std::size_t>(a)];
      if (b < 0)
        for (const std::string& name : ours_.node(a).output()) {
          const auto found = pairs_.find(name);
          if (found == pairs_.end()) continue;
          const int producer = theirs_.producer(found->second);
          if (producer >= 0 && same_form(a, producer) && pair_nodes(a, producer)) {
            b = producer;
            any = true;
          }
          break;
        }
      if (b < 0) continue;
      for (int i = 0; i < ours_.node(a).input_size(); ++i) {
        const std::string &x = ours_.node(a).input(i), &y = theirs_.node(b).input(i);
        const int p = ours_.producer(x), q = theirs_.producer(y);
        if (p < 0 || q < 0 || pairs_.contains(x) || paired_.contains(y) || !same_form(p, q))
          continue;
        any |= pair_nodes(p, q);
      }
    }
    return any;
  }

  const Side ours_, theirs_;
  std::vector<int> node_of_;  // the candidate's node of each of the reference's, -1: not known
  std::unordered_set<int> nodes_taken_;
  std::unordered_map<std::string, std::string> pairs_;  // tensors, the reference's -> candidate's
  std::unordered_set<std::string> paired_;              // the candidate's
  std::unordered_set<std::string> taken_, left_out_;    // with a counterpart of their name
};

}  // namespace

std::map<std::string, std::string> match_structure(const Model& reference, const Model& candidate,
                                                   const NameRecord& known) {
  return Matcher(reference, candidate).run(known);
}

}  // namespace tenonnx
