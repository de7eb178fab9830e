// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/geometry.h"

#include <algorithm>
#include <cmath>

namespace tenonnx {

int canvas_width(const ImageInput& image) {
  return static_cast<int>(image.shape[image.layout == Layout::kNchw ? 3 : 2]);
}

int canvas_height(const ImageInput& image) {
  return static_cast<int>(image.shape[image.layout == Layout::kNchw ? 2 : 1]);
}

Placement2d place(const ImageInput& image, int original_width, int original_height) {
  Placement2d p;
  p.canvas_width = p.width = canvas_width(image);
  p.canvas_height = p.height = canvas_height(image);
  if (image.fit == ResizeFit::kStretch) return p;
  const double ratio = std::min(static_cast<double>(p.canvas_width) / original_width,
                                static_cast<double>(p.canvas_height) / original_height);
  const auto scaled = [ratio](int original, int limit) {
    return std::clamp(static_cast<int>(std::lround(original * ratio)), 1, limit);
  };
  p.width = scaled(original_width, p.canvas_width);
  p.height = scaled(original_height, p.canvas_height);
  p.left = (p.canvas_width - p.width) / 2;
  p.top = (p.canvas_height - p.height) / 2;
  return p;
}

TargetSize target_size(const Contract& contract, int original_width, int original_height) {
  if (contract.image.fit == ResizeFit::kStretch) return {original_width, original_height};
  return {canvas_width(contract.image), canvas_height(contract.image)};
}

Box to_original(const Box& box, const Placement2d& p, int original_width, int original_height) {
  const double sx = static_cast<double>(original_width) / p.width;
  const double sy = static_cast<double>(original_height) / p.height;
  return {static_cast<float>((box.x0 - p.left) * sx), static_cast<float>((box.y0 - p.top) * sy),
          static_cast<float>((box.x1 - p.left) * sx), static_cast<float>((box.y1 - p.top) * sy)};
}

}  // namespace tenonnx
