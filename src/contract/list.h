// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Tensors as errors list them.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>

#include "tenonnx/base.h"

namespace tenonnx {

// "'images' float32 [1,3,640,640], 'orig_target_sizes' int64 [1,2]"
inline std::string list(std::span<const TensorInfo> infos) {
  std::string text;
  for (const TensorInfo& info : infos)
    text += fmt::format("{}'{}' {} {}", text.empty() ? "" : ", ", info.name, to_string(info.dtype),
                        to_string(info.shape));
  return text;
}

}  // namespace tenonnx
