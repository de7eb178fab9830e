// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ort/executor.h"
#include "passes/proof.h"

namespace tenonnx {

// How a pass that leaves queries out ends the name of the bool tensor that says which of the first
// output of a TopK it keeps.
inline constexpr std::string_view kKeptName = "kept";

// Of each such tensor of `after` that `before` does not have one line: the share of the TopK's
// elements that is kept on the inputs, in the mean, at least and at most. What prevents it is an
// error.
Result<std::vector<std::string>> kept_shares(const Executor& executor, int threads,
                                             const Model& before, const Model& after,
                                             const ProofData& data);

}  // namespace tenonnx
