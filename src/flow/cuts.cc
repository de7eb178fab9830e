// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/cuts.h"

#include <algorithm>
#include <set>

#include "base/status.h"
#include "base/wording.h"
#include "cut/data_flow.h"
#include "cut/sites.h"
#include "flow/result_text.h"
#include "flow/split.h"

namespace tenonnx {
namespace {

// "1,612,800"
std::string grouped(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string spell_size(std::int64_t bytes) {
  return bytes < 0 ? "not known" : spell_bytes(static_cast<std::uint64_t>(bytes));
}

constexpr std::size_t kLeastName = 12;  // of them for a name, whatever the figures take

Json description_json(const CutCandidate& candidate) {
  Json out = to_json(candidate.cut);
  out["mark"] = candidate.mark;
  out["kind"] = candidate.kind;
  out["reason"] = candidate.reason;
  return out;
}

}  // namespace

bool is_automatic(const std::vector<std::string>& cut) {
  return cut.size() == 1 && cut[0] == kAutomaticCut;
}

Result<DescribedCut> automatic_cut(const Model& prepared) {
  DescribedCut out = find_described_cut(prepared);
  if (!out.found.cut)
    return NotFound(
        "no automatic cut: {}; 'tenonnx split MODEL --list' shows where the graph is narrow; name "
        "the tensors",
        out.found.why_none);
  return out;
}

CutDescription describe_named_cut(const Model& prepared, const std::vector<std::string>& cut) {
  const DataFlow flow(prepared);
  return describe_cut(flow, sampling_sites(flow), infer_shapes(prepared, cut), cut,
                      sides_of(flow.index(), cut));
}

Result<CutList> list_cuts(const CutListRequest& request) {
  TENONNX_ASSIGN_OR_RETURN(Model model, Model::load(request.model));
  TENONNX_RETURN_IF_ERROR(prepare_graph(model, request.preparation).status());
  CutList out;
  out.model = request.model.filename().string();
  out.sha256 = model.sha256();
  out.found = find_candidates(model, request.options);
  return out;
}

Json to_json(const CutDescription& cut) {
  const auto or_null = [](std::int64_t value) { return value < 0 ? Json() : Json(value); };
  return {{"tensors", to_json(cut.tensors)},
          {"width", cut.tensors.size()},
          {"elements", or_null(cut.elements)},
          {"bytes", or_null(cut.bytes)},
          {"nodes_before", cut.nodes_before},
          {"nodes_behind", cut.nodes_behind},
          {"sampling_behind", cut.sampling_behind},
          {"selections_behind", cut.selections_behind},
          {"normalizations_behind", cut.normalizations_behind},
          {"layers_behind", cut.layers_behind}};
}

Json to_json(const CutList& list) {
  Json candidates = Json::array();
  for (const CutCandidate& candidate : list.found.candidates)
    candidates.push_back(description_json(candidate));
  return {{"schema_version", 1},
          {"model", list.model},
          {"sha256", list.sha256},
          {"candidates", std::move(candidates)},
          {"why_no_automatic_cut", list.found.why_none}};
}

std::string describe(const CutDescription& cut) {
  std::set<std::string> types;
  for (const TensorInfo& info : cut.tensors) types.insert(std::string(to_string(info.dtype)));
  const std::string size = cut.elements < 0
                               ? counted(cut.tensors.size(), "tensor") + " whose size is not known"
                               : fmt::format("{} {}, {} in {}", grouped(cut.elements),
                                             cut.elements == 1 ? "element" : "elements",
                                             spell_size(cut.bytes), fmt::join(types, " and "));
  return fmt::format("{}; behind it {}, {}, {}, {}", size,
                     counted(cut.sampling_behind, "sampling site"),
                     counted(cut.selections_behind, "selection"),
                     counted(cut.normalizations_behind, "normalisation"),
                     counted(cut.layers_behind, "layer with weights", "layers with weights"));
}

std::string describe(const CutList& list) {
  std::vector<std::vector<std::string>> rows = {
      {"", "width", "elements", "size", "before", "behind", "sampl", "select", "norm"}};
  std::string notes;
  for (const CutCandidate& candidate : list.found.candidates) {
    const CutDescription& cut = candidate.cut;
    rows.push_back(
        {candidate.mark == "alternative" ? "other" : candidate.mark,
         std::to_string(cut.tensors.size()), cut.elements < 0 ? "?" : grouped(cut.elements),
         cut.bytes < 0 ? "?" : spell_size(cut.bytes), std::to_string(cut.nodes_before),
         std::to_string(cut.nodes_behind), std::to_string(cut.sampling_behind),
         std::to_string(cut.selections_behind), std::to_string(cut.normalizations_behind)});
    if (candidate.mark.empty()) continue;
    notes += fmt::format("\n{}: {}: {}\n", candidate.mark == "auto" ? "auto" : "other",
                         candidate.kind, candidate.reason);
    for (const TensorInfo& info : cut.tensors)
      notes += fmt::format("  {} {:<18} {}\n", to_string(info.dtype),
                           info.has_rank ? to_string(info.shape) : "shape not known", info.name);
  }
  // The names get what is left of the line.
  const std::string figures = aligned(rows, "");
  std::size_t used = 0;
  for (std::size_t begin = 0, end; begin < figures.size(); begin = end + 1) {
    end = figures.find('\n', begin);
    used = std::max(used, end - begin);
  }
  const std::size_t width = kScreenColumns - std::min(used + 2, kScreenColumns - kLeastName);
  rows[0].emplace_back("tensors");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto& tensors = list.found.candidates[i - 1].cut.tensors;
    const std::string more = tensors.size() > 1 ? fmt::format(" +{}", tensors.size() - 1) : "";
    rows[i].push_back(shortened(tensors[0].name, width - more.size()) + more);
  }
  std::string out = list.found.candidates.empty()
                        ? "no place where few tensors separate the image from the outputs\n"
                        : aligned(rows, "");
  if (!list.found.why_none.empty())
    notes += fmt::format("\nno automatic cut: {}\n", list.found.why_none);
  return out + notes +
         "\nbefore, behind: nodes. Behind the cut: sampl(ing sites), select(ions), "
         "norm(alisations).\n"
         "All names: --json.\n";
}

}  // namespace tenonnx
