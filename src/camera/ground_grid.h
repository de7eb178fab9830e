// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Inverse perspective: where the cells of a bird's-eye view lie in the image of a camera. A point
// (x, y, z) of the vehicle, metres, is
//   c = R (x, y, z)^T + t          in the camera, which looks along +z
//   u, v = K (c.x / c.z, c.y / c.z, 1)^T
// in pixels of the image, and g = 2 u / width - 1 for GridSample: u = 0 is the left edge of the
// first pixel then. Calibrations that count pixels from their centres (OpenCV) need pixel_centres:
// g = (2 u + 1) / width - 1.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

struct Camera {
  std::array<double, 9> k{}, r{};  // row by row
  std::array<double, 3> t{};       // metres
};

// JSON: {"K": [[..],[..],[..]], "R": .., "t": [..]}, or {"cameras": [those, ..]}; each may have a
// "name". An .npz: arrays K and R [3,3], t [3], or all with one more dimension in front, the
// cameras. DataLoss where one is missing, of another shape, not finite, R no rotation (to 1e-3) or
// K no matrix of a pinhole camera: its last row is 0 0 1, its focal lengths are above 0.
Result<std::vector<Camera>> read_calibration(const std::filesystem::path& path);

// Cell (row, column) is at x = x_min + (column + 0.5) / columns * (x_max - x_min), y likewise from
// the row, z = height. The limits may fall, which mirrors the axis.
struct GroundArea {
  double x_min = 0, x_max = 0, y_min = 0, y_max = 0;  // metres
  double height = 0;                                  // of the plane
  std::int64_t rows = 0, columns = 0;
};

struct ImageSize {
  std::int64_t width = 0, height = 0;  // pixels
};

struct GroundGrid {
  Tensor grid;              // float32 [cameras, rows, columns, 2], (x, y) as GridSample takes them
  std::int64_t behind = 0;  // points with c.z <= 0, marked
  std::int64_t beside = 0;  // before the camera, outside of its image
  std::int64_t inside = 0;
};

// Both coordinates of a point that the camera cannot see: under zeros padding it samples nothing at
// any size of the values from 2 x 2, with align_corners too.
inline constexpr float kOutsideMark = -8;

// InvalidArgument: sizes below 1, an area without extent, limits that are not finite or beyond 1e6
// m, cells smaller than 1e-6 m.
Result<GroundGrid> ground_grid(const std::vector<Camera>& cameras, const GroundArea& area,
                               const ImageSize& image, bool pixel_centres);

}  // namespace tenonnx
