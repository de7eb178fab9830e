// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The example's images as files: what `tenonnx data shapes` writes.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/log.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct ShapesOptions {
  std::int64_t count = 20;
  std::uint64_t seed = 1'000'000;  // of the first image; held-out images begin here
  std::filesystem::path out;
  bool force = false;  // replace what stands at `out`
  Progress progress;
};

// PNG images shapes_<seed>.png and annotations.json (COCO) in a directory that appears whole or not
// at all. InvalidArgument for a count below 1 or above 1,000,000, or seeds beyond int64;
// FailedPrecondition where `out` exists and `force` is not set.
Status write_shapes_dataset(const ShapesOptions& options);

}  // namespace tenonnx
