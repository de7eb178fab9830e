// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The operators of the domain tenonnx.sim for ONNX Runtime: what passes/sim_common.h puts into a
// graph. Round (float32) and RoundDouble (float64) are passes/sim_round.h; sim_ops.h has the
// others.
//
// x -> y, one input and one output of the same shape. Attributes: storage ("float32", "float16",
// "bfloat16"); saturate, infinite, nan (floats; absent: overflow is infinity); pattern, flush,
// range_only (ints, 0 where absent); relative_error (float), seed (int).
#pragma once

#include <memory>

#include "ort/custom_ops.h"

namespace tenonnx {

// Needs onnxruntime() to have succeeded.
std::shared_ptr<const CustomOpSet> make_sim_ops();

}  // namespace tenonnx
