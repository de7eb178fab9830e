// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Any command as an executor, address "exec:COMMAND" or "exec:timeout=SECONDS,COMMAND", by files in
// a directory: model.onnx and inputs.npz in; outputs.npz, placement.json (may be absent) and
// log.txt out. The protocol: docs/reference/executors.md.
//
// COMMAND is split into words at spaces, with '...', "..." and \ as a shell has them and nothing
// else of a shell, and started without one; the directory is its last argument. It has a process
// group of its own, which is killed at the time limit (600 s; TENONNX_EXEC_TIMEOUT).
// Runs of one loaded graph follow one another in the same directory, so that a command may keep
// there what it compiled. It is removed in the end, unless a run failed or TENONNX_EXEC_DIR says
// where such directories go.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "ort/executor.h"

namespace tenonnx {

// InvalidArgument: no command, an open quote, a time limit that is no number above 0.
Result<std::unique_ptr<Executor>> make_exec_executor(std::string_view rest);

// InvalidArgument for a quote or backslash that nothing closes.
Result<std::vector<std::string>> split_words(std::string_view command);

// What placement.json holds. DataLoss names the field.
Result<Placement> placement_from_json(const JsonReader& reader);

}  // namespace tenonnx
