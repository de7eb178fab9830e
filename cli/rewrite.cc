// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <memory>

#include "base/status.h"
#include "command.h"
#include "passes_options.h"

namespace tenonnx::cli {

RunCommand setup_rewrite(CLI::App& app, const Globals& globals) {
  auto command = std::make_shared<PassesCommand>();
  add_passes_options(app, *command);
  app.add_option("--pass", command->options.passes,
                 "The passes to run, once each, in this order: PASS,PASS")
      ->delimiter(',');
  return [&globals, command] {
    if (command->options.passes.empty() && !command->list && command->explain.empty())
      return fail(InvalidArgument("no pass is named: give --pass PASS; --list lists them"));
    return run_passes_command(globals, *command);
  };
}

}  // namespace tenonnx::cli
