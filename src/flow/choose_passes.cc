// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/choose_passes.h"

#include <set>

#include "base/status.h"

namespace tenonnx {
namespace {

bool runs_by_default(const PassInfo& pass) {
  return pass.name == "fold_constants" || pass.stage == PassStage::kOptimize;
}

Status check_default(const PassInfo& pass, std::string_view option) {
  if (runs_by_default(pass)) return {};
  if (pass.name == "fix_input_shapes")
    return InvalidArgument("{} '{}': it runs where --input-shape is given, and not otherwise",
                           option, pass.name);
  return InvalidArgument(
      "{} '{}': it is of stage {} and runs only by name: tenonnx rewrite MODEL --pass {} -o OUT",
      option, pass.name, to_string(pass.stage), pass.name);
}

}  // namespace

Result<std::vector<const PassInfo*>> choose_passes(const OptimizeOptions& options) {
  std::set<const PassInfo*> chosen;
  std::vector<const PassInfo*> named;
  for (const std::string& name : options.passes) {
    TENONNX_ASSIGN_OR_RETURN(const PassInfo* pass, find_pass(name));
    if (pass->name != "fix_input_shapes") {
      if (chosen.insert(pass).second) named.push_back(pass);
    } else if (options.input_shapes.empty()) {
      return InvalidArgument("pass {} needs --input-shape NAME=DIMS", pass->name);
    }
  }
  if (options.passes.empty()) {
    for (const std::string& name : options.only) {
      TENONNX_ASSIGN_OR_RETURN(const PassInfo* pass, find_pass(name));
      TENONNX_RETURN_IF_ERROR(check_default(*pass, "--only"));
      chosen.insert(pass);
    }
    if (options.only.empty())
      for (const PassInfo& pass : all_passes())
        if (runs_by_default(pass)) chosen.insert(&pass);
  }
  for (const std::string& name : options.skip) {
    TENONNX_ASSIGN_OR_RETURN(const PassInfo* pass, find_pass(name));
    TENONNX_RETURN_IF_ERROR(check_default(*pass, "--skip"));
    if (chosen.erase(pass) == 0)
      return InvalidArgument("--skip '{}': --only does not name it, so it does not run anyway",
                             name);
  }
  if (chosen.empty() && options.input_shapes.empty())
    return InvalidArgument("no pass is left to run");
  if (!named.empty()) return named;
  return std::vector<const PassInfo*>(chosen.begin(), chosen.end());
}

}  // namespace tenonnx
