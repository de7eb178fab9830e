// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/step.h"

#include "base/status.h"
#include "model/check.h"

namespace tenonnx {
namespace {

Status as_defect(const Status& status) { return Internal("{}", status.message()); }

}  // namespace

Status check_opset(const PassInfo& pass, const Model& model) {
  const std::int64_t opset = model.opset();
  if (opset >= pass.min_opset && opset <= pass.max_opset) return {};
  return Unsupported("pass {} takes opset {} to {}, the model imports {}", pass.name,
                     pass.min_opset, pass.max_opset, opset);
}

Result<PassOutcome> run_step(const PassInfo& pass, Model& model, const PassOptions& options) {
  auto outcome = pass.run(model, options);
  if (!outcome.ok()) {
    // Errors of a pass begin with its name already, where they are about its options.
    const std::string own = fmt::format("{}: ", pass.name);
    std::string message = outcome.status().message();
    if (message.starts_with(own)) message.erase(0, own.size());
    const Status status =
        Status(outcome.status().code(), fmt::format("pass {}: {}", pass.name, message));
    return status.code() == StatusCode::kDataLoss ? as_defect(status) : status;
  }
  if (outcome->applied > 0) {
    model.share_weights();  // that the pass made
    if (const Status status = check_model(model, fmt::format("after pass {}", pass.name));
        !status.ok())
      return as_defect(status);
  }
  return outcome;
}

}  // namespace tenonnx
