// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/minimal_case.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "base/npy.h"
#include "base/status.h"
#include "model/extract.h"
#include "numerics/decoupled.h"
#include "numerics/piece.h"
#include "ort/capture.h"

namespace tenonnx {
namespace {

Status may_replace(const std::filesystem::path& directory) {
  static const std::set<std::string> kOwn = {
      "model.onnx",   "model.onnx.data", "reference.onnx", "reference.onnx.data", "inputs.npz",
      "expected.npz", "got.npz",         "case.json",      "README.txt"};
  return holds_only(directory, "a minimal case",
                    [](const std::string& relative) { return kOwn.contains(relative); });
}

std::string readme(const LocateResult& result, const Suspect& suspect, bool two_models,
                   bool recorded) {
  // A recording holds tensors of the whole model, not of a piece.
  const std::string ref = recorded ? "cpu" : result.ref;
  std::string text =
      fmt::format("{} of {} on '{}' does not give what {} on '{}' gives.\n\n", suspect.node,
                  result.candidate, result.on, two_models ? result.reference : "it", result.ref);
  text += fmt::format("model.onnx      the node{} alone, with its constants\n",
                      suspect.culprit >= 0 ? " and the one before it" : "");
  if (two_models) text += "reference.onnx  the same piece of the reference\n";
  text += "inputs.npz      what it is fed with: the reference's tensors\n";
  text += "expected.npz    what the reference makes of it\n";
  text += fmt::format("got.npz         what '{}' made of it\n\n", result.on);
  text += fmt::format("kind: {} ({})\n\nTo see it:\n\n", to_string(suspect.kind.kind),
                      suspect.kind.text);
  text += fmt::format("  tenonnx compare {}model.onnx --inputs inputs.npz --ref {} --on {}\n\n",
                      two_models ? "reference.onnx " : "", ref, result.on);
  text += "Versions:\n\n";
  for (const auto& [name, version] : result.versions)
    text += fmt::format("  {} {}\n", name, version);
  return text;
}

// The reference's piece under the candidate's names, taking what the candidate's takes.
Result<Model> reference_piece(const CompareSetup& setup, const FedTensors& fed,
                              const std::vector<std::string>& inputs, const TensorErrors& at) {
  ExtractOptions options;
  std::vector<std::string> ours;
  const auto add = [&](const std::string& theirs, const std::string& own) {
    if (theirs != own) options.renames.emplace(own, theirs);
    return own;
  };
  for (const std::string& name : inputs)
    ours.push_back(add(name, fed.contains(name) ? fed.at(name) : name));
  return extract(setup.reference, ours, {add(at.plan.candidate, at.plan.tensor.name)}, options);
}

}  // namespace

Status check_minimal_directory(const std::filesystem::path& directory) {
  return StagedDirectory::create(directory, true, may_replace).status();
}

Status write_minimal_case(const std::filesystem::path& directory, const CompareSetup& setup,
                          const ErrorTable& table, const LocateResult& result,
                          const LoadOptions& load) {
  const auto suspect = std::find_if(result.suspects.begin(), result.suspects.end(),
                                    [](const Suspect& one) { return one.candidate_node >= 0; });
  if (suspect == result.suspects.end()) return {};
  const FedTensors fed = shared_tensors(table);
  std::set<std::string, std::less<>> shared, ours;  // in the candidate, in the reference
  for (const auto& [theirs, own] : fed) {
    shared.insert(theirs);
    ours.insert(own);
  }
  const TensorErrors* at = nullptr;
  for (const TensorErrors& one : table.tensors)
    if (one.plan.tensor.name == suspect->tensor) at = &one;
  if (at == nullptr) return {};
  const GraphIndex index(setup.candidate().proto().graph());
  Piece piece = piece_between(index, at->plan.candidate, shared);
  if (suspect->culprit >= 0) {
    std::set<int> nodes(piece.nodes.begin(), piece.nodes.end());
    nodes.insert(suspect->culprit);
    piece = make_piece(index, {nodes.begin(), nodes.end()}, piece.label);
    piece.outputs = {at->plan.candidate};
  }
  std::optional<Model> other;
  if (setup.two_models) {
    // The reference's piece may take more than the candidate's, or less: both take all.
    const GraphIndex reference_index(setup.reference.proto().graph());
    for (const std::string& name :
         piece_between(reference_index, at->plan.tensor.name, ours).inputs) {
      const auto known = std::find_if(fed.begin(), fed.end(),
                                      [&](const auto& pair) { return pair.second == name; });
      const std::string theirs = known == fed.end() ? name : known->first;
      if (std::find(piece.inputs.begin(), piece.inputs.end(), theirs) == piece.inputs.end())
        piece.inputs.push_back(theirs);
    }
    TENONNX_ASSIGN_OR_RETURN(other, reference_piece(setup, fed, piece.inputs, *at));
  }
  TENONNX_ASSIGN_OR_RETURN(const Model model, cut_out(setup.candidate(), piece));

  std::set<std::string> names = {at->plan.tensor.name};
  for (const std::string& name : piece.inputs)
    names.insert(fed.contains(name) ? fed.at(name) : name);
  ReferenceTensors reference(*setup.ref, setup.reference, setup.inputs, load);
  TENONNX_ASSIGN_OR_RETURN(const std::size_t position,
                           reference.position_of(at->own ? at->own->worst_input : ""));
  TENONNX_ASSIGN_OR_RETURN(const TensorMap taken, reference.get(names, position));
  TensorMap inputs;
  for (const std::string& name : piece.inputs)
    inputs.emplace(name, taken.at(fed.contains(name) ? fed.at(name) : name));
  TENONNX_ASSIGN_OR_RETURN(const auto graph, setup.on->load(model, load));
  TENONNX_ASSIGN_OR_RETURN(const TensorMap got, graph->run(inputs_of(*graph, inputs)));

  TENONNX_ASSIGN_OR_RETURN(StagedDirectory staged,
                           StagedDirectory::create(directory, true, may_replace));
  TENONNX_RETURN_IF_ERROR(model.save(staged.path() / "model.onnx"));
  if (other) TENONNX_RETURN_IF_ERROR(other->save(staged.path() / "reference.onnx"));
  TENONNX_RETURN_IF_ERROR(write_npz(staged.path() / "inputs.npz", inputs));
  TENONNX_RETURN_IF_ERROR(write_npz(staged.path() / "expected.npz",
                                    {{at->plan.candidate, taken.at(at->plan.tensor.name)}}));
  TENONNX_RETURN_IF_ERROR(write_npz(staged.path() / "got.npz", got));
  Json versions = Json::object();
  for (const auto& [name, version] : result.versions) versions[name] = version;
  TENONNX_RETURN_IF_ERROR(write_json_file(staged.path() / "case.json",
                                          {{"node", suspect->node},
                                           {"tensor", suspect->tensor},
                                           {"kind", to_string(suspect->kind.kind)},
                                           {"finding", suspect->kind.text},
                                           {"own_relative_l2", json_number(suspect->own)},
                                           {"floor_relative_l2", json_number(suspect->own_floor)},
                                           {"ref", result.ref},
                                           {"on", result.on},
                                           {"source_model", result.candidate},
                                           {"source_sha256", result.candidate_sha256},
                                           {"input", setup.inputs.description()},
                                           {"versions", std::move(versions)}}));
  TENONNX_ASSIGN_OR_RETURN(const auto recorded, setup.ref->recorded_tensors(setup.source));
  TENONNX_RETURN_IF_ERROR(
      write_file_atomic(staged.path() / "README.txt",
                        readme(result, *suspect, setup.two_models, recorded.has_value())));
  return staged.publish();
}

}  // namespace tenonnx
