// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the file of a pass says about it. The table is made from the files when the library is built
// (cmake/pass_comments.cmake).
#pragma once

#include <string_view>

namespace tenonnx {

// The opening comment of <pass>.cc, without the licence and the "//"; empty for no such pass.
std::string_view pass_comment(std::string_view pass);

}  // namespace tenonnx
