// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/deploy.h"

#include <memory>

#include "command.h"
#include "options.h"

namespace tenonnx::cli {

RunCommand setup_deploy(CLI::App& app, const Globals& globals) {
  auto options = std::make_shared<DeployOptions>();
  app.add_option("model", options->model, "The ONNX model")->required();
  app.add_option("--target", options->target,
                 "Where it shall run: the name of a file devices/NAME.json")
      ->required();
  app.add_option("-o,--out", options->out, "The package to write")->required();
  add_image_options(app, options->images, options->labels, options->max_images);
  app.add_option(
         "--cut", options->cut,
         "Tensors to cut at (names or unique suffixes: T0,T1,T2), 'auto', 'none', or a file "
         "that names them; by default what the contract names, else none, and where the "
         "whole graph fails a gate, auto")
      // As of --cut "$CUT" with a variable that is not set: not the default by accident.
      ->check([](const std::string& text) {
        return std::string(text.empty() ? "it names no tensor; leave it out for the default" : "");
      });
  app.add_option("--keep-on-cpu", options->keep_on_cpu,
                 "Run these nodes on the CPU and all others on the target's device: a file with a "
                 "name a line, of a node or of a tensor that it makes. Instead of --cut")
      ->check([](const std::string& text) {
        return std::string(text.empty() ? "it names no file; leave it out to keep none" : "");
      });
  add_preparation_options(app, options->preparation);
  app.add_flag("--fuse-attention", options->fuse_attention,
               "Compute deformable attention of segments on the CPU by one operator each, of "
               "libtenonnx_ops.so, which becomes a part of the package");
  app.add_option(
         "--budget", options->budget,
         "Runs on the target's device at most, over all cuts that are tried: each segment on "
         "each image, the runs that show where nodes run, and that of the fresh process; what "
         "the cache answers and compiling cost nothing. Where it is used up the verdict is "
         "INCONCLUSIVE, with the budget that is needed; by default there is no limit")
      ->check(CLI::Range(1, 1'000'000));
  app.add_flag("--force", options->force, "Replace an existing package");
  app.add_flag("--keep-metadata", options->keep_metadata,
               "Keep the exporter's doc strings and metadata (they may hold paths of its machine)");
  app.add_option("--random-inputs", options->random_inputs, "How many, where there are no images")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seed", options->seed, "Of the random inputs")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_thread_options(app, options->load);
  app.footer(
      "Example: tenonnx deploy examples/models/shapes_deimv2.onnx --target sim-htp --images DIR "
      "-o model-package/");
  return [&globals, options] {
    options->progress = make_progress(globals);
    std::error_code unknown;
    options->program = std::filesystem::read_symlink("/proc/self/exe", unknown);
    const Result<DeployResult> result = deploy(*options);
    if (!result.ok()) return fail(result.status());
    print_result(globals, to_json(*result), describe(*result));
    return exit_code_of(result->manifest.verdict);
  };
}

}  // namespace tenonnx::cli
