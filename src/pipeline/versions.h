// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Whether what runs here is what the evidence was made with.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

using Versions = std::vector<std::pair<std::string, std::string>>;

// -1, 0, 1 for two dotted numbers ("1.29.0"), missing parts counting as 0. What is behind the
// numbers ("-dev") is not looked at.
int compare_versions(std::string_view a, std::string_view b);

// FailedPrecondition where a name that both hold has a dotted number here that is below the
// evidence's, or other text (a device file's hash) that differs. Names that only one side holds are
// not compared. The evidence may hold "NAME of SEGMENT" where two executors differ.
Status check_versions(const Versions& evidence, const Versions& present, std::string_view segment);

}  // namespace tenonnx
