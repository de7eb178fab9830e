// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/format.h>

#include <memory>

#include "base/wording.h"
#include "command.h"
#include "pipeline/dataset.h"

namespace tenonnx::cli {

RunCommand setup_data(CLI::App& app, const Globals& globals) {
  app.require_subcommand(1);
  auto options = std::make_shared<ShapesOptions>();
  CLI::App* shapes = app.add_subcommand(
      "shapes",
      "Circles, rectangles, triangles and crosses with COCO annotations: what the example "
      "model was trained on, the same bits on every machine");
  shapes->fallthrough();
  shapes->add_option("--count", options->count, "How many images")->capture_default_str();
  shapes
      ->add_option("--seed", options->seed,
                   "Of the first image, then one up each. Held-out images begin at 1000000")
      ->capture_default_str();
  shapes->add_option("-o,--out", options->out, "The directory to write")->required();
  shapes->add_flag("--force", options->force, "Replace an existing directory");
  return [&globals, options] {
    options->progress = make_progress(globals);
    const Status status = write_shapes_dataset(*options);
    if (!status.ok()) return fail(status);
    const std::string labels = (options->out / "annotations.json").string();
    print_result(globals,
                 {{"schema_version", 1},
                  {"images", options->count},
                  {"directory", options->out.string()},
                  {"annotations", labels}},
                 fmt::format("{} in '{}', labels in '{}'", counted(options->count, "image"),
                             options->out.string(), labels));
    return static_cast<int>(kExitPassed);
  };
}

}  // namespace tenonnx::cli
