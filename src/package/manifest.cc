// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The manifest as JSON, both ways. Reading is strict: a field that is missing, unknown or of
// another type is an error, as a misspelt field that is ignored would be a check that is not made.
#include "package/manifest.h"

#include "base/status.h"
#include "contract/contract.h"

namespace tenonnx {
namespace {

Json to_json(const TensorInfo& tensor) {
  return {{"name", tensor.name}, {"dtype", to_string(tensor.dtype)}, {"shape", tensor.shape}};
}

Json to_json(const std::vector<TensorInfo>& tensors) {
  Json out = Json::array();
  for (const TensorInfo& tensor : tensors) out.push_back(to_json(tensor));
  return out;
}

// Reads an array through `read`, an object at a time.
template <typename T, typename Read>
Result<std::vector<T>> read_array(const JsonReader& reader, std::string_view key, Read read) {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader array, reader.at(key));
  TENONNX_ASSIGN_OR_RETURN(const std::vector<JsonReader> items, array.items());
  std::vector<T> out;
  out.reserve(items.size());
  for (const JsonReader& item : items) {
    TENONNX_ASSIGN_OR_RETURN(T value, read(item));
    out.push_back(std::move(value));
  }
  return out;
}

Result<TensorInfo> tensor_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only({"name", "dtype", "shape"}));
  TensorInfo tensor;
  TENONNX_ASSIGN_OR_RETURN(tensor.name, reader.string("name"));
  TENONNX_ASSIGN_OR_RETURN(const std::string dtype, reader.string("dtype"));
  const Result<DType> parsed = dtype_from_string(dtype);
  if (!parsed.ok()) return DataLoss("{}/dtype: {}", reader.where(), parsed.status().message());
  tensor.dtype = *parsed;
  TENONNX_ASSIGN_OR_RETURN(
      tensor.shape,
      (read_array<std::int64_t>(reader, "shape", [](const JsonReader& dim) -> Result<std::int64_t> {
        TENONNX_ASSIGN_OR_RETURN(const std::int64_t value, dim.integer());
        if (value < -1) return dim.error("a dimension (-1: dynamic)");
        return value;
      })));
  return tensor;
}

Result<Segment> segment_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only({"name", "file", "executor", "inputs", "outputs"}));
  Segment segment;
  TENONNX_ASSIGN_OR_RETURN(segment.name, reader.string("name"));
  TENONNX_ASSIGN_OR_RETURN(segment.file, reader.string("file"));
  TENONNX_ASSIGN_OR_RETURN(segment.executor, reader.string("executor"));
  TENONNX_ASSIGN_OR_RETURN(segment.inputs,
                           read_array<TensorInfo>(reader, "inputs", tensor_from_json));
  TENONNX_ASSIGN_OR_RETURN(segment.outputs,
                           read_array<TensorInfo>(reader, "outputs", tensor_from_json));
  return segment;
}

using Pair = std::pair<std::string, std::string>;

Result<Pair> boundary_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only({"name", "source"}));
  Pair boundary;
  TENONNX_ASSIGN_OR_RETURN(boundary.first, reader.string("name"));
  TENONNX_ASSIGN_OR_RETURN(boundary.second, reader.string("source"));
  return boundary;
}

Result<PackagedFile> file_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only({"path", "sha256", "bytes"}));
  PackagedFile file;
  TENONNX_ASSIGN_OR_RETURN(file.path, reader.string("path"));
  TENONNX_ASSIGN_OR_RETURN(file.sha256, reader.string("sha256"));
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t bytes, reader.integer("bytes"));
  if (bytes < 0) return DataLoss("{}/bytes: {} is not a size", reader.where(), bytes);
  file.bytes = static_cast<std::uint64_t>(bytes);
  return file;
}

Result<StageStatus> stage_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only({"stage", "status", "detail"}));
  StageStatus stage;
  TENONNX_ASSIGN_OR_RETURN(stage.stage, reader.string("stage"));
  TENONNX_ASSIGN_OR_RETURN(stage.status, reader.string("status"));
  TENONNX_ASSIGN_OR_RETURN(stage.detail, reader.string("detail"));
  return stage;
}

}  // namespace

Json to_json(const Manifest& manifest) {
  Json segments = Json::array();
  for (const Segment& segment : manifest.segments)
    segments.push_back({{"name", segment.name},
                        {"file", segment.file},
                        {"executor", segment.executor},
                        {"inputs", to_json(segment.inputs)},
                        {"outputs", to_json(segment.outputs)}});
  Json boundaries = Json::array();
  for (const auto& [name, source] : manifest.boundaries)
    boundaries.push_back({{"name", name}, {"source", source}});
  Json files = Json::array();
  for (const PackagedFile& file : manifest.files)
    files.push_back({{"path", file.path}, {"sha256", file.sha256}, {"bytes", file.bytes}});
  Json versions = Json::object();
  for (const auto& [name, version] : manifest.versions) versions[name] = version;
  Json stages = Json::array();
  for (const StageStatus& stage : manifest.stages)
    stages.push_back({{"stage", stage.stage}, {"status", stage.status}, {"detail", stage.detail}});
  return {{"schema_version", manifest.schema_version},
          {"target", manifest.target},
          {"verdict", manifest.verdict},
          {"source_model", {{"name", manifest.source_model}, {"sha256", manifest.source_sha256}}},
          {"contract", to_json(manifest.contract)},
          {"segments", std::move(segments)},
          {"boundaries", std::move(boundaries)},
          {"files", std::move(files)},
          {"inputs_sha256", manifest.inputs_sha256},
          {"versions", std::move(versions)},
          {"settings", manifest.settings},
          {"stages", std::move(stages)},
          {"checks", manifest.checks},
          {"summary", manifest.summary}};
}

Result<Manifest> manifest_from_json(const JsonReader& reader) {
  // The version comes first: another version may have other fields, and the reader should hear
  // that, not which of them is unknown.
  Manifest manifest;
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t version, reader.integer("schema_version"));
  if (version != kManifestSchemaVersion)
    return Unsupported(
        "{}: schema_version is {}, and this tenonnx reads {}; {}", reader.where(), version,
        kManifestSchemaVersion,
        version > kManifestSchemaVersion
            ? "a later tenonnx wrote the package: use that one, or deploy the model again"
            : "deploy the model again");
  TENONNX_RETURN_IF_ERROR(reader.only(
      {"schema_version", "target", "verdict", "source_model", "contract", "segments", "boundaries",
       "files", "inputs_sha256", "versions", "settings", "stages", "checks", "summary"}));
  TENONNX_ASSIGN_OR_RETURN(manifest.target, reader.string("target"));
  TENONNX_ASSIGN_OR_RETURN(manifest.verdict, reader.string("verdict"));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader source, reader.at("source_model"));
  TENONNX_RETURN_IF_ERROR(source.only({"name", "sha256"}));
  TENONNX_ASSIGN_OR_RETURN(manifest.source_model, source.string("name"));
  TENONNX_ASSIGN_OR_RETURN(manifest.source_sha256, source.string("sha256"));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader contract, reader.at("contract"));
  TENONNX_ASSIGN_OR_RETURN(manifest.contract, contract_from_json(contract));
  TENONNX_ASSIGN_OR_RETURN(manifest.segments,
                           read_array<Segment>(reader, "segments", segment_from_json));
  TENONNX_ASSIGN_OR_RETURN(manifest.boundaries,
                           read_array<Pair>(reader, "boundaries", boundary_from_json));
  TENONNX_ASSIGN_OR_RETURN(manifest.files,
                           read_array<PackagedFile>(reader, "files", file_from_json));
  TENONNX_ASSIGN_OR_RETURN(manifest.inputs_sha256, reader.string("inputs_sha256"));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader versions, reader.at("versions"));
  TENONNX_ASSIGN_OR_RETURN(const auto members, versions.members());
  for (const auto& [name, value] : members) {
    TENONNX_ASSIGN_OR_RETURN(std::string text, value.string());
    manifest.versions.emplace_back(name, std::move(text));
  }
  TENONNX_ASSIGN_OR_RETURN(const JsonReader settings, reader.at("settings"));
  if (!settings.json().is_object()) return settings.error("an object");
  manifest.settings = settings.json();
  TENONNX_ASSIGN_OR_RETURN(manifest.stages,
                           read_array<StageStatus>(reader, "stages", stage_from_json));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader checks, reader.at("checks"));
  if (!checks.json().is_array()) return checks.error("an array");
  manifest.checks = checks.json();
  TENONNX_ASSIGN_OR_RETURN(const JsonReader summary, reader.at("summary"));
  if (!summary.json().is_object()) return summary.error("an object");
  manifest.summary = summary.json();
  return manifest;
}

}  // namespace tenonnx
