// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <memory>

#include "command.h"
#include "flow/agree.h"
#include "options.h"

namespace tenonnx::cli {

RunCommand setup_device(CLI::App& app, const Globals& globals) {
  app.require_subcommand(1);
  auto options = std::make_shared<AgreeOptions>();
  CLI::App* command = app.add_subcommand("agree",
                                         "Graphs of one operator each on a device and on what is "
                                         "to stand for it: the share of elements "
                                         "within a step of float16, bias, worst");
  command->fallthrough();
  command->add_option("--on", options->on, "The device: an executor address")->required();
  command->add_option("--against", options->against, "The simulation, as sim:htp-v73")->required();
  command->add_option("--only", options->only, "Operator types of the pack, several by commas")
      ->delimiter(',');
  command
      ->add_option("--budget", options->budget_seconds,
                   "Seconds after which no further graph is begun; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of inputs and weights")->capture_default_str();
  add_thread_options(*command, options->load);
  return [&globals, options] {
    options->progress = make_progress(globals);
    const Result<AgreeResult> result = agree(*options);
    if (!result.ok()) return fail(result.status());
    print_result(globals, to_json(*result), describe(*result));
    return static_cast<int>(result->cases.empty() ? kExitInconclusive : kExitPassed);
  };
}

}  // namespace tenonnx::cli
