// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "bench/bench.h"

#include <memory>

#include "command.h"
#include "options.h"

namespace tenonnx::cli {

RunCommand setup_bench(CLI::App& app, const Globals& globals) {
  auto package = std::make_shared<std::filesystem::path>();
  auto options = std::make_shared<BenchOptions>();
  app.add_option("package", *package, "A directory that 'tenonnx deploy' wrote")->required();
  app.add_option("--warm-up", options->warm_up, "Runs that are not counted")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--runs", options->runs, "Runs that are counted (P99 is given from 500 on)")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--image", options->image, "The image for end to end; by default a synthetic one");
  app.add_flag("--force", options->allow_failed_package,
               "Also time a package whose verdict is FAIL");
  add_scheduling_options(app, options->scheduling);
  return [&globals, package, options] {
    options->progress = make_progress(globals);
    const Result<BenchResult> result = bench_package(*package, *options);
    if (!result.ok()) return fail(result.status());
    print_result(globals, to_json(*result), to_text(*result));
    return static_cast<int>(kExitPassed);
  };
}

}  // namespace tenonnx::cli
