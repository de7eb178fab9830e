// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <memory>

#include "command.h"
#include "flow/placement_proof.h"
#include "options.h"

namespace tenonnx::cli {

RunCommand setup_placement(CLI::App& app, const Globals& globals) {
  auto options = std::make_shared<PlacementOptions>();
  app.add_option("model", options->model, "The ONNX model, or a part of one")->required();
  app.add_option("--on", options->on, "Where it is meant to run: an executor address")->required();
  app.add_option("--affinity", options->affinity,
                 "Leave an operator type to the CPU, as Softmax=cpu, and see what else moves; "
                 "repeatable");
  app.add_flag("--allow-fallback", options->allow_fallback,
               "Nodes that the provider leaves to the CPU are reported, not failed");
  app.add_option("--context", options->context,
                 "Compile the partitions into this file, reload it, and prove that too");
  app.add_flag("--embed", options->embed,
               "Of --context: the compiled partitions inside the model, not in files beside it");
  app.add_option("--seed", options->seed, "Of the random input that is run")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_preparation_options(app, options->preparation);
  add_thread_options(app, options->load);
  app.footer(
      "Example: tenonnx placement examples/models/shapes_deimv2.onnx --on provider:simnpu "
      "--allow-fallback");
  return [&globals, options] {
    options->progress = make_progress(globals);
    const Result<PlacementResult> result = prove_placement(*options);
    if (!result.ok()) return fail(result.status());
    print_result(globals, to_json(*result), describe(*result));
    return exit_code_of(to_string(result->verdict));
  };
}

}  // namespace tenonnx::cli
