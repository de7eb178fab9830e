// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "device/device.h"

#include <memory>
#include <string>

#include "command.h"
#include "flow/agree.h"
#include "flow/device_text.h"
#include "options.h"

namespace tenonnx::cli {

namespace {

RunCommand setup_show(CLI::App& app, const Globals& globals) {
  auto name = std::make_shared<std::string>();
  app.add_option("device", *name, "A device, as htp-v73")->required();
  return [&globals, name] {
    const Result<Device> device = find_device(*name);
    if (!device.ok()) return fail(device.status());
    print_result(globals, to_json(*device), describe(*device));
    return static_cast<int>(kExitPassed);
  };
}

}  // namespace

RunCommand setup_device(CLI::App& app, const Globals& globals) {
  app.require_subcommand(1);
  CLI::App* show = app.add_subcommand(
      "show", "A device file: how close its simulation is to the device, and where not");
  show->fallthrough();
  const RunCommand run_show = setup_show(*show, globals);
  auto options = std::make_shared<AgreeOptions>();
  auto feed = std::make_shared<CompareOptions>();
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
  command->add_option("--write", options->write,
                      "A device file: the figures of the pack go into its arithmetic section");
  command->add_option("--model", feed->reference,
                      "Instead of the pack: a model, tensor by tensor, with --inputs or --images");
  command->add_flag("--own", options->own,
                    "Of --model: each operator alone, from equal inputs; else tensors of the whole "
                    "graph, with all that came before them");
  add_feed_options(*command, *feed);
  add_preparation_options(*command, feed->preparation);
  add_thread_options(*command, options->load);
  return [&globals, options, feed, show, run_show] {
    if (show->parsed()) return run_show();
    options->progress = feed->progress = make_progress(globals);
    options->seed = feed->seed;
    feed->load = options->load;
    const Result<AgreeResult> result =
        feed->reference.empty() ? agree(*options) : agree_on_model(*options, *feed);
    if (!result.ok()) return fail(result.status());
    print_result(globals, to_json(*result), describe(*result));
    return static_cast<int>(result->cases.empty() ? kExitInconclusive : kExitPassed);
  };
}

}  // namespace tenonnx::cli
