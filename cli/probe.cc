// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/probe.h"

#include <memory>

#include "command.h"
#include "options.h"

namespace tenonnx::cli {

RunCommand setup_probe(CLI::App& app, const Globals& globals) {
  auto options = std::make_shared<ProbeOptions>();
  CompareOptions& common = options->common;
  app.add_option("model", common.reference, "The ONNX model")->required();
  app.add_option("--node", options->selection.node,
                 "A node by its name, or by a tensor that it makes");
  app.add_option("--op", options->selection.op, "Every node of an operator type, each alone");
  app.add_option("--block", options->selection.block,
                 "All nodes below a scope of names, as '/decoder/layers.0/mlp', in one piece");
  app.add_option("--on", common.on, "The device that is looked at: an executor address")
      ->required();
  add_numerics_options(app, common);
  add_storage_option(app, common);
  add_memory_option(app, common);
  app.footer(
      "Example: tenonnx probe examples/models/shapes_deimv2.onnx --op Softmax --on sim:htp-v73 "
      "--images DIR");
  return [&globals, options] {
    options->common.progress = make_progress(globals);
    const Result<ProbeResult> result = probe(*options);
    if (!result.ok()) return fail(result.status());
    print_result(globals, to_json(*result), describe(*result));
    return static_cast<int>(result->compared() ? kExitPassed : kExitInconclusive);
  };
}

}  // namespace tenonnx::cli
