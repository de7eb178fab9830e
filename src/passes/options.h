// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Reading the options of one pass.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "passes/runner.h"

namespace tenonnx {

// InvalidArgument names an option that is not among `allowed`.
Status only_options(std::string_view pass, const PassOptions& options,
                    std::initializer_list<std::string_view> allowed);
// A whole number >= 0; InvalidArgument otherwise.
Result<std::int64_t> count_option(std::string_view pass, const PassOptions& options,
                                  std::string_view name, std::int64_t fallback);

}  // namespace tenonnx
