// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <memory>

#include "base/status.h"
#include "command.h"
#include "passes_options.h"

namespace tenonnx::cli {
namespace {

struct RewriteCommand : PassesCommand {
  std::string score;                 // of prune_queries
  bool legacy_square_clamp = false;  // of replace_grid_sample_discrete
};

// What `flag` says, as the option of the pass that it belongs to.
Status set_option_of(OptimizeOptions& options, std::string_view flag, std::string_view pass,
                     std::string_view option, const std::string& value) {
  if (std::find(options.passes.begin(), options.passes.end(), pass) == options.passes.end())
    return InvalidArgument("{} is an option of pass {}, which does not run: add it to --pass", flag,
                           pass);
  const auto [there, added] = options.options.emplace(fmt::format("{}.{}", pass, option), value);
  if (!added && there->second != value)
    return InvalidArgument("{} means {}.{}={}, and --option says {}: give one of them", flag, pass,
                           option, value, there->second);
  return {};
}

Status set_options_of_passes(RewriteCommand& command) {
  if (!command.score.empty())
    TENONNX_RETURN_IF_ERROR(
        set_option_of(command.options, "--score", "prune_queries", "score", command.score));
  if (!command.legacy_square_clamp) return {};
  // The fault is one of the historical formula alone.
  for (const auto& [option, value] :
       {std::pair("legacy_square_clamp", "1"), std::pair("formula", "historical")})
    TENONNX_RETURN_IF_ERROR(set_option_of(command.options, "--legacy-square-clamp",
                                          "replace_grid_sample_discrete", option, value));
  return {};
}

}  // namespace

RunCommand setup_rewrite(CLI::App& app, const Globals& globals) {
  auto command = std::make_shared<RewriteCommand>();
  add_passes_options(app, *command);
  app.add_option("--pass", command->options.passes,
                 "The passes to run, once each, in this order: PASS,PASS")
      ->delimiter(',');
  app.add_option("--score", command->score,
                 "Of prune_queries: the tensor that says which queries matter")
      ->type_name("TENSOR");
  app.add_flag(
      "--legacy-square-clamp", command->legacy_square_clamp,
      "Of replace_grid_sample_discrete: the historical formula with the fault of its first "
      "implementations, both axes bound by H - 1, to find out what an old deployment does");
  return [&globals, command] {
    if (command->options.passes.empty() && !command->list && command->explain.empty())
      return fail(InvalidArgument("no pass is named: give --pass PASS; --list lists them"));
    if (const Status status = set_options_of_passes(*command); !status.ok()) return fail(status);
    return run_passes_command(globals, *command);
  };
}

}  // namespace tenonnx::cli
