// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What is in a model, for a person and as JSON. The findings themselves: model/inspect.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"
#include "model/inspect.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct InspectReport {
  std::string model;  // file name
  std::string sha256;
  Inspection found;  // shapes of sites, selections and outputs as they are after folding
  std::optional<std::int64_t> nodes_after_folding;  // absent where folding was not possible
};

Result<InspectReport> inspect_file(const std::filesystem::path& path);
Json to_json(const InspectReport& report);
std::string describe(const InspectReport& report);

}  // namespace tenonnx
