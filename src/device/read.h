// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The text of a device file to a Device. Format: docs/reference/device.md, devices/schema.json.
#pragma once

#include <string_view>

#include "base/json.h"
#include "device/device.h"

namespace tenonnx {

inline constexpr int kDeviceSchemaVersion = 1;

// Lower-case letters, digits, '.', '_', '-'; begins with a letter or digit; no "..".
bool is_device_name(std::string_view name);

// "source" and "checked" of a statement.
Result<Provenance> provenance_of(const JsonReader& reader);

// A string that is not empty.
Result<std::string> filled_string(const JsonReader& reader, std::string_view key);
// The value of a statement {"value": ..., "source": ..., "checked": ...}, or of the one under key.
Result<JsonReader> sourced_value(const JsonReader& reader);
Result<JsonReader> sourced_value(const JsonReader& reader, std::string_view key);

Result<Arithmetic> arithmetic_from_json(const JsonReader& reader);

// Everything but `file` and `sha256`. An unknown field is an error: a misspelt one would be
// ignored.
Result<Device> device_from_json(const JsonReader& reader);

}  // namespace tenonnx
