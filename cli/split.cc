// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/split.h"

#include <memory>

#include "command.h"
#include "flow/cuts.h"
#include "options.h"

namespace tenonnx::cli {

RunCommand setup_split(CLI::App& app, const Globals& globals) {
  auto request = std::make_shared<SplitRequest>();
  app.add_option("model", request->model, "The ONNX model")->required();
  auto list = std::make_shared<bool>(false);
  auto* at = app.add_option("--at", request->at,
                            "Tensors to cut at, by name or unique suffix: T0,T1,T2; or 'auto', "
                            "which finds the features before a detector's decoder")
                 ->delimiter(',');
  auto* out = app.add_option("-o,--out", request->out, "The directory to write");
  app.add_flag("--list", *list,
               "Cut nothing; show where the graph is narrow, and the automatic cut")
      ->excludes(at)
      ->excludes(out);
  app.add_option("--name-prefix", request->name_prefix, "Boundary tensors are named PREFIX_0, ...")
      ->capture_default_str();
  add_preparation_options(app, request->preparation);
  app.add_flag("--force", request->force, "Replace an existing directory");
  app.add_flag("--keep-metadata", request->keep_metadata,
               "Keep the exporter's doc strings and metadata (they may hold paths of its machine)");
  app.footer("Example: tenonnx split examples/models/shapes_deimv2.onnx --at auto -o parts/");
  return [&globals, request, list] {
    if (*list) {
      const Result<CutList> cuts = list_cuts({request->model, request->preparation, {}});
      if (!cuts.ok()) return fail(cuts.status());
      print_result(globals, to_json(*cuts), describe(*cuts));
      return static_cast<int>(kExitPassed);
    }
    if (request->at.empty() || request->out.empty())
      return fail(Status(StatusCode::kInvalidArgument,
                         "split needs --at T0,T1,... (or --at auto) and -o DIR; --list shows where "
                         "the graph can be cut"));
    const Result<SplitReport> report = split_file(*request);
    if (!report.ok()) return fail(report.status());
    print_result(globals, to_json(*report), describe(*report));
    return static_cast<int>(kExitPassed);
  };
}

}  // namespace tenonnx::cli
