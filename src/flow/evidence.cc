// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/evidence.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "base/files.h"
#include "base/status.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr int kEvidenceSchemaVersion = 1;

// The double whose shortest spelling is the float's: 0.9511 instead of 0.95109999179840088.
Json short_number(float value) {
  if (!std::isfinite(value)) return json_number(value);
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double out = 0;
  std::from_chars(text, end, out);
  return out;
}

Json to_json(const std::vector<Detection>& detections) {
  Json out = Json::array();
  for (const Detection& d : detections)
    out.push_back({d.label, short_number(d.score), short_number(d.box.x0), short_number(d.box.y0),
                   short_number(d.box.x1), short_number(d.box.y1)});
  return out;
}

Result<std::vector<Detection>> detections_from_json(const JsonReader& reader) {
  TENONNX_ASSIGN_OR_RETURN(const auto rows, reader.items());
  std::vector<Detection> out;
  out.reserve(rows.size());
  for (const JsonReader& row : rows) {
    TENONNX_ASSIGN_OR_RETURN(const auto values, row.items());
    if (values.size() != 6) return row.error("[label, score, x0, y0, x1, y1]");
    Detection d;
    TENONNX_ASSIGN_OR_RETURN(d.label, values[0].integer());
    float* fields[] = {&d.score, &d.box.x0, &d.box.y0, &d.box.x1, &d.box.y1};
    for (std::size_t i = 0; i < 5; ++i) {
      TENONNX_ASSIGN_OR_RETURN(const double value, values[i + 1].number());
      *fields[i] = static_cast<float>(value);
    }
    out.push_back(d);
  }
  return out;
}

Result<int> pixels(const JsonReader& reader, std::string_view key) {
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t value, reader.integer(key));
  if (value < 1 || value > std::numeric_limits<int>::max())
    return DataLoss("{}/{}: {} is not a number of pixels", reader.where(), key, value);
  return static_cast<int>(value);
}

}  // namespace

Status write_detections(const fs::path& path, const Evidence& evidence) {
  std::string text = fmt::format("{{\"schema_version\": {}, \"inputs\": [", kEvidenceSchemaVersion);
  const char* separator = "\n";
  for (const DetectionEvidence& one : evidence) {
    const Json json = {{"name", one.input},
                       {"width", one.width},
                       {"height", one.height},
                       {"sha256", one.sha256},
                       {"reference", to_json(one.reference)},
                       {"package", to_json(one.candidate)}};
    text += separator + json.dump();
    separator = ",\n";
  }
  return write_file_atomic(path, text + "\n]}\n");
}

Result<Evidence> read_detections(const fs::path& path) {
  TENONNX_ASSIGN_OR_RETURN(const Json json, read_json_file(path));
  const JsonReader reader(json, path.string());
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t version, reader.integer("schema_version"));
  if (version != kEvidenceSchemaVersion)
    return Unsupported("{}: schema_version is {}, and this tenonnx reads {}", path.string(),
                       version, kEvidenceSchemaVersion);
  TENONNX_RETURN_IF_ERROR(reader.only({"schema_version", "inputs"}));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader inputs, reader.at("inputs"));
  TENONNX_ASSIGN_OR_RETURN(const auto items, inputs.items());
  Evidence out;
  for (const JsonReader& item : items) {
    TENONNX_RETURN_IF_ERROR(
        item.only({"name", "width", "height", "sha256", "reference", "package"}));
    DetectionEvidence one;
    TENONNX_ASSIGN_OR_RETURN(one.input, item.string("name"));
    TENONNX_ASSIGN_OR_RETURN(one.width, pixels(item, "width"));
    TENONNX_ASSIGN_OR_RETURN(one.height, pixels(item, "height"));
    TENONNX_ASSIGN_OR_RETURN(one.sha256, item.string("sha256"));
    TENONNX_ASSIGN_OR_RETURN(const JsonReader reference, item.at("reference"));
    TENONNX_ASSIGN_OR_RETURN(one.reference, detections_from_json(reference));
    TENONNX_ASSIGN_OR_RETURN(const JsonReader package, item.at("package"));
    TENONNX_ASSIGN_OR_RETURN(one.candidate, detections_from_json(package));
    out.push_back(std::move(one));
  }
  return out;
}

Status write_evidence(const fs::path& directory, Verdict verdict, std::span<const Check> checks,
                      const Json& images, const Evidence& evidence) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return Io("cannot make '{}': {}", directory.string(), error.message());
  TENONNX_RETURN_IF_ERROR(
      write_json_file(directory / "checks.json", {{"schema_version", kEvidenceSchemaVersion},
                                                  {"verdict", to_string(verdict)},
                                                  {"checks", to_json(checks)}}));
  TENONNX_RETURN_IF_ERROR(write_json_file(
      directory / "images.json", {{"schema_version", kEvidenceSchemaVersion}, {"images", images}}));
  return write_detections(directory / "detections.json", evidence);
}

}  // namespace tenonnx
