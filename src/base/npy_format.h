// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What .npy and .npz share.
#pragma once

#include <string>

#include "tenonnx/base.h"

namespace tenonnx {

// The bytes before the data of an .npy of format 1.0. Unsupported for bfloat16.
Result<std::string> npy_header(DType dtype, const Shape& shape);

}  // namespace tenonnx
