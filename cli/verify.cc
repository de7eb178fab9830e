// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/verify.h"

#include <memory>

#include "command.h"
#include "options.h"

namespace tenonnx::cli {

RunCommand setup_verify(CLI::App& app, const Globals& globals) {
  auto options = std::make_shared<VerifyOptions>();
  app.add_option("package", options->package, "A directory that 'tenonnx deploy' wrote")
      ->required();
  add_image_options(app, options->images, options->labels, options->max_images);
  app.add_option("--model", options->model,
                 "The source model: with --images, all gates are run again against it; without "
                 "it, against what it detected at the deploy");
  app.add_option("--tensors", options->tensors,
                 "An .npz of input tensors: checked against the contract, then run once");
  app.add_flag("--allow-version-mismatch", options->allow_version_mismatch,
               "Report versions that differ from the manifest's instead of refusing them");
  add_thread_options(app, options->load);
  app.get_option("--images")
      ->description(
          "Images to run the gates on again: a directory, or one file. Without them the verdict is "
          "the "
          "manifest's: the files are what was proved, and they load and run");
  return [&globals, options] {
    options->progress = make_progress(globals);
    const Result<VerifyResult> result = verify(*options);
    if (!result.ok()) return fail(result.status());
    print_result(globals, to_json(*result), describe(*result));
    return exit_code_of(to_string(result->verdict));
  };
}

}  // namespace tenonnx::cli
