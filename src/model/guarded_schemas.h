// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// onnx's operator schemas with a limit on what their inference may allocate.
#pragma once

#include <onnx/defs/schema.h>

namespace tenonnx {

// onnx's inference writes a vector of N numbers as N messages wherever it might be a shape, from
// the recorded type alone: data propagation for every operator that it covers (Gather, Cast, Add,
// ...), and the target of Reshape and the like. A 1-D tensor of 800 million elements then takes
// more memory than a machine has, and a damaged file can claim any number. These schemas leave a
// node without inference where a 1-D input is longer than 65,536, which no shape is.
const onnx::ISchemaRegistry& guarded_schemas();

}  // namespace tenonnx
