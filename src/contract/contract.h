// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The contract's file form, and its check against a graph. The type is public: tenonnx/contract.h.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/model.h"
#include "tenonnx/contract.h"

namespace tenonnx {

inline constexpr int kContractSchemaVersion = 1;

// Errors are DataLoss and name the path of the field. Checked here: names, ranges, and that layout
// fits the shape and range fits scale, mean and std (a model normalized twice does not pass).
Result<Contract> contract_from_json(const JsonReader& reader);
Json to_json(const Contract& contract);
Result<Contract> read_contract(const std::filesystem::path& path);

// <model>.contract.json (the model's name without .onnx) beside the model, else contract.json
// there; nullopt where neither exists.
std::optional<std::filesystem::path> find_contract(const std::filesystem::path& model_path);

// What stands in for a missing contract: names, dtypes and shapes from the graph, the usual DEIM
// preprocessing. `assumed` receives one line for each thing that was assumed. InvalidArgument where
// the graph has not one image input with a static size.
Result<Contract> guess_contract(const Model& model, std::vector<std::string>& assumed);

// Names, dtypes, shapes and layout of the graph's inputs and outputs: InvalidArgument, got against
// allowed, where the graph contradicts the contract. The order of orig_target_sizes needs a run:
// probe_size_order (pipeline/size_order.h). Returns notes: what could not be checked.
Result<std::vector<std::string>> check_contract(const Contract& contract, const Model& model);

// The same against what a graph is known to take and return.
Result<std::vector<std::string>> check_contract(const Contract& contract,
                                                std::span<const TensorInfo> inputs,
                                                std::span<const TensorInfo> outputs);

}  // namespace tenonnx
