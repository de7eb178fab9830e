// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/placement_context.h"

#include <cstring>

#include "adapters/address.h"
#include "adapters/context.h"
#include "base/status.h"
#include "base/wording.h"
#include "flow/placement_checks.h"

namespace tenonnx {
namespace {

std::size_t differing(const TensorMap& a, const TensorMap& b) {
  std::size_t count = 0;
  for (const auto& [name, tensor] : a) {
    const auto it = b.find(name);
    const bool same = it != b.end() && it->second.dtype() == tensor.dtype() &&
                      it->second.shape() == tensor.shape() &&
                      std::memcmp(it->second.raw(), tensor.raw(), tensor.bytes()) == 0;
    count += same ? 0 : 1;
  }
  return count;
}

}  // namespace

Status prove_context(const ContextRequest& request, PlacementResult& result) {
  const PlacementOptions& options = request.options;
  LoadOptions load = options.load;
  load.disable_fallback = !options.allow_fallback;
  Status compiled =
      compile_context_for(request.address, request.prepared, options.context, options.embed, load);
  if (!compiled.ok()) {
    if (compiled.code() == StatusCode::kIo || compiled.code() == StatusCode::kFailedPrecondition)
      return compiled;
    result.checks.push_back(failed_check("context compiles", compiled.message()));
    return {};
  }
  result.checks.push_back(passed_check("context compiles"));
  TENONNX_ASSIGN_OR_RETURN(const Model model, Model::load(options.context));
  TENONNX_ASSIGN_OR_RETURN(const auto executor, make_executor(request.address));
  load.profile = true;
  const auto graph = executor->load(model, load);
  if (!graph.ok()) {
    result.checks.push_back(failed_check("context reloads", graph.status().message()));
    return {};
  }
  result.checks.push_back(passed_check("context reloads"));
  const auto made = (*graph)->run(request.inputs);
  if (!made.ok()) {
    result.checks.push_back(failed_check("context runs", made.status().message()));
    return {};
  }
  result.checks.push_back(make_check("outputs that differ from those without a context",
                                     static_cast<double>(differing(request.expected, *made)),
                                     Comparison::kAtMost, {0, "bit for bit"}));
  TENONNX_ASSIGN_OR_RETURN(const Placement profile, (*graph)->placement());
  int ran = 0;
  for (const auto& [provider, count] : profile.providers)
    if (provider == result.provider) ran = count;
  result.checks.push_back(
      make_check("partitions of the context that ran on the provider", ran, Comparison::kAtLeast,
                 {static_cast<double>(result.partitions.size()), "as many as without a context"}));
  return {};
}

}  // namespace tenonnx
