// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/status.h"
#include "model/extract.h"
#include "model/graph.h"

namespace tenonnx {
namespace {

// What lies before some tensors, without going through a cut.
class Before {
 public:
  Before(const GraphIndex& index, const std::unordered_set<std::string_view>& stop)
      : index_(index), stop_(stop) {}

  // `at_start` are followed even where they are cut tensors themselves.
  void walk(const std::vector<std::string>& at_start, bool stop_at_start) {
    std::vector<std::string_view> stack;
    for (const std::string& name : at_start) {
      if (stop_at_start && stop_.contains(name)) {
        reached_cut_.insert(name);
        continue;
      }
      if (next_.try_emplace(name, std::string_view()).second) stack.push_back(name);
    }
    while (!stack.empty()) {
      const std::string_view name = stack.back();
      stack.pop_back();
      const Value* value = index_.find(name);
      if (value == nullptr) continue;
      if (value->producer < 0) {
        if (!value->is_initializer()) inputs_.insert(name);
        continue;
      }
      const auto visit = [&](std::string_view input) {
        if (input.empty()) return;
        if (stop_.contains(input)) {
          reached_cut_.insert(input);
          return;
        }
        if (next_.try_emplace(input, name).second) stack.push_back(input);
      };
      for (const auto& input : index_.graph().node(value->producer).input()) visit(input);
      for (std::string_view captured : index_.captures(value->producer)) visit(captured);
    }
  }

  bool needs_input(std::string_view name) const { return inputs_.contains(name); }
  bool reaches_cut(std::string_view name) const { return reached_cut_.contains(name); }

  // "images -> Conv 'a' -> ... -> Add 'z' -> boxes": at most 3 nodes at either end.
  std::string path_from(std::string_view input) const {
    std::vector<std::string> nodes;
    std::string_view name = input;
    for (auto it = next_.find(name); it != next_.end() && !it->second.empty();
         it = next_.find(name)) {
      name = it->second;
      if (const auto* node = index_.producer(name)) nodes.push_back(node_label(*node));
    }
    constexpr std::size_t kEnd = 3;
    std::string out = fmt::format("'{}'", input);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes.size() > 2 * kEnd && i == kEnd) {
        out += fmt::format(" -> ({} more)", nodes.size() - 2 * kEnd);
        i = nodes.size() - kEnd;
      }
      out += " -> " + nodes[i];
    }
    return fmt::format("{} -> '{}'", out, name);
  }

 private:
  const GraphIndex& index_;
  const std::unordered_set<std::string_view>& stop_;
  // Each tensor that was met, and the tensor made from it on the way to an output.
  std::unordered_map<std::string_view, std::string_view> next_;
  std::unordered_set<std::string_view> inputs_, reached_cut_;
};

}  // namespace

Result<SplitModel> split(const Model& model, const std::vector<std::string>& cut,
                         const SplitOptions& options) {
  if (cut.empty()) return InvalidArgument("a cut needs at least one tensor");
  const GraphIndex index(model.proto().graph());
  for (const std::string& name : cut) {
    const Value* value = index.find(name);
    if (value == nullptr) return NotFound("the cut tensor '{}' is no tensor of the model", name);
    const auto* producer = index.producer(name);
    if (value->is_initializer() || (producer != nullptr && producer->op_type() == "Constant"))
      return InvalidArgument("the cut tensor '{}' is a constant; cut at what is computed", name);
    if (value->is_input)
      return InvalidArgument("the cut tensor '{}' is an input of the model; nothing is before it",
                             name);
  }
  const std::unordered_set<std::string_view> cuts(cut.begin(), cut.end());
  const std::unordered_set<std::string_view> none;
  std::vector<std::string> outputs;
  for (const TensorInfo& info : model.outputs()) outputs.push_back(info.name);

  Before first(index, none);
  first.walk(cut, false);
  Before second(index, cuts);
  second.walk(outputs, true);
  for (const std::string& name : cut)
    if (!second.reaches_cut(name))
      return InvalidArgument("nothing behind the cut uses the cut tensor '{}'", name);

  std::vector<std::string> first_inputs, second_inputs = cut;
  for (const TensorInfo& input : model.inputs()) {
    const bool before = first.needs_input(input.name);
    const bool behind = second.needs_input(input.name);
    if (before && behind && !options.allow_shared_inputs)
      return FailedPrecondition(
          "the cut is no separator: the part behind it needs the input '{}' as well, by {}; add a "
          "tensor of this path to the cut, or fold it away first (fix_input_shapes and "
          "fold_constants remove shape chains)",
          input.name, second.path_from(input.name));
    if (before) first_inputs.push_back(input.name);
    if (behind) second_inputs.push_back(input.name);
  }

  ExtractOptions extract_options;
  extract_options.renames = options.renames;
  extract_options.types = options.types;
  extract_options.keep_metadata = options.keep_metadata;
  SplitModel parts;
  TENONNX_ASSIGN_OR_RETURN(parts.first, extract(model, first_inputs, cut, extract_options));
  TENONNX_ASSIGN_OR_RETURN(parts.second, extract(model, second_inputs, outputs, extract_options));
  return parts;
}

}  // namespace tenonnx
