// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/region_diff.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <unordered_set>

#include "base/status.h"
#include "model/graph.h"

namespace tenonnx {
namespace {

// The version of an operator's schema that a graph of this opset uses; 0 where onnx knows none.
int since_version(const onnx::NodeProto& node, const Model& model) {
  const std::string domain(normalized_domain(node.domain()));
  const auto* schema =
      onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(model.opset(domain)), domain);
  return schema == nullptr ? 0 : schema->SinceVersion();
}

bool same_attributes(const onnx::NodeProto& a, const onnx::NodeProto& b) {
  if (a.attribute_size() != b.attribute_size()) return false;
  std::string left, right;
  for (const auto& attribute : a.attribute()) {
    const auto* other = find_attribute(b, attribute.name());
    if (other == nullptr) return false;
    attribute.SerializeToString(&left);
    other->SerializeToString(&right);
    if (left != right) return false;
  }
  return true;
}

class UnionFind {
 public:
  explicit UnionFind(std::size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int find(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(int a, int b) { parent_[find(a)] = find(b); }

 private:
  std::vector<int> parent_;
};

// Both graphs with the names that join them.
class Pair {
 public:
  Pair(const Model& before, const Model& after, const std::map<std::string, std::string>& renamed)
      : before_(before), after_(after), b_(before.proto().graph()), a_(after.proto().graph()) {
    for (const Value& value : b_.values()) {
      const auto it = renamed.find(std::string(value.name));
      const std::string_view image =
          it == renamed.end() ? value.name : std::string_view(it->second);
      const Value* found = a_.find(image);
      if (found == nullptr) continue;
      image_.emplace(value.name, found->name);
      origins_[found->name].push_back(value.name);
    }
  }

  // The name after the pass; empty where the tensor is gone.
  std::string_view image(std::string_view name) const {
    const auto it = image_.find(name);
    return it == image_.end() ? std::string_view() : it->second;
  }
  const std::vector<std::string_view>& origins(std::string_view name) const {
    static const std::vector<std::string_view> kNone;
    const auto it = origins_.find(name);
    return it == origins_.end() ? kNone : it->second;
  }
  const GraphIndex& b() const { return b_; }
  const GraphIndex& a() const { return a_; }
  const onnx::NodeProto& b_node(int i) const { return before_.proto().graph().node(i); }
  const onnx::NodeProto& a_node(int i) const { return after_.proto().graph().node(i); }
  const Model& before() const { return before_; }
  const Model& after() const { return after_; }

  // Whether a constant of the graph before has another value after.
  bool constant_changed(std::string_view name) {
    const Value* value = b_.find(name);
    if (value == nullptr || value->initializer == nullptr) return false;
    const auto [it, inserted] = changed_.try_emplace(name, false);
    if (inserted) {
      const Value* other = a_.find(image(name));
      it->second = other != nullptr && other->initializer != nullptr &&
                   !same_constant(before_, *value->initializer, after_, *other->initializer);
    }
    return it->second;
  }

  bool same_node(int i, int j) {
    const onnx::NodeProto& x = b_node(i);
    const onnx::NodeProto& y = a_node(j);
    if (x.op_type() != y.op_type() ||
        normalized_domain(x.domain()) != normalized_domain(y.domain()) ||
        x.input_size() != y.input_size() || x.output_size() != y.output_size())
      return false;
    for (int k = 0; k < x.input_size(); ++k) {
      if (x.input(k).empty() != y.input(k).empty()) return false;
      if (!x.input(k).empty() && image(x.input(k)) != y.input(k)) return false;
      if (constant_changed(x.input(k))) return false;
    }
    for (int k = 0; k < x.output_size(); ++k) {
      if (x.output(k).empty() != y.output(k).empty()) return false;
      // An output that nothing used may have lost its name.
      if (!x.output(k).empty() && image(x.output(k)) != y.output(k)) return false;
    }
    for (const std::string_view name : b_.captures(i))
      if (image(name) != name || constant_changed(name)) return false;
    return since_version(x, before_) == since_version(y, after_) && same_attributes(x, y);
  }

 private:
  const Model& before_;
  const Model& after_;
  GraphIndex b_, a_;
  std::unordered_map<std::string_view, std::string_view> image_;
  std::unordered_map<std::string_view, std::vector<std::string_view>> origins_;
  std::unordered_map<std::string_view, bool> changed_;
};

Status check_promises(const Pair& pair, const std::map<std::string, std::string>& renamed,
                      std::string_view pass) {
  const auto of = [](const std::vector<TensorInfo>& infos) {
    std::map<std::string, DType> out;
    for (const TensorInfo& info : infos) out.emplace(info.name, info.dtype);
    return out;
  };
  for (const char* side : {"input", "output"}) {
    const bool inputs = side[0] == 'i';
    const auto was = of(inputs ? pair.before().inputs() : pair.before().outputs());
    const auto is = of(inputs ? pair.after().inputs() : pair.after().outputs());
    for (const auto& [name, dtype] : was) {
      const auto it = is.find(name);
      if (it == is.end())
        return Internal("pass {} took the {} '{}' of the graph away", pass, side, name);
      if (it->second != dtype)
        return Internal("pass {} made the {} '{}' of the graph {}, it was {}", pass, side, name,
                        to_string(it->second), to_string(dtype));
    }
    if (was.size() != is.size())
      return Internal("pass {} gave the graph {} {}s, it had {}", pass, is.size(), side,
                      was.size());
  }
  for (const auto& [from, to] : renamed) {
    const Value* was = pair.b().find(from);
    const Value* is = pair.a().find(to);
    if (was == nullptr || is == nullptr)
      return Internal("pass {} says that '{}' is now '{}', but the graph {} has no '{}'", pass,
                      from, to, was == nullptr ? "before it" : "after it",
                      was == nullptr ? from : to);
    if (was->is_input && from != to)
      return Internal("pass {} renames the input '{}' of the graph to '{}'", pass, from, to);
    if (was->initializer != nullptr && is->initializer != nullptr &&
        !same_constant(pair.before(), *was->initializer, pair.after(), *is->initializer))
      return Internal("pass {} says that the constant '{}' is now '{}', but the values differ",
                      pass, from, to);
  }
  return {};
}

// Inputs and outputs of a region whose nodes are known.
void find_boundary(const Pair& pair, ChangedRegion& region) {
  std::sort(region.before.begin(), region.before.end());
  std::sort(region.after.begin(), region.after.end());
  region.inputs.clear();
  region.outputs.clear();
  std::unordered_set<std::string_view> made_before, made_after;
  for (const int i : region.before)
    for (const std::string& name : pair.b_node(i).output()) made_before.insert(name);
  for (const int j : region.after)
    for (const std::string& name : pair.a_node(j).output()) made_after.insert(name);

  const auto fixed = [](const Value* value) {
    return value == nullptr || (value->is_initializer() && !value->is_input);
  };
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> known;
  const auto add_input = [&](std::string_view before, std::string_view after, bool of_before) {
    const auto [it, inserted] = known.try_emplace({before, after}, region.inputs.size());
    if (inserted) region.inputs.push_back({std::string(before), std::string(after), false, false});
    (of_before ? region.inputs[it->second].in_before : region.inputs[it->second].in_after) = true;
  };
  // The value before that stands for a tensor after: of the same name, and not made in here.
  const auto origin = [&](std::string_view after) {
    std::string_view best;
    for (const std::string_view name : pair.origins(after)) {
      if (made_before.contains(name)) continue;
      if (best.empty() || name == after) best = name;
    }
    return best;
  };
  const auto uses_of = [&](const GraphIndex& index, const onnx::NodeProto& node, int i,
                           auto visit) {
    for (const std::string& name : node.input())
      if (!name.empty()) visit(std::string_view(name));
    for (const std::string_view name : index.captures(i)) visit(name);
  };
  for (const int i : region.before)
    uses_of(pair.b(), pair.b_node(i), i, [&](std::string_view name) {
      if (!made_before.contains(name) && !fixed(pair.b().find(name)))
        add_input(name, pair.image(name), true);
    });
  const auto take_after = [&](std::string_view name) {
    if (made_after.contains(name) || fixed(pair.a().find(name))) return;
    add_input(origin(name), name, false);
  };
  for (const int j : region.after) uses_of(pair.a(), pair.a_node(j), j, take_after);

  std::set<std::pair<std::string_view, std::string_view>> outputs;
  const auto add_output = [&](std::string_view before, std::string_view after) {
    if (!outputs.emplace(before, after).second) return;
    region.outputs.push_back({std::string(before), std::string(after), true, true});
    take_after(after);  // where it only passes through
  };
  for (const int i : region.before) {
    for (const std::string& name : pair.b_node(i).output()) {
      if (name.empty() || pair.image(name).empty()) continue;
      const Value* value = pair.b().find(name);
      if (!value->uses.empty() || value->is_output) add_output(name, pair.image(name));
    }
  }
  for (const int j : region.after)
    for (const std::string& name : pair.a_node(j).output())
      for (const std::string_view before : pair.origins(name))
        if (const Value* value = pair.b().find(before); !value->uses.empty() || value->is_output)
          add_output(before, name);
}

}  // namespace

bool same_constant(const Model& before, const onnx::TensorProto& a, const Model& after,
                   const onnx::TensorProto& b) {
  if (a.data_type() != b.data_type() ||
      !std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end()))
    return false;
  if (a.has_raw_data() && b.has_raw_data()) return a.raw_data() == b.raw_data();
  const auto left = before.tensor(a), right = after.tensor(b);
  if (left.ok() && right.ok())
    return left->bytes() == right->bytes() &&
           (left->bytes() == 0 || left->raw() == right->raw() ||
            std::memcmp(left->raw(), right->raw(), left->bytes()) == 0);
  return a.SerializeAsString() == b.SerializeAsString();  // strings, 4-bit types
}

Result<GraphDiff> diff_graphs(const Model& before, const Model& after,
                              const std::map<std::string, std::string>& renamed,
                              std::string_view pass) {
  Pair pair(before, after, renamed);
  TENONNX_RETURN_IF_ERROR(check_promises(pair, renamed, pass));
  GraphDiff diff;
  const int n = before.proto().graph().node_size();
  const int m = after.proto().graph().node_size();
  diff.counterpart.assign(static_cast<std::size_t>(n), -1);
  std::vector<bool> matched(static_cast<std::size_t>(m), false);
  for (int i = 0; i < n; ++i) {
    for (const std::string& name : pair.b_node(i).output()) {
      if (name.empty()) continue;
      const Value* value = pair.a().find(pair.image(name));
      if (value == nullptr || value->producer < 0) break;
      const auto j = static_cast<std::size_t>(value->producer);
      if (!matched[j] && pair.same_node(i, value->producer)) {
        diff.counterpart[static_cast<std::size_t>(i)] = value->producer;
        matched[j] = true;
        ++diff.unchanged;
      }
      break;
    }
  }

  UnionFind sets(static_cast<std::size_t>(n) + static_cast<std::size_t>(m));
  const auto changed_before = [&](int i) {
    return i >= 0 && diff.counterpart[static_cast<std::size_t>(i)] < 0;
  };
  const auto changed_after = [&](int j) { return j >= 0 && !matched[static_cast<std::size_t>(j)]; };
  for (const Value& value : pair.b().values()) {
    if (!changed_before(value.producer)) continue;
    const std::string_view image = pair.image(value.name);
    if (image.empty()) {
      for (const Use& use : value.uses) sets.join(value.producer, use.node);
    } else if (const int j = pair.a().find(image)->producer; changed_after(j)) {
      sets.join(value.producer, n + j);
    }
  }
  for (const Value& value : pair.a().values()) {
    if (!changed_after(value.producer) || !pair.origins(value.name).empty()) continue;
    for (const Use& use : value.uses) sets.join(n + value.producer, n + use.node);
  }
  std::map<int, ChangedRegion> regions;
  std::vector<int> order;
  const auto region_of = [&](int element) -> ChangedRegion& {
    const auto [it, inserted] = regions.try_emplace(sets.find(element));
    if (inserted) order.push_back(it->first);
    return it->second;
  };
  for (int i = 0; i < n; ++i)
    if (changed_before(i)) region_of(i).before.push_back(i);
  for (int j = 0; j < m; ++j)
    if (changed_after(j)) region_of(n + j).after.push_back(j);
  for (const int root : order) {
    ChangedRegion& region = regions.at(root);
    find_boundary(pair, region);
    if (!region.outputs.empty()) diff.regions.push_back(std::move(region));
  }
  return diff;
}

bool grow_region(const Model& before, const Model& after, const GraphDiff& diff,
                 const std::map<std::string, std::string>& renamed, ChangedRegion& region) {
  const Pair pair(before, after, renamed);
  std::set<int> b(region.before.begin(), region.before.end());
  std::set<int> a(region.after.begin(), region.after.end());
  const std::size_t was = b.size() + a.size();
  for (const RegionTensor& input : region.inputs) {
    const Value* value = pair.b().find(input.before);
    if (value == nullptr || value->producer < 0) continue;
    const int other = diff.counterpart[static_cast<std::size_t>(value->producer)];
    if (other >= 0) {
      b.insert(value->producer);
      a.insert(other);
      continue;
    }
    for (const ChangedRegion& neighbour : diff.regions) {
      if (!std::binary_search(neighbour.before.begin(), neighbour.before.end(), value->producer))
        continue;
      b.insert(neighbour.before.begin(), neighbour.before.end());
      a.insert(neighbour.after.begin(), neighbour.after.end());
    }
  }
  if (b.size() + a.size() == was) return false;
  const std::vector<RegionTensor> outputs = std::move(region.outputs);
  region.before.assign(b.begin(), b.end());
  region.after.assign(a.begin(), a.end());
  find_boundary(pair, region);
  region.outputs = outputs;  // what is to be proved stays
  return true;
}

}  // namespace tenonnx
