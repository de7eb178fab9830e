// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// tenonnx.proof Differing for ONNX Runtime: a1 .. an, b1 .. bn, more .. -> count (int64 [1]), in
// how many elements a1 differs from b1, a2 from b2 and so on, in the sense of compare_identical():
// every bit, but a NaN is a NaN. Tensors of different dtypes or shapes differ everywhere. So
// tensors are compared where a graph makes them, and their memory is free for what comes next.
//
// Attributes: pairs (n), part (any number, for the listener).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "tenonnx/base.h"

namespace tenonnx {

class CustomOpSet;

inline constexpr const char* kProofDomain = "tenonnx.proof";
inline constexpr const char* kDiffering = "Differing";

// tenonnx.proof Beyond: a1 .. an -> count (int64 [1]), how many of these tensors hold an element
// that is not finite or so large that arithmetic on it may overflow: above 1e6, of float16
// above 64. Integers are never counted.
inline constexpr const char* kBeyond = "Beyond";

// Called where a count is not 0, with all inputs of the node: views, for as long as the call lasts.
using DifferingListener = std::function<void(std::int64_t part, std::span<const Tensor> inputs)>;

// Needs onnxruntime() to have succeeded.
std::shared_ptr<const CustomOpSet> make_proof_ops(DifferingListener listener = {});

}  // namespace tenonnx
