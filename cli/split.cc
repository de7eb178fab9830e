// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/split.h"

#include <memory>

#include "command.h"
#include "options.h"

namespace tenonnx::cli {

RunCommand setup_split(CLI::App& app, const Globals& globals) {
  auto request = std::make_shared<SplitRequest>();
  app.add_option("model", request->model, "The ONNX model")->required();
  app.add_option("--at", request->at, "Tensors to cut at, by name or unique suffix: T0,T1,T2")
      ->required()
      ->delimiter(',');
  app.add_option("-o,--out", request->out, "The directory to write")->required();
  app.add_option("--name-prefix", request->name_prefix, "Boundary tensors are named PREFIX_0, ...")
      ->capture_default_str();
  add_preparation_options(app, request->preparation);
  app.add_flag("--force", request->force, "Replace an existing directory");
  app.add_flag("--keep-metadata", request->keep_metadata,
               "Keep the exporter's doc strings and metadata (they may hold paths of its machine)");
  return [&globals, request] {
    const Result<SplitReport> report = split_file(*request);
    if (!report.ok()) return fail(report.status());
    print_result(globals, to_json(*report), describe(*report));
    return static_cast<int>(kExitPassed);
  };
}

}  // namespace tenonnx::cli
