// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/cross_split.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/status.h"
#include "base/wording.h"
#include "cut/candidates.h"
#include "numerics/piece.h"

namespace tenonnx {
namespace {

struct Chosen {
  std::vector<std::string> tensors;
  std::string label;
  std::set<int> before;
};

// What the tensors of a cut are made of, without what follows from constants alone.
std::set<int> nodes_before(const GraphIndex& index, const std::vector<std::string>& cut,
                           const std::set<int>& computed) {
  std::set<int> out = nodes_that_make(index, cut, [](std::string_view) { return false; });
  std::erase_if(out, [&](int n) { return !computed.contains(n); });
  return out;
}

std::string size_of_cut(const CutDescription& cut) {
  const std::string count = counted(cut.tensors.size(), "tensor");
  return cut.bytes < 0
             ? count
             : fmt::format("{}, {:.0f} KiB", count, static_cast<double>(cut.bytes) / 1024);
}

// The automatic cut and its alternatives, then those that halve the largest gaps.
std::vector<Chosen> choose(const Trials& trials, const Model& candidate,
                           const std::vector<std::string>& named, std::size_t max_cuts) {
  std::vector<Chosen> must, may;
  const auto add = [&](std::vector<Chosen>& to, std::vector<std::string> tensors,
                       std::string label) {
    Chosen one{std::move(tensors), std::move(label), {}};
    one.before = nodes_before(trials.index(), one.tensors, trials.nodes());
    if (one.before.empty() || one.before.size() == trials.nodes().size()) return;
    for (const auto* list : {&must, &may})
      for (const Chosen& other : *list)
        if (other.before == one.before) return;
    to.push_back(std::move(one));
  };
  if (!named.empty()) add(must, named, "--cut");
  const CutCandidates found = find_candidates(candidate);
  for (const CutCandidate& one : found.candidates) {
    std::vector<std::string> tensors;
    for (const TensorInfo& info : one.cut.tensors) tensors.push_back(info.name);
    add(one.mark.empty() ? may : must, std::move(tensors),
        one.mark.empty() ? size_of_cut(one.cut)
                         : fmt::format("{} ({})", one.mark, size_of_cut(one.cut)));
  }
  while (must.size() < max_cuts && !may.empty()) {
    // Of the others the one that is farthest from all that are chosen and from both ends.
    const auto distance = [&](const Chosen& one) {
      std::size_t nearest = std::min(one.before.size(), trials.nodes().size() - one.before.size());
      for (const Chosen& other : must) {
        const std::size_t a = one.before.size(), b = other.before.size();
        nearest = std::min(nearest, a > b ? a - b : b - a);
      }
      return nearest;
    };
    const auto next = std::max_element(may.begin(), may.end(), [&](const auto& a, const auto& b) {
      return distance(a) < distance(b);
    });
    must.push_back(std::move(*next));
    may.erase(next);
  }
  if (must.size() > max_cuts) must.resize(max_cuts);
  std::stable_sort(must.begin(), must.end(),
                   [](const auto& a, const auto& b) { return a.before.size() < b.before.size(); });
  return must;
}

bool passes(const std::optional<Trial>& trial) { return trial && trial->figures.passes; }
bool fails(const std::optional<Trial>& trial) { return trial && !trial->figures.passes; }

std::string sentence_of(const CrossSplit& one) {
  if (!one.device_then_reference || !one.reference_then_device) return "";
  const bool first = fails(one.device_then_reference), second = fails(one.reference_then_device);
  if (first && second) return "either side alone on the device is enough to produce the failure";
  if (second) return "what lies behind is enough to produce the failure, what lies before is not";
  if (first) return "what lies before is enough to produce the failure, what lies behind is not";
  return "neither side alone produces the failure; it takes both";
}

// "cuts 1, 2, 3: what lies behind is enough ...", and the cut that mends it.
std::vector<std::string> sentences_of(const std::vector<CrossSplit>& cuts) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  const CrossSplit* best = nullptr;
  std::size_t best_number = 0;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const std::string text = sentence_of(cuts[i]);
    if (text.empty()) continue;
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& group) { return group.first == text; });
    if (found == groups.end()) found = groups.insert(found, {text, {}});
    found->second.push_back(fmt::format("{}", i + 1));
    if (passes(cuts[i].device_then_reference)) best = &cuts[i], best_number = i + 1;
  }
  std::vector<std::string> out;
  for (const auto& [text, numbers] : groups)
    out.push_back(fmt::format("cut{} {}: {}", numbers.size() == 1 ? "" : "s",
                              fmt::join(numbers, ", "), text));
  if (best != nullptr)
    out.push_back(fmt::format(
        "cut {} mends it with the most nodes on the device, what lies behind at the reference: "
        "deploy --cut {}",
        best_number, fmt::join(best->tensors, ",")));
  return out;
}

}  // namespace

Result<CrossSplits> cross_splits(Trials& trials, const Model& candidate,
                                 const std::vector<std::string>& named, std::size_t max_cuts) {
  CrossSplits out;
  for (Chosen& chosen : choose(trials, candidate, named, max_cuts)) {
    CrossSplit one;
    one.label = chosen.label;
    one.tensors = chosen.tensors;
    one.nodes_before = chosen.before.size();
    const std::set<int> behind = trials.without(chosen.before);
    one.nodes_behind = behind.size();
    for (const std::string& tensor : one.tensors)
      if (!trials.graphs().both_have(tensor))
        one.not_identical = fmt::format("the reference has no counterpart of '{}'", tensor);
    if (one.not_identical.empty()) {
      TENONNX_ASSIGN_OR_RETURN(one.not_identical, trials.differs_at_reference(chosen.before));
    }
    if (one.not_identical.empty()) {
      TENONNX_ASSIGN_OR_RETURN(one.device_then_reference, trials.keep(behind, true));
      TENONNX_ASSIGN_OR_RETURN(one.reference_then_device, trials.keep(chosen.before, true));
      if (passes(one.device_then_reference)) out.halves.push_back(behind);
      if (passes(one.reference_then_device)) out.halves.push_back(chosen.before);
    }
    out.cuts.push_back(std::move(one));
    out.before.push_back(std::move(chosen.before));
  }
  out.sentences = sentences_of(out.cuts);
  return out;
}

std::vector<WaterfallBar> waterfall(const CrossSplits& splits, const Trial& whole,
                                    const std::vector<Suspect>& suspects,
                                    const GraphIndex& candidate) {
  std::vector<WaterfallBar> out;
  std::string from = "input";
  std::set<int> before;
  double scores = whole.figures.scores_error, boxes = whole.figures.boxes_error;
  const auto add = [&](const std::string& to, const std::set<int>& until, double next_scores,
                       double next_boxes) {
    WaterfallBar bar{from, to, scores - next_scores, boxes - next_boxes, "rounding"};
    for (const Suspect& suspect : suspects) {
      const int node = suspect.place();
      if (node < 0 || before.contains(node) || !until.contains(node)) continue;
      const std::string& op = candidate.graph().node(node).op_type();
      if (suspect.kind.kind == FaultKind::kRounding) continue;
      bar.name = suspect.kind.kind == FaultKind::kSelection                   ? "selection"
                 : suspect.kind.kind == FaultKind::kLayout                    ? "layout"
                 : suspect.kind.kind == FaultKind::kPrecision || op == "Cast" ? "cast"
                                                                              : "kernel";
      break;
    }
    // Nothing of its own, and less than nothing added: what came before is carried on.
    if (bar.name == "rounding" && (bar.scores < 0 || bar.boxes < 0)) bar.name = "propagation";
    out.push_back(std::move(bar));
    from = to;
    before = until;
    scores = next_scores;
    boxes = next_boxes;
  };
  for (std::size_t i = 0; i < splits.cuts.size(); ++i) {
    const CrossSplit& cut = splits.cuts[i];
    // A cut that does not lie behind the last one is no step further.
    if (!cut.reference_then_device ||
        !std::includes(splits.before[i].begin(), splits.before[i].end(), before.begin(),
                       before.end()))
      continue;
    add(fmt::format("cut {}", i + 1), splits.before[i],
        cut.reference_then_device->figures.scores_error,
        cut.reference_then_device->figures.boxes_error);
  }
  std::set<int> all;
  for (int n = 0; n < candidate.graph().node_size(); ++n) all.insert(n);
  add("output", all, 0, 0);
  return out;
}

}  // namespace tenonnx
