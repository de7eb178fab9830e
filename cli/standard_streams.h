// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Standard input, output and error as the caller left them: closed, full, or fine.
#pragma once

namespace tenonnx::cli {

// Opens what the caller has closed (`tenonnx ... 2>&-`). Else the next file that is opened, a
// package's, would have the descriptor 2, and every message would be written into it. Reading and
// writing there fail, as they do on a closed descriptor.
void open_closed_streams();

// `exit_code`, or the code of an error where the results could not be written: a full disk behind
// `> results.json` must not look like success.
int check_output(int exit_code);

}  // namespace tenonnx::cli
