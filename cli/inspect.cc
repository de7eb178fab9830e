// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/inspect.h"

#include <filesystem>
#include <memory>

#include "command.h"

namespace tenonnx::cli {

RunCommand setup_inspect(CLI::App& app, const Globals& globals) {
  auto model = std::make_shared<std::filesystem::path>();
  app.add_option("model", *model, "The ONNX model")->required();
  app.footer("Example: tenonnx inspect examples/models/shapes_deimv2.onnx");
  return [&globals, model] {
    const Result<InspectReport> report = inspect_file(*model);
    if (!report.ok()) return fail(report.status());
    print_result(globals, to_json(*report), describe(*report));
    return static_cast<int>(kExitPassed);
  };
}

}  // namespace tenonnx::cli
