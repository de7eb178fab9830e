// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes_options.h"

#include "base/status.h"
#include "options.h"

namespace tenonnx::cli {

void add_passes_options(CLI::App& app, PassesCommand& command) {
  OptimizeOptions& options = command.options;
  app.add_option("model", options.model, "The ONNX model");
  app.add_option("-o,--out", options.out,
                 "The model to write; OUT.passes.json says what became of its tensors");
  app.add_option_function<std::vector<std::string>>(
         "--option",
         [&options](const std::vector<std::string>& values) {
           for (const std::string& value : values) {
             const std::size_t equals = value.find('=');
             const std::size_t dot = value.find('.');
             if (equals == std::string::npos || dot == std::string::npos || dot == 0 ||
                 dot + 1 >= equals)
               throw CLI::ValidationError("--option", "'" + value +
                                                          "' is not PASS.OPTION=VALUE, as "
                                                          "fold_constants.max_bytes=65536");
             options.options[value.substr(0, equals)] = value.substr(equals + 1);
           }
         },
         "An option of a pass (repeatable)")
      ->type_name("PASS.OPTION=VALUE");
  add_input_shape_option(app, options.input_shapes);
  app.add_option("--images", options.images,
                 "Images for the proofs: a directory, or one file; by default random inputs");
  app.add_option("--inputs", options.inputs,
                 "Tensors for the proofs: an .npz of the model's inputs, or a directory of them");
  app.add_option("--max-images", options.max_images, "Use the first N images only; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--proof", command.proof,
                 "regions: every pass when it has run, and the whole graph; whole: the whole graph "
                 "once; none")
      ->check(CLI::IsMember({"none", "whole", "regions"}))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of random and of made inputs")->capture_default_str();
  app.add_option("--intra-threads", options.load.intra_op_threads,
                 "Threads inside an operator; 0: one per physical core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--force", options.force, "Replace existing files");
  app.add_flag("--keep-metadata", options.keep_metadata,
               "Keep the exporter's doc strings and metadata (they may hold paths of its machine)");
  app.add_flag("--list", command.list, "List all passes and do nothing else");
  app.add_option("--explain", command.explain,
                 "Say what a pass does, its conditions and options, and do nothing else")
      ->type_name("PASS");
}

int run_passes_command(const Globals& globals, PassesCommand& command) {
  if (command.list) {
    print_result(globals, passes_json(), list_passes());
    return kExitPassed;
  }
  if (!command.explain.empty()) {
    const Result<std::string> text = explain_pass(command.explain);
    if (!text.ok()) return fail(text.status());
    print_result(globals,
                 {{"schema_version", 1}, {"pass", command.explain}, {"explanation", *text}}, *text);
    return kExitPassed;
  }
  OptimizeOptions& options = command.options;
  if (options.model.empty())
    return fail(InvalidArgument("no model is named: give the ONNX file, or --list or --explain"));
  const Result<ProofLevel> proof = proof_level_from_string(command.proof);
  if (!proof.ok()) return fail(proof.status());
  options.proof = *proof;
  options.progress = make_progress(globals);
  const Result<OptimizeResult> result = optimize_file(options);
  if (!result.ok()) return fail(result.status());
  print_result(globals, to_json(*result), describe(*result));
  // Without a proof there is no gate that could fail.
  if (options.proof == ProofLevel::kNone)
    return result->declined.empty() ? kExitPassed : kExitInconclusive;
  return exit_code_of(to_string(result->verdict));
}

}  // namespace tenonnx::cli
