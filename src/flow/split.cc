// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/split.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <system_error>

#include "base/status.h"
#include "base/wording.h"
#include "flow/cuts.h"
#include "model/extract.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

Result<SplitReport::Part> save_part(const Model& model, const std::string& name,
                                    const fs::path& directory, bool keep_metadata) {
  SplitReport::Part part;
  part.name = name;
  part.file = name + ".onnx";
  const fs::path path = directory / part.file;
  SaveOptions save;
  save.keep_metadata = keep_metadata;
  TENONNX_RETURN_IF_ERROR(model.save(path, save));
  TENONNX_ASSIGN_OR_RETURN(part.sha256, sha256_file(path));
  std::error_code error;
  part.bytes = fs::file_size(path, error);
  if (error) return Io("cannot read '{}': {}", path.string(), error.message());
  part.nodes = static_cast<std::size_t>(model.proto().graph().node_size());
  part.inputs = model.inputs();
  part.outputs = model.outputs();
  return part;
}

Status is_split(const fs::path& directory) {
  std::error_code error;
  const bool recorded = fs::is_regular_file(directory / "split.json", error);
  return holds_only(directory, "what 'split' writes", [&](const std::string& name) {
    // Large parts have their weights beside them, in files named after the part's.
    return recorded && (name == "split.json" || name.starts_with("encoder.onnx") ||
                        name.starts_with("decoder.onnx"));
  });
}

// Other characters are legal in ONNX and break what takes names as file names or identifiers.
Status check_prefix(const std::string& prefix) {
  const bool good = !prefix.empty() && std::all_of(prefix.begin(), prefix.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./").find(c) != std::string_view::npos;
  });
  if (good) return {};
  return InvalidArgument(
      "the name prefix '{}' of boundary tensors (--name-prefix) must be letters, digits, '_', '-', "
      "'.' and '/', at least one; the default is 'feature'",
      prefix);
}

bool has_work(const Model& model) {
  const auto& nodes = model.proto().graph().node();
  return std::any_of(nodes.begin(), nodes.end(), [](const onnx::NodeProto& node) {
    return node.op_type() != "Identity" || !node.domain().empty();
  });
}

}  // namespace

Result<CutModel> cut_model(const Model& model, const std::vector<std::string>& at,
                           const std::string& prefix) {
  if (at.empty()) return InvalidArgument("a cut needs at least one tensor (--at T0,T1,...)");
  TENONNX_RETURN_IF_ERROR(check_prefix(prefix));
  std::vector<std::string> cut;
  SplitOptions options;
  for (const std::string& name : at) {
    TENONNX_ASSIGN_OR_RETURN(std::string tensor, resolve_tensor(model, name));
    if (!options.renames.emplace(tensor, fmt::format("{}_{}", prefix, cut.size())).second)
      return InvalidArgument("the cut names '{}' twice", tensor);
    cut.push_back(std::move(tensor));
  }
  TENONNX_ASSIGN_OR_RETURN(SplitModel parts, split(model, cut, options));
  if (!has_work(parts.second))
    return InvalidArgument(
        "the cut ['{}'] leaves nothing behind it but Identity; the second part would compute "
        "nothing: cut further up",
        fmt::join(cut, "', '"));
  CutModel out{std::move(parts.first), std::move(parts.second), {}};
  const std::vector<TensorInfo> outputs = out.encoder.outputs();
  for (const std::string& source : cut) {
    BoundaryTensor boundary;
    boundary.name = options.renames.at(source);
    boundary.source = source;
    const auto found = std::find_if(outputs.begin(), outputs.end(), [&](const TensorInfo& info) {
      return info.name == boundary.name;
    });
    if (found == outputs.end())
      return Internal("the first part of the cut lacks its output '{}'", boundary.name);
    boundary.info = *found;
    const std::int64_t count = element_count(boundary.info.shape);
    if (count > 0) boundary.bytes = static_cast<std::uint64_t>(count) * size_of(found->dtype);
    out.boundaries.push_back(std::move(boundary));
  }
  return out;
}

Result<SplitReport> split_file(const SplitRequest& request) {
  TENONNX_ASSIGN_OR_RETURN(Model model, Model::load(request.model));
  TENONNX_RETURN_IF_ERROR(prepare_graph(model, request.preparation).status());
  SplitReport report;
  std::vector<std::string> at = request.at;
  if (is_automatic(at)) {
    auto found = automatic_cut(model);
    if (!found.ok()) return found.status().at(request.model.filename().string());
    at = found->found.cut->tensors;
    report.kind = found->found.cut->kind;
    report.reason = found->found.cut->reason;
    for (const FoundCut& other : found->found.alternatives)
      report.alternatives.push_back(other.tensors);
  }
  TENONNX_ASSIGN_OR_RETURN(const CutModel cut, cut_model(model, at, request.name_prefix));
  std::vector<std::string> names;
  for (const BoundaryTensor& boundary : cut.boundaries) names.push_back(boundary.source);
  report.cut = describe_named_cut(model, names);
  report.source_model = request.model.filename().string();
  report.source_sha256 = model.sha256();
  report.boundaries = cut.boundaries;
  TENONNX_ASSIGN_OR_RETURN(auto staged,
                           StagedDirectory::create(request.out, request.force, is_split));
  for (const auto& [name, part] :
       {std::pair<const char*, const Model*>{"encoder", &cut.encoder}, {"decoder", &cut.decoder}}) {
    TENONNX_ASSIGN_OR_RETURN(SplitReport::Part saved,
                             save_part(*part, name, staged.path(), request.keep_metadata));
    report.parts.push_back(std::move(saved));
  }
  TENONNX_RETURN_IF_ERROR(write_json_file(staged.path() / "split.json", to_json(report)));
  TENONNX_RETURN_IF_ERROR(staged.publish());
  return report;
}

Json to_json(const std::vector<TensorInfo>& tensors) {
  Json out = Json::array();
  for (const TensorInfo& tensor : tensors)
    out.push_back(
        {{"name", tensor.name}, {"dtype", to_string(tensor.dtype)}, {"shape", tensor.shape}});
  return out;
}

Json to_json(const std::vector<BoundaryTensor>& tensors) {
  Json boundaries = Json::array();
  for (const BoundaryTensor& boundary : tensors)
    boundaries.push_back({{"name", boundary.name},
                          {"source", boundary.source},
                          {"dtype", to_string(boundary.info.dtype)},
                          {"shape", boundary.info.shape},
                          {"bytes", boundary.bytes}});
  return boundaries;
}

Json to_json(const SplitReport& report) {
  Json parts = Json::array();
  for (const SplitReport::Part& part : report.parts)
    parts.push_back({{"name", part.name},
                     {"file", part.file},
                     {"sha256", part.sha256},
                     {"bytes", part.bytes},
                     {"nodes", part.nodes},
                     {"inputs", to_json(part.inputs)},
                     {"outputs", to_json(part.outputs)}});
  Json cut = to_json(report.cut);
  cut["origin"] = report.kind.empty() ? "named" : kAutomaticCut;
  cut["kind"] = report.kind;
  cut["reason"] = report.reason;
  cut["alternatives"] = report.alternatives;
  return {{"schema_version", 1},
          {"source_model", {{"name", report.source_model}, {"sha256", report.source_sha256}}},
          {"parts", std::move(parts)},
          {"boundaries", to_json(report.boundaries)},
          {"cut", std::move(cut)}};
}

std::string spell_bytes(std::uint64_t bytes) {
  if (bytes >= 1u << 20) return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1u << 20));
  if (bytes >= 1u << 10) return fmt::format("{:.0f} KiB", static_cast<double>(bytes) / (1u << 10));
  return counted(bytes, "byte");
}

std::string describe(const SplitReport& report) {
  std::string out;
  if (!report.kind.empty())
    out += fmt::format("automatic cut: {}: {}\n\n", report.kind, report.reason);
  for (const SplitReport::Part& part : report.parts)
    out += fmt::format("{:<9} {:>5} nodes  {:>9}  {}\n", part.name, part.nodes,
                       spell_bytes(part.bytes), part.file);
  out += "\nboundary\n";
  for (const BoundaryTensor& boundary : report.boundaries)
    out +=
        fmt::format("  {:<10} {} {:<18} {:>9}  {}\n", boundary.name, to_string(boundary.info.dtype),
                    to_string(boundary.info.shape), spell_bytes(boundary.bytes), boundary.source);
  out += fmt::format("  {}\n", describe(report.cut));
  for (const std::vector<std::string>& other : report.alternatives)
    out += fmt::format("\nalso possible: --at {}\n", fmt::join(other, ","));
  return out;
}

}  // namespace tenonnx
