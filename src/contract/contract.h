// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The contract's file form, and its check against a graph. The type is public: tenonnx/contract.h.
#pragma once

#include <filesystem>
#include <optional>

#include "base/json.h"
#include "model/model.h"
#include "tenonnx/contract.h"

namespace tenonnx {

Result<Contract> contract_from_json(const JsonReader& reader);
Json to_json(const Contract& contract);
Result<Contract> read_contract(const std::filesystem::path& path);
// <model>.contract.json (the model's name without .onnx) beside the model, else contract.json there;
// nullopt where neither exists.
std::optional<std::filesystem::path> find_contract(const std::filesystem::path& model_path);
// What stands in for a missing contract: names, dtypes and shapes from the graph, the usual DEIM
// preprocessing. `assumed` receives one line for each thing that was assumed.
Result<Contract> guess_contract(const Model& model, std::vector<std::string>& assumed);
// Names, dtypes, shapes and layout of inputs and outputs; and the order of orig_target_sizes, proved
// by which element multiplies x in the graph (a square image never counts as proof): InvalidArgument
// where the graph contradicts the contract. Returns notes, such as "the order of orig_target_sizes
// could not be proved: ...".
Result<std::vector<std::string>> check_contract(const Contract& contract, const Model& model);

}  // namespace tenonnx
