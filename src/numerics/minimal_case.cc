// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/minimal_case.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "base/npy.h"
#include "base/status.h"
#include "numerics/decoupled.h"
#include "numerics/piece.h"
#include "ort/capture.h"

namespace tenonnx {
namespace {

Status may_replace(const std::filesystem::path& directory) {
  static const std::set<std::string> kOwn = {"model.onnx",   "model.onnx.data", "inputs.npz",
                                             "expected.npz", "got.npz",         "case.json",
                                             "README.txt"};
  return holds_only(directory, "a minimal case",
                    [](const std::string& relative) { return kOwn.contains(relative); });
}

std::string readme(const LocateResult& result, const Suspect& suspect) {
  std::string text = fmt::format(
      "{} on '{}' does not give what '{}' gives.\n\nmodel.onnx    the node{} alone, with its "
      "constants\ninputs.npz    what it is fed with: the reference's tensors\nexpected.npz  what "
      "the "
      "reference makes of it\ngot.npz       what '{}' made of it\n\nkind: {} ({})\n\nTo see "
      "it:\n\n  "
      "tenonnx compare model.onnx --inputs inputs.npz --ref {} --on {}\n\nVersions:\n\n",
      suspect.node, result.on, result.ref, suspect.culprit >= 0 ? " and the one before it" : "",
      result.on, to_string(suspect.kind.kind), suspect.kind.text, result.ref, result.on);
  for (const auto& [name, version] : result.versions)
    text += fmt::format("  {} {}\n", name, version);
  return text;
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
  std::set<std::string> shared;
  FedTensors fed;
  const TensorErrors* at = nullptr;
  for (const TensorErrors& one : table.tensors) {
    if (one.plan.tensor.name == suspect->tensor) at = &one;
    if (one.plan.state != TensorState::kCompared || !one.plan.perm.empty()) continue;
    shared.insert(one.plan.candidate);
    fed.emplace(one.plan.candidate, one.plan.tensor.name);
  }
  if (at == nullptr) return {};
  const GraphIndex index(setup.candidate().proto().graph());
  Piece piece = piece_between(index, at->plan.candidate, shared);
  if (suspect->culprit >= 0) {
    std::set<int> nodes(piece.nodes.begin(), piece.nodes.end());
    nodes.insert(suspect->culprit);
    piece = make_piece(index, {nodes.begin(), nodes.end()}, piece.label);
    piece.outputs = {at->plan.candidate};
  }
  TENONNX_ASSIGN_OR_RETURN(const Model model, cut_out(setup.candidate(), piece));

  std::size_t position = 0;
  if (at->own)
    for (std::size_t n = 0; n < setup.inputs.size(); ++n) {
      TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, setup.inputs.load(n));
      if (input.name == at->own->worst_input) position = n;
    }
  std::set<std::string> names = {at->plan.tensor.name};
  for (const std::string& name : piece.inputs)
    names.insert(fed.contains(name) ? fed.at(name) : name);
  ReferenceTensors reference(*setup.ref, setup.reference, setup.inputs, load);
  TENONNX_ASSIGN_OR_RETURN(const TensorMap taken, reference.get(names, position));
  TensorMap inputs;
  for (const std::string& name : piece.inputs)
    inputs.emplace(name, taken.at(fed.contains(name) ? fed.at(name) : name));
  TENONNX_ASSIGN_OR_RETURN(const auto graph, setup.on->load(model, load));
  TENONNX_ASSIGN_OR_RETURN(const TensorMap got, graph->run(inputs_of(*graph, inputs)));

  TENONNX_ASSIGN_OR_RETURN(StagedDirectory staged,
                           StagedDirectory::create(directory, true, may_replace));
  TENONNX_RETURN_IF_ERROR(model.save(staged.path() / "model.onnx"));
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
  TENONNX_RETURN_IF_ERROR(
      write_file_atomic(staged.path() / "README.txt", readme(result, *suspect)));
  return staged.publish();
}

}  // namespace tenonnx
