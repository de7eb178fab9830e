// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "options.h"

namespace tenonnx::cli {

namespace {

// The same three options, whichever struct takes them.
CLI::Option* add_threads(CLI::App& app, int& intra, int& inter, bool& spinning) {
  app.add_option("--intra-threads", intra, "Threads inside an operator; 0: one per physical core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--spinning", spinning, "Let idle threads spin instead of sleep");
  return app
      .add_option("--inter-threads", inter,
                  "Operators at a time; above 1 runs the graph in parallel")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
}

}  // namespace

void add_scheduling_options(CLI::App& app, SchedulingParams& scheduling) {
  add_threads(app, scheduling.intra_op_threads, scheduling.inter_op_threads, scheduling.spinning);
}

void add_thread_options(CLI::App& app, LoadOptions& load) {
  add_threads(app, load.intra_op_threads, load.inter_op_threads, load.spinning)
      ->each([&load](const std::string&) { load.parallel = load.inter_op_threads > 1; });
}

void add_image_options(CLI::App& app, std::filesystem::path& images, std::filesystem::path& labels,
                       std::size_t& max_images) {
  app.add_option("--images", images,
                 "Images of the kind that the model will see: a directory, or one file. Without "
                 "them the inputs are random and the verdict is INCONCLUSIVE");
  app.add_option("--labels", labels,
                 "COCO annotations, or 'none'; by default annotations.json in the directory of the "
                 "images");
  app.add_option("--max-images", max_images, "Use the first N images only; 0: all")
      ->check(CLI::NonNegativeNumber)  // CLI11 reads "-1" as 2^64 - 1
      ->capture_default_str();
}

void add_input_shape_option(CLI::App& app, std::map<std::string, std::string>& shapes) {
  app.add_option_function<std::vector<std::string>>(
         "--input-shape",
         [&shapes](const std::vector<std::string>& values) {
           for (const std::string& value : values) {
             const std::size_t equals = value.rfind('=');
             if (equals == std::string::npos || equals == 0 || equals + 1 == value.size())
               throw CLI::ValidationError(
                   "--input-shape", "'" + value + "' is not NAME=DIMS, as images=1x3x640x640");
             shapes[value.substr(0, equals)] = value.substr(equals + 1);
           }
         },
         "Make a dynamic input static: NAME=1x3x640x640 (repeatable)")
      ->type_name("NAME=DIMS");
}

void add_preparation_options(CLI::App& app, Preparation& preparation) {
  add_input_shape_option(app, preparation.input_shapes);
  app.add_flag_callback(
      "--no-fold-constants", [&preparation] { preparation.fold_constants = false; },
      "Keep the exporter's constant subgraphs (vendors' compilers reject them)");
}

}  // namespace tenonnx::cli
