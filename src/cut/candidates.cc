// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "cut/candidates.h"

#include <algorithm>
#include <limits>

#include "cut/data_flow.h"
#include "cut/separators.h"
#include "cut/sites.h"

namespace tenonnx {
namespace {

std::int64_t cost(const CutCandidate& candidate) {
  return candidate.cut.bytes >= 0 ? candidate.cut.bytes : std::numeric_limits<std::int64_t>::max();
}

bool same_behind(const CutCandidate& a, const CutCandidate& b) {
  return a.cut.sampling_behind == b.cut.sampling_behind &&
         a.cut.selections_behind == b.cut.selections_behind;
}

bool beats(const CutCandidate& a, const CutCandidate& b) {
  if (!same_behind(a, b) || a.cut.tensors.size() > b.cut.tensors.size() || cost(a) > cost(b))
    return false;
  return a.cut.tensors.size() < b.cut.tensors.size() || cost(a) < cost(b) ||
         a.cut.nodes_behind < b.cut.nodes_behind;
}

// Of a chain of equal boundaries (an activation, a cast) the last stays.
std::vector<CutCandidate> local_minima(std::vector<CutCandidate> all) {
  std::vector<CutCandidate> runs;
  for (CutCandidate& next : all) {
    const bool same = !runs.empty() && cost(runs.back()) == cost(next) &&
                      runs.back().cut.tensors.size() == next.cut.tensors.size() &&
                      same_behind(runs.back(), next);
    if (same)
      runs.back() = std::move(next);
    else
      runs.push_back(std::move(next));
  }
  std::vector<CutCandidate> out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto less = [&](std::size_t other) { return cost(runs[other]) < cost(runs[i]); };
    if ((i > 0 && less(i - 1)) || (i + 1 < runs.size() && less(i + 1))) continue;
    out.push_back(runs[i]);
  }
  return out;
}

std::vector<std::string> names_of(const CutDescription& cut) {
  std::vector<std::string> out;
  for (const TensorInfo& info : cut.tensors) out.push_back(info.name);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

CutCandidates find_candidates(const Model& model, const CandidateOptions& options) {
  const TensorInfos infos = infer_shapes(model);
  const DataFlow flow(model);
  const std::vector<SamplingSite> sites = sampling_sites(flow);
  CutCandidates out;
  std::vector<CutCandidate> found;
  const auto described = [&](const std::vector<std::string>& names) {
    CutCandidate candidate;
    const Sides sides = sides_of(flow.index(), names);
    candidate.cut = describe_cut(flow, sites, infos, names, sides);
    return std::pair(candidate, sides.separates() && candidate.cut.layers_behind > 0);
  };
  for (const TensorIds& ids : layered_separators(flow, options.max_width)) {
    std::vector<std::string> names;
    for (const int id : ids) names.push_back(flow.name(id));
    auto [candidate, good] = described(names);
    good |= sides_of(flow.index(), names).separates() && candidate.cut.selections_behind > 0;
    if (good) found.push_back(std::move(candidate));
  }
  found = local_minima(std::move(found));
  for (const CutCandidate& candidate : found) {
    if (std::none_of(found.begin(), found.end(),
                     [&](const CutCandidate& other) { return beats(other, candidate); }))
      out.candidates.push_back(candidate);
  }
  if (out.candidates.size() > options.max_count) {
    std::stable_sort(
        out.candidates.begin(), out.candidates.end(),
        [](const CutCandidate& a, const CutCandidate& b) { return cost(a) < cost(b); });
    out.candidates.resize(options.max_count);
  }

  const AutoCut automatic = find_auto_cut(model, infos);
  out.why_none = automatic.why_none;
  const auto mark = [&](const FoundCut& cut, const char* text) {
    CutCandidate candidate = described(cut.tensors).first;
    candidate.mark = text;
    candidate.kind = cut.kind;
    candidate.reason = cut.reason;
    const auto names = names_of(candidate.cut);
    std::erase_if(out.candidates,
                  [&](const CutCandidate& other) { return names_of(other.cut) == names; });
    out.candidates.push_back(std::move(candidate));
  };
  for (const FoundCut& cut : automatic.alternatives) mark(cut, "alternative");
  if (automatic.cut) mark(*automatic.cut, "auto");
  std::stable_sort(out.candidates.begin(), out.candidates.end(),
                   [](const CutCandidate& a, const CutCandidate& b) {
                     return a.cut.nodes_behind > b.cut.nodes_behind;
                   });
  return out;
}

DescribedCut find_described_cut(const Model& model) {
  const TensorInfos infos = infer_shapes(model);
  DescribedCut out;
  out.found = find_auto_cut(model, infos);
  if (!out.found.cut) return out;
  const DataFlow flow(model);
  const std::vector<std::string>& names = out.found.cut->tensors;
  out.description =
      describe_cut(flow, sampling_sites(flow), infos, names, sides_of(flow.index(), names));
  return out;
}

}  // namespace tenonnx
