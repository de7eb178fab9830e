// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// tenonnx.proof Differing for ONNX Runtime: a, b -> count (int64 [1]), how many elements of two
// tensors of one dtype and shape differ, in the sense of compare_identical(): every bit, but a NaN
// is a NaN. So two tensors are compared where a graph makes them, and their memory is free for what
// comes next. Tensors of different dtypes or shapes differ everywhere.
#pragma once

#include <memory>

#include "ort/custom_ops.h"

namespace tenonnx {

inline constexpr const char* kProofDomain = "tenonnx.proof";
inline constexpr const char* kDiffering = "Differing";

// Needs onnxruntime() to have succeeded.
std::shared_ptr<const CustomOpSet> make_proof_ops();

}  // namespace tenonnx
