// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare.h"

#include <memory>

#include "command.h"
#include "options.h"

namespace tenonnx::cli {

RunCommand setup_compare(CLI::App& app, const Globals& globals) {
  auto options = std::make_shared<CompareOptions>();
  app.add_option("reference", options->reference, "The ONNX model that is taken as right")
      ->required();
  app.add_option("candidate", options->candidate,
                 "Another model of the same inputs; without it the same model on another executor");
  app.add_option("--ref", options->ref, "Where the reference runs: an executor address")
      ->capture_default_str();
  app.add_option("--on", options->on, "Where the candidate runs: an executor address")
      ->capture_default_str();
  add_feed_options(app, *options);
  app.add_option(
         "--tensors", options->tensors,
         "Which tensors: 'all', 'boundary' (cut tensors and outputs, the parts run one after "
         "the other) or a pattern over names, as '*/Softmax_output_0'")
      ->capture_default_str();
  app.add_option("--cut", options->cut,
                 "Of --tensors boundary: as of 'deploy'; by default what the contract names");
  app.add_option("--names", options->names,
                 "The record of names of the passes that made the candidate; by default "
                 "<candidate>.passes.json beside it");
  add_storage_option(app, *options);
  app.add_option("--factor", options->factor, "Limits are so many times the noise floor")
      ->capture_default_str();
  app.add_option("--gate", options->gates,
                 "Also an agreed figure: allclose (1e-5) or psnr (45 dB) for the outputs, map "
                 "(difference of the average precision, 0.005) for labelled images; repeatable");
  app.add_option("--labels", options->labels,
                 "Of --gate map: COCO annotations; by default annotations.json in the directory "
                 "of the images");
  add_memory_option(app, *options);
  app.add_option("--cache", options->cache,
                 "Where figures are kept for --resume, or 'none'; by default below "
                 "~/.cache/tenonnx");
  app.add_flag("--resume", options->resume,
               "Go on where the same comparison was ended; what it had is not run again");
  add_preparation_options(app, options->preparation);
  add_thread_options(app, options->load);
  app.footer(
      "Example: tenonnx compare examples/models/shapes_deimv2.onnx --on sim:htp-v73 --images DIR");
  return [&globals, options] {
    options->progress = make_progress(globals);
    const Result<CompareResult> result = compare(*options);
    if (!result.ok()) return fail(result.status());
    print_result(globals, to_json(*result), describe(*result));
    return exit_code_of(to_string(result->verdict));
  };
}

}  // namespace tenonnx::cli
