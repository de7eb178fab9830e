// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/optimize.h"

#include <memory>

#include "command.h"
#include "passes_options.h"

namespace tenonnx::cli {

RunCommand setup_optimize(CLI::App& app, const Globals& globals) {
  auto command = std::make_shared<PassesCommand>();
  add_passes_options(app, *command);
  app.add_option("--only", command->options.only, "Run these passes alone: PASS,PASS")
      ->delimiter(',');
  app.add_option("--skip", command->options.skip, "Leave these passes out: PASS,PASS")
      ->delimiter(',');
  return [&globals, command] { return run_passes_command(globals, *command); };
}

}  // namespace tenonnx::cli
