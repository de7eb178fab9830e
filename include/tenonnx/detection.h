// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a detector found: one box with its class and score.
#pragma once

#include <cstdint>

namespace tenonnx {

// Corners in pixels of the original image, as the model gives them: not clipped to the image. x1
// and y1 are the right and bottom edge.
struct Box {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  bool operator==(const Box&) const = default;
};

struct Detection {
  std::int64_t label = 0;  // class index of the model
  float score = 0;
  Box box;
  bool operator==(const Detection&) const = default;
};

}  // namespace tenonnx
