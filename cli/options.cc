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

void add_feed_options(CLI::App& app, CompareOptions& options) {
  app.add_option("--inputs", options.inputs,
                 "Input tensors: an .npz with the names of the model's inputs, or a folder of .npz "
                 "(one input each) or of .npy files");
  app.add_option("--images", options.images,
                 "Images instead: a directory, or one file. With neither the inputs are random and "
                 "the verdict is INCONCLUSIVE at best");
  app.add_option("--max-images", options.max_images, "Use the first N images only; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--random-inputs", options.random_inputs, "How many, where nothing is given")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the random inputs")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void add_storage_option(CLI::App& app, CompareOptions& options) {
  app.add_option("--storage", options.storage,
                 "The type whose rounding is the noise floor: float16, bfloat16 or float32; by "
                 "default what the executor stores");
}

void add_memory_option(CLI::App& app, CompareOptions& options) {
  app.add_option("--memory", options.memory_mib, "MiB of tensors that are held at a time")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
}

void add_numerics_options(CLI::App& app, CompareOptions& options) {
  app.add_option("--ref", options.ref, "What is taken as right: an executor address")
      ->capture_default_str();
  add_feed_options(app, options);
  add_preparation_options(app, options.preparation);
  add_thread_options(app, options.load);
}

}  // namespace tenonnx::cli
