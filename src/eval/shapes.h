// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The example's data: synthetic images of circles, rectangles, triangles and crosses with their
// boxes. Integer arithmetic only, so that this generator and the Python one that trained the
// example model (tools/models/shapes.py) give the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/coco.h"

namespace tenonnx {

inline constexpr int kShapesSize = 160;
inline constexpr std::array<std::string_view, 4> kShapesClasses = {"circle", "rectangle",
                                                                   "triangle", "cross"};
// Training used seeds below; images for evaluation begin here.
inline constexpr std::uint64_t kShapesHeldOutSeed = 1'000'000;

struct ShapesObject {
  int label = 0;                       // index into kShapesClasses
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // pixels; right and bottom exclusive
  bool operator==(const ShapesObject&) const = default;
};

struct ShapesImage {
  std::vector<std::uint8_t> rgb;      // [160,160,3], row-major, red first
  std::vector<ShapesObject> objects;  // 0 to 7 (an object that finds no place is left out), in the
                                      // order of drawing; any two overlap by IoU <= 1/6
};

ShapesImage make_shapes_image(std::uint64_t seed);

// "shapes_001000000.png"
std::string shapes_file_name(std::uint64_t seed);

// Annotations of the images of these seeds: image id = seed, category id = label, area = that of
// the box, annotation ids from 1. InvalidArgument where a seed occurs twice or exceeds int64.
Result<CocoDataset> shapes_annotations(std::span<const std::uint64_t> seeds);

}  // namespace tenonnx
