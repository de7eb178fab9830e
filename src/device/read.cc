// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "device/read.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "device/supported.h"

namespace tenonnx {
namespace {

bool is_date(std::string_view text) {
  const auto number = [&](std::size_t at, std::size_t digits, int low, int high) {
    if (text.size() < at + digits) return false;
    int value = 0;
    for (char c : text.substr(at, digits)) {
      if (c < '0' || c > '9') return false;
      value = value * 10 + (c - '0');
    }
    return value >= low && value <= high;
  };
  if (text.size() != 7 && text.size() != 10) return false;
  if (!number(0, 4, 2000, 2099) || text[4] != '-' || !number(5, 2, 1, 12)) return false;
  return text.size() == 7 || (text[7] == '-' && number(8, 2, 1, 31));
}

}  // namespace

Result<std::string> filled_string(const JsonReader& reader, std::string_view key) {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader field, reader.at(key));
  TENONNX_ASSIGN_OR_RETURN(std::string text, field.string());
  if (text.empty()) return DataLoss("{}: expected text, got an empty string", field.where());
  return text;
}

Result<Provenance> provenance_of(const JsonReader& reader) {
  Provenance provenance;
  TENONNX_ASSIGN_OR_RETURN(provenance.source, filled_string(reader, "source"));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader checked, reader.at("checked"));
  TENONNX_ASSIGN_OR_RETURN(provenance.checked, checked.string());
  if (!is_date(provenance.checked)) {
    return DataLoss("{}: expected the date of the check, YYYY-MM or YYYY-MM-DD, got '{}'",
                    checked.where(), provenance.checked);
  }
  return provenance;
}

Result<JsonReader> sourced_value(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only({"value", "source", "checked"}));
  TENONNX_RETURN_IF_ERROR(provenance_of(reader).status());
  return reader.at("value");
}

Result<JsonReader> sourced_value(const JsonReader& reader, std::string_view key) {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader statement, reader.at(key));
  return sourced_value(statement);
}

namespace {

Result<OperatorRow> row_of(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only({"operator", "domain", "condition", "toolchain", "placement",
                                       "detail", "source", "checked"}));
  OperatorRow row;
  TENONNX_ASSIGN_OR_RETURN(row.op_type, filled_string(reader, "operator"));
  TENONNX_ASSIGN_OR_RETURN(row.domain, reader.string_or("domain", ""));
  TENONNX_ASSIGN_OR_RETURN(row.condition, reader.string_or("condition", ""));
  TENONNX_ASSIGN_OR_RETURN(row.toolchain, filled_string(reader, "toolchain"));
  TENONNX_ASSIGN_OR_RETURN(row.placement, filled_string(reader, "placement"));
  if (row.placement != "device" && row.placement != "fallback" && row.placement != "rejected") {
    return DataLoss("{}/placement: expected one of 'device', 'fallback', 'rejected', got '{}'",
                    reader.where(), row.placement);
  }
  TENONNX_ASSIGN_OR_RETURN(row.detail, reader.string_or("detail", ""));
  TENONNX_ASSIGN_OR_RETURN(row.provenance, provenance_of(reader));
  return row;
}

Result<std::map<std::string, std::string>> roles_of(const JsonReader& reader) {
  TENONNX_ASSIGN_OR_RETURN(const auto members, reader.members());
  if (members.empty()) {
    return DataLoss("{}: expected at least one role (segment name -> executor address), got none",
                    reader.where());
  }
  std::map<std::string, std::string> roles;
  for (const auto& [segment, value] : members) {
    TENONNX_ASSIGN_OR_RETURN(roles[segment], value.string());
    if (segment.empty() || roles[segment].empty()) {
      return DataLoss("{}: expected a segment name and an executor address, got '{}': '{}'",
                      reader.where(), segment, roles[segment]);
    }
  }
  return roles;
}

}  // namespace

bool is_device_name(std::string_view name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (name.empty() || name.size() > 64 || !plain(name.front())) return false;
  if (name.find("..") != std::string_view::npos) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; });
}

Result<Device> device_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(
      reader.only({"schema_version", "name", "title", "description", "source", "checked",
                   "arithmetic", "memory", "roles", "rows", "supported"}));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader version_field, reader.at("schema_version"));
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t version, version_field.integer());
  if (version != kDeviceSchemaVersion) {
    return DataLoss("{}: expected {}, got {}", version_field.where(), kDeviceSchemaVersion,
                    version);
  }
  Device device;
  TENONNX_ASSIGN_OR_RETURN(const JsonReader name_field, reader.at("name"));
  TENONNX_ASSIGN_OR_RETURN(device.name, name_field.string());
  if (!is_device_name(device.name)) {
    return DataLoss(
        "{}: expected lower-case letters, digits, '.', '_' and '-', without '..' "
        "and '/', got '{}'",
        name_field.where(), device.name);
  }
  TENONNX_ASSIGN_OR_RETURN(device.title, filled_string(reader, "title"));
  TENONNX_ASSIGN_OR_RETURN(device.description, reader.string_or("description", ""));
  TENONNX_ASSIGN_OR_RETURN(device.provenance, provenance_of(reader));
  if (reader.has("arithmetic")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader section, reader.at("arithmetic"));
    TENONNX_ASSIGN_OR_RETURN(device.arithmetic, arithmetic_from_json(section));
  }
  if (reader.has("memory")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader value, sourced_value(reader, "memory"));
    TENONNX_ASSIGN_OR_RETURN(const std::int64_t bytes, value.integer());
    if (bytes < 1) return DataLoss("{}: expected bytes, 1 or more, got {}", value.where(), bytes);
    device.memory = bytes;
  }
  if (reader.has("roles")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader section, reader.at("roles"));
    TENONNX_ASSIGN_OR_RETURN(device.roles, roles_of(section));
  }
  if (reader.has("rows")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader section, reader.at("rows"));
    TENONNX_ASSIGN_OR_RETURN(const auto items, section.items());
    for (const JsonReader& item : items) {
      TENONNX_ASSIGN_OR_RETURN(OperatorRow row, row_of(item));
      device.rows.push_back(std::move(row));
    }
  }
  if (reader.has("supported")) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader section, reader.at("supported"));
    TENONNX_ASSIGN_OR_RETURN(device.supported, supported_from_json(section));
  }
  return device;
}

Result<Device> read_device(const std::filesystem::path& file) {
  TENONNX_ASSIGN_OR_RETURN(const std::string text, read_file(file));
  TENONNX_ASSIGN_OR_RETURN(const Json json, parse_json(text, file.string()));
  TENONNX_ASSIGN_OR_RETURN(Device device, device_from_json(JsonReader(json, file.string())));
  if (device.name != file.stem().string()) {
    return DataLoss("{}: /name: expected '{}', the file's name without .json, got '{}'",
                    file.string(), file.stem().string(), device.name);
  }
  device.file = file;
  device.sha256 = sha256_hex(text);
  return device;
}

}  // namespace tenonnx
