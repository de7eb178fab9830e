// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#pragma once

#include <string>
#include <string_view>

namespace tenonnx {

// Text of another program, safe to show: in a terminal an escape sequence would act. Keeps
// printable UTF-8, tab and newline. A carriage return, as progress bars have it, becomes a newline
// (before a newline it goes); "?" stands for control characters (C0, DEL, C1), marks that change
// the direction of writing or have no width, and each byte that is no UTF-8.
std::string printable(std::string_view text);

}  // namespace tenonnx
