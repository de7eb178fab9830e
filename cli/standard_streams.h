// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Standard input, output and error as the caller left them: closed, full, or fine.
#pragma once

#include <cstdio>

namespace tenonnx::cli {

// Opens what the caller has closed (`tenonnx ... 2>&-`). Else the next file that is opened, a
// package's, would have the descriptor 2, and every message would be written into it. Reading and
// writing there fail, as they do on a closed descriptor.
void open_closed_streams();

// Keeps standard output for results: what a library writes there, as a vendor's that says hello
// when it is loaded, goes to standard error from now on. After open_closed_streams(), before
// anything else.
void keep_output_for_results();
// Where results go.
std::FILE* results();

// `exit_code`, or the code of an error where the results could not be written: a full disk behind
// `> results.json` must not look like success.
int check_output(int exit_code);

}  // namespace tenonnx::cli
