// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/node_sets.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>

#include "base/status.h"
#include "numerics/block_name.h"
#include "numerics/minimal_set.h"

namespace tenonnx {
namespace {

std::set<int> as_set(const std::vector<int>& nodes) { return {nodes.begin(), nodes.end()}; }

class SetFinder {
 public:
  explicit SetFinder(Trials& trials) : trials_(trials) {}

  Result<FoundSets> run(const std::vector<int>& failing, const std::vector<std::set<int>>& halves) {
    TENONNX_ASSIGN_OR_RETURN(const std::vector<int> start, mending(failing, halves));
    if (start.empty()) return std::move(out_);
    TENONNX_ASSIGN_OR_RETURN(MinimalSet found, minimize_set(start, mends()));
    TENONNX_ASSIGN_OR_RETURN(out_.keep, described(found, "node", true));
    TENONNX_RETURN_IF_ERROR(find_breaking(out_.keep->indices));
    TENONNX_RETURN_IF_ERROR(add_alternatives());
    return std::move(out_);
  }

 private:
  SetTest mends() {
    return [this](const std::vector<int>& nodes) -> Result<std::optional<bool>> {
      TENONNX_ASSIGN_OR_RETURN(const auto trial, trials_.keep(as_set(nodes)));
      return trial ? std::optional<bool>(trial->figures.passes) : std::nullopt;
    };
  }
  SetTest breaks() {
    return [this](const std::vector<int>& nodes) -> Result<std::optional<bool>> {
      TENONNX_ASSIGN_OR_RETURN(const auto trial, trials_.keep(trials_.without(as_set(nodes))));
      return trial ? std::optional<bool>(!trial->figures.passes) : std::nullopt;
    };
  }

  // A set that mends it, to begin with.
  Result<std::vector<int>> mending(const std::vector<int>& failing,
                                   const std::vector<std::set<int>>& halves) {
    if (!failing.empty()) {
      TENONNX_ASSIGN_OR_RETURN(const auto answer, mends()(failing));
      if (!answer) return ran_out();
      if (*answer) return failing;
      out_.notes.push_back(
          "keeping every node whose own error stands out at the reference does not bring the gate "
          "back: rounding of others is a part of it");
    }
    // The smaller side of a cut that mends it, with what fails first.
    const std::set<int>* smallest = nullptr;
    for (const std::set<int>& half : halves)
      if (smallest == nullptr || half.size() < smallest->size()) smallest = &half;
    if (smallest == nullptr) {
      out_.notes.push_back(
          "no set to keep at the reference is known: neither the nodes that stand out nor a side "
          "of "
          "a cut brings the gate back");
      return std::vector<int>();
    }
    std::vector<int> start;
    for (const int n : failing)
      if (smallest->contains(n)) start.push_back(n);
    for (const int n : *smallest)
      if (std::find(start.begin(), start.end(), n) == start.end()) start.push_back(n);
    return start;
  }

  std::vector<int> ran_out() {
    std::string note = fmt::format(
        "the budget of {} trials was used up before a set was found; give a larger --budget{}",
        trials_.budget(),
        trials_.on_disk() ? ", with --resume so that nothing is tried twice" : "");
    if (std::find(out_.notes.begin(), out_.notes.end(), note) == out_.notes.end())
      out_.notes.push_back(std::move(note));
    return {};
  }

  Result<NodeSet> described(const MinimalSet& found, std::string by, bool keep) {
    NodeSet out;
    out.indices = found.set;
    std::sort(out.indices.begin(), out.indices.end());
    out.minimal = found.minimal;
    out.by = std::move(by);
    for (const int n : out.indices)
      out.nodes.push_back(node_label(trials_.index().graph().node(n)));
    const std::set<int> nodes = as_set(found.set);
    TENONNX_ASSIGN_OR_RETURN(const auto trial, trials_.keep(keep ? nodes : trials_.without(nodes)));
    if (trial) out.trial = *trial;
    if (!found.minimal) ran_out();
    return out;
  }

  // Of what mends it: which of it alone on the device breaks the task?
  Status find_breaking(const std::vector<int>& kept) {
    TENONNX_ASSIGN_OR_RETURN(const auto answer, breaks()(kept));
    if (!answer) {
      ran_out();
      return {};
    }
    if (!*answer) {
      out_.notes.push_back(
          "these nodes alone on the device, all others at the reference, do not break the gate: "
          "the "
          "fault needs what the device makes before them, as a value that only its rounding or its "
          "layout gives");
      return {};
    }
    TENONNX_ASSIGN_OR_RETURN(MinimalSet found, minimize_set(kept, breaks()));
    TENONNX_ASSIGN_OR_RETURN(out_.breaks, described(found, "node", false));
    return {};
  }

  // Coarser sets that mend it too: all nodes of the operators, all nodes of the blocks.
  Status add_alternatives() {
    const GraphIndex& index = trials_.index();
    std::set<std::string> operators, scopes;
    for (const int n : out_.keep->indices) {
      operators.insert(index.graph().node(n).op_type());
      if (const BlockName name = block_name(index, n); !name.scope.empty())
        scopes.insert(name.scope);
    }
    std::set<int> by_operator, by_block;
    for (const int n : trials_.nodes()) {
      if (operators.contains(index.graph().node(n).op_type())) by_operator.insert(n);
      if (scopes.contains(block_name(index, n).scope)) by_block.insert(n);
    }
    TENONNX_RETURN_IF_ERROR(
        add_alternative(by_operator, fmt::format("operator {}", fmt::join(operators, ", "))));
    if (!scopes.empty())
      TENONNX_RETURN_IF_ERROR(
          add_alternative(by_block, fmt::format("block '{}'", fmt::join(scopes, "', '"))));
    return {};
  }

  Status add_alternative(const std::set<int>& nodes, const std::string& by) {
    if (nodes == as_set(out_.keep->indices)) return {};
    TENONNX_ASSIGN_OR_RETURN(const auto trial, trials_.keep(nodes));
    if (!trial || !trial->figures.passes) return {};
    NodeSet set;
    set.by = by;
    set.trial = *trial;
    for (const int n : nodes) {
      set.indices.push_back(n);
      set.nodes.push_back(node_label(trials_.index().graph().node(n)));
    }
    out_.alternatives.push_back(std::move(set));
    return {};
  }

  Trials& trials_;
  FoundSets out_;
};

}  // namespace

Result<FoundSets> find_node_sets(Trials& trials, const std::vector<int>& failing,
                                 const std::vector<std::set<int>>& halves) {
  return SetFinder(trials).run(failing, halves);
}

}  // namespace tenonnx
