// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// NumPy's .npy (format 1.0 to 3.0, C order, little endian) and .npz (stored, and deflated on
// reading). bfloat16, which NumPy lacks, is written as uint16 with the array's name ending in
// ".bfloat16" inside an .npz and refused in an .npy.
#pragma once

#include <filesystem>
#include <string_view>

#include "tenonnx/base.h"

namespace tenonnx {

Result<Tensor> read_npy(const std::filesystem::path& path);
Result<Tensor> parse_npy(std::string_view bytes, std::string_view where);
Status write_npy(const std::filesystem::path& path, const Tensor& tensor);
Result<TensorMap> read_npz(const std::filesystem::path& path);
Status write_npz(const std::filesystem::path& path, const TensorMap& tensors);

}  // namespace tenonnx
