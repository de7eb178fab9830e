// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The operators of kernels.inc. libtenonnx_ops.so gives them to any ONNX Runtime from 1.18 on:
//   C++      options.RegisterCustomOpsLibrary("libtenonnx_ops.so")
//   Python   options.register_custom_ops_library("libtenonnx_ops.so")
#pragma once

#include "kernels/custom_op.h"

namespace tenonnx::kernels {

inline constexpr const char* kDomain = "tenonnx";

#define TENONNX_KERNEL(name, add, summary) void add(CustomOps& ops);
#include "kernels/kernels.inc"
#undef TENONNX_KERNEL

inline CustomOps all_ops() {
  CustomOps ops;
#define TENONNX_KERNEL(name, add, summary) add(ops);
#include "kernels/kernels.inc"
#undef TENONNX_KERNEL
  return ops;
}

}  // namespace tenonnx::kernels
