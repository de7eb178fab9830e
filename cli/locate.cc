// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/locate.h"

#include <memory>

#include "command.h"
#include "options.h"

namespace tenonnx::cli {

RunCommand setup_locate(CLI::App& app, const Globals& globals) {
  auto options = std::make_shared<LocateOptions>();
  CompareOptions& common = options->common;
  app.add_option("reference", common.reference, "The ONNX model that is right")->required();
  app.add_option("candidate", common.candidate,
                 "The model that the device runs; without it both sides run the same one");
  app.add_option("--on", common.on, "The device that is wrong: an executor address")
      ->capture_default_str();
  add_numerics_options(app, common);
  add_storage_option(app, common);
  add_memory_option(app, common);
  app.add_option("--names", common.names,
                 "What passes did to names; default: CANDIDATE.passes.json where it is there");
  app.add_option("--cut", options->cut,
                 "One more cut of the cross-split table: tensors T0,T1 or a file");
  constexpr std::size_t kMost = 1000000;
  app.add_option("--max-cuts", options->max_cuts, "Cuts of the cross-split table")
      ->check(CLI::Range(std::size_t{0}, kMost))
      ->capture_default_str();
  app.add_option("--budget", options->budget, "Trials on the device at most")
      ->check(CLI::Range(std::size_t{1}, kMost))
      ->capture_default_str();
  app.add_flag("--dry-run", options->dry_run, "Say what would be done, and do nothing");
  app.add_flag("--resume", common.resume,
               "Go on where an equal run was ended: its figures and trials are reused");
  app.add_option("--cache", common.cache,
                 "Directory of what --resume reuses; 'none' keeps nothing");
  app.add_option("--suspects", options->suspects, "Nodes that are looked at closely")
      ->check(CLI::Range(std::size_t{1}, kMost))
      ->capture_default_str();
  app.add_option(
      "--keep", options->node_list,
      "Write the smallest set of nodes to keep at the reference to this file, for deploy "
      "--keep-on-cpu");
  app.add_option("--minimal", options->minimal,
                 "Write the first suspect as a self-contained case into this directory");
  app.footer(
      "Example: tenonnx locate examples/models/shapes_deimv2_fragile.onnx --on sim:htp-v73 "
      "--images "
      "DIR --keep keep.txt");
  return [&globals, options] {
    options->common.progress = make_progress(globals);
    const Result<LocateResult> result = locate(*options);
    if (!result.ok()) return fail(result.status());
    print_result(globals, to_json(*result), describe(*result));
    if (options->dry_run) return static_cast<int>(kExitPassed);
    return exit_code_of(to_string(result->verdict));
  };
}

}  // namespace tenonnx::cli
