// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What every command file provides and may use. A command is one file here, one line in
// commands.inc: it declares its options and returns the function that runs it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/log.h"
#include "tenonnx/base.h"

namespace tenonnx::cli {

// The process's exit codes; documented in README and docs/design.md.
enum ExitCode : int {
  kExitPassed = 0,
  kExitFailedGate = 1,
  kExitBadInput = 2,
  kExitInconclusive = 3,
};

// Options that every command has.
struct Globals {
  bool json = false;   // the result as JSON on standard output, instead of text
  bool quiet = false;  // no progress and no messages on standard error
  bool verbose = false;
};

using RunCommand = std::function<int()>;

// Prints "tenonnx: error: <message>" to standard error, in lines that fit, and returns
// kExitBadInput.
int refuse(std::string_view message);
// The same, behind a line of progress that is still open.
int fail(const Status& status);
// The exit code of a verdict: "PASS", "FAIL", "INCONCLUSIVE".
int exit_code_of(std::string_view verdict);
// Prints the result: JSON where globals.json is set, else the text.
void print_result(const Globals& globals, const Json& json, const std::string& text);
// Progress lines on standard error: rewritten in place on a terminal, else one line at the end of a
// step; silent with --quiet.
Progress make_progress(const Globals& globals);

// Declares each command's set-up function: RunCommand setup_<name>(CLI::App&, const Globals&).
#define TENONNX_COMMAND(name, group, summary) \
  RunCommand setup_##name(CLI::App& app, const Globals& globals);
#include "commands.inc"
#undef TENONNX_COMMAND

}  // namespace tenonnx::cli
