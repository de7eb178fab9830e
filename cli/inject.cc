// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/inject.h"

#include <memory>

#include "command.h"
#include "options.h"

namespace tenonnx::cli {

RunCommand setup_inject(CLI::App& app, const Globals& globals) {
  auto options = std::make_shared<InjectOptions>();
  CompareOptions& common = options->common;
  app.add_option("model", common.reference, "The ONNX model")->required();
  app.add_option("--at", options->at, "The tensor: its name, or an end of it that only one has")
      ->required();
  app.add_option("--error", options->error,
                 "gauss:SIGMA (added, in units of the tensor's rms), scale:FACTOR, round:fp16 or "
                 "bf16 (beyond the type is Inf), round:DEVICE (stored as sim:DEVICE does, overflow "
                 "included), FILE.npz (added; an array named as the tensor) or replace:FILE.npz")
      ->required();
  app.add_option("--doses", options->doses, "Multiples of the error that are tried")
      ->delimiter(',')
      ->capture_default_str();
  add_numerics_options(app, common);
  app.footer(
      "Example: tenonnx inject examples/models/shapes_deimv2.onnx --at TENSOR --error gauss:0.01 "
      "--images DIR");
  return [&globals, options] {
    options->common.progress = make_progress(globals);
    const Result<InjectResult> result = inject(*options);
    if (!result.ok()) return fail(result.status());
    print_result(globals, to_json(*result), describe(*result));
    return static_cast<int>(kExitPassed);
  };
}

}  // namespace tenonnx::cli
