// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// eliminate_dead_nodes: removes what nothing uses.
//
// before: y = Relu(x); a = Neg(x); w unused      after: y = Relu(x)
//
// Nodes none of whose outputs is used (bodies of If/Loop/Scan are cleaned too), and initializers
// that nothing reads. A node with one used output stays whole. Class bitwise. Refuses nothing.
#include <string>
#include <unordered_set>

#include "base/status.h"
#include "passes/edit.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {
namespace passes {

Result<PassOutcome> eliminate_dead_nodes(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("eliminate_dead_nodes", options, {}));
  PassOutcome outcome;
  onnx::ModelProto& proto = model.mutable_proto();
  for (std::string& label : remove_dead_nodes(*proto.mutable_graph()))
    outcome.sites.push_back({std::move(label), "nothing uses what it makes"});
  const auto initializers = [&] {
    std::vector<std::string> names;
    for (const auto& tensor : proto.graph().initializer()) names.push_back(tensor.name());
    return names;
  };
  const std::vector<std::string> before = initializers();
  remove_unused(proto);
  const std::vector<std::string> after = initializers();
  const std::unordered_set<std::string_view> kept(after.begin(), after.end());
  for (const std::string& name : before)
    if (!kept.contains(name))
      outcome.sites.push_back({fmt::format("initializer '{}'", name), "nothing reads it"});
  outcome.applied = static_cast<int>(outcome.sites.size());
  return outcome;
}

}  // namespace passes
}  // namespace tenonnx
