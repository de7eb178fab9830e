// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fuse_rms_normalization: the chain that computes it becomes the operator RMSNormalization.
//
// before: y = x / sqrt(mean(x^2) + epsilon) * scale
// after:  y = RMSNormalization<axis, epsilon>(x, scale)
//
// Conditions: the mean over the last axis or several last axes, axes kept; float32; the scale a
// constant with one element for each element of these axes, or missing (ones then); nothing inside
// is used elsewhere. Epsilon is taken over exactly. A Mul by anything else stays behind the
// operator. Forms: normalization_pattern.h. Class algebraic. Source: ONNX RMSNormalization-23, of
// which ONNX Runtime 1.29 has a CPU kernel.
// Refuses: opset below 23, which has no such operator; another dtype; other axes; epsilon behind
// the root; the mean square of another tensor; an inside that is used elsewhere.
#include "base/status.h"
#include "passes/fuse_normalization.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {

namespace passes {

Result<PassOutcome> fuse_rms_normalization(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("fuse_rms_normalization", options, {}));
  return fuse_normalization(model, "RMSNormalization", 23, /*centered=*/false);
}

}  // namespace passes
}  // namespace tenonnx
