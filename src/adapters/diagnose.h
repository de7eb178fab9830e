// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Why a graph fails on a simulated device: the first tensor, in the order of execution, that its
// number range cannot hold. Tensors of the main graph are looked at; those inside If/Loop bodies
// are not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/log.h"
#include "device/device.h"
#include "ort/executor.h"

namespace tenonnx {

struct RangeFinding {
  std::string tensor;
  std::string node;     // "Mul '/decoder/layers.0/mlp/Mul'"; "input 'images'" for a graph input
  std::string op_type;  // "Mul"; "" for a graph input
  double max_abs = 0;   // largest finite magnitude in the reference
  double limit = 0;     // largest that the device keeps
  std::string
      limit_of;  // "an element-wise result", "a result of MatMul", "an operand of MatMul 'm'"
  std::int64_t beyond = 0;  // elements beyond the limit, of
  std::int64_t count = 0;   // so many
};
// "tensor 'a' of Mul 'b' reaches 280530 (3 of 25600 elements beyond), but ... keeps 65504 as ...".
std::string to_string(const RangeFinding& finding);

// The first tensor whose float32 reference (ONNX Runtime's CPU, optimisation disabled) exceeds what
// `device` keeps: as a result, and where MatMul or Conv takes it as their operand. Not counted:
// infinities and NaN of the reference, and elements that equal a constant of the model beyond the
// range (masks such as -1e9, anchors of infinity). nullopt where every tensor is within.
// `inputs` by name, all of them. Memory: tensors are looked at in windows of at most 512 MiB.
// InvalidArgument where the device has no arithmetic section.
Result<std::optional<RangeFinding>> first_beyond_range(const Model& model, const TensorMap& inputs,
                                                       const Device& device,
                                                       const Progress& progress = {});

struct NonFiniteFinding {
  std::string tensor;
  std::string node;
  std::string op_type;
  std::int64_t infinite = 0;  // elements, where the reference is finite
  std::int64_t nan = 0;
  std::int64_t count = 0;
};
std::string to_string(const NonFiniteFinding& finding);

// The first tensor that is Inf or NaN on `device` where it is finite on `reference`. Both must keep
// tensor names, as cpu and sim:NAME do.
Result<std::optional<NonFiniteFinding>> first_non_finite(const Model& model,
                                                         const TensorMap& inputs,
                                                         const Executor& reference,
                                                         const Executor& device,
                                                         const Progress& progress = {});

// Both questions for an address "sim:NAME", in sentences for people; "" where nothing was found, or
// where the address is not of a simulated device.
Result<std::string> explain_failure(const Model& model, const TensorMap& inputs,
                                    std::string_view address);

}  // namespace tenonnx
