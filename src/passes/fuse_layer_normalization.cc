// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fuse_layer_normalization: the chain that computes it becomes the operator LayerNormalization.
//
// before: m = mean(x)  d = x - m  v = mean(d^2)       after: y = LayerNormalization<axis, epsilon>
//         y = d / sqrt(v + epsilon) * scale + bias               (x, scale, bias)
//
// Conditions: both means over the last axis or several last axes, axes kept; float32; scale and
// bias constants with one element for each element of these axes, or missing (ones then); nothing
// inside is used elsewhere. Epsilon is taken over exactly. A Mul or Add by anything else stays
// behind the operator. Forms: normalization_pattern.h. Class algebraic.
// Source: ONNX LayerNormalization-17.
// Refuses: opset below 17, which has no such operator; another dtype; other axes; epsilon behind
// the root; mean and variance of different tensors; an inside that is used elsewhere.
#include "base/status.h"
#include "passes/fuse_normalization.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {

namespace passes {

Result<PassOutcome> fuse_layer_normalization(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("fuse_layer_normalization", options, {}));
  return fuse_normalization(model, "LayerNormalization", 17, /*centered=*/true);
}

}  // namespace passes
}  // namespace tenonnx
