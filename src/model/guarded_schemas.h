// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// onnx's operator schemas with a guard before what would end the process.
#pragma once

#include <onnx/defs/schema.h>

namespace tenonnx {

// onnx's inference writes a vector of N numbers as N messages wherever it might be a shape, from
// the recorded type alone: data propagation for every operator that it covers (Gather, Cast, Add,
// ...), and the target of Reshape and the like. A 1-D tensor of 800 million elements then takes
// more memory than a machine has, and a damaged file can claim any number. These schemas leave a
// node without inference where a 1-D input is longer than 65,536, which no shape is, and a
// convolution whose kernel has another rank than its input, for which onnx 1.21 reads beyond a
// vector's end.
const onnx::ISchemaRegistry& guarded_schemas();

}  // namespace tenonnx
