// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What `optimize` and `rewrite` have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "command.h"
#include "flow/optimize.h"

namespace tenonnx::cli {

struct PassesCommand {
  OptimizeOptions options;
  std::string proof = "regions";
  bool list = false;
  std::string explain;
};

// The model, --out, --option, --input-shape, --images, --inputs, --proof, --force, --list,
// --explain and the rest.
void add_passes_options(CLI::App& app, PassesCommand& command);
// Runs it: prints and returns the exit code.
int run_passes_command(const Globals& globals, PassesCommand& command);

}  // namespace tenonnx::cli
