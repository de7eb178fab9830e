// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a vendor needs to see a fault for himself: one small model, its inputs, what comes out and
// what should, and the command.
#pragma once

#include <filesystem>

#include "numerics/locate.h"
#include "numerics/own_errors.h"

namespace tenonnx {

// FailedPrecondition where `directory` stands and is not such a case: it would not be replaced.
Status check_minimal_directory(const std::filesystem::path& directory);

// `directory` appears whole: model.onnx, inputs.npz, expected.npz (the reference's), got.npz (the
// device's), case.json (node, kind, figures, versions, hashes), README.txt. Of the first suspect
// that has a node. FailedPrecondition where the directory is there and is not such a case.
Status write_minimal_case(const std::filesystem::path& directory, const CompareSetup& setup,
                          const ErrorTable& table, const LocateResult& result,
                          const LoadOptions& load);

}  // namespace tenonnx
