// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "camera/ground_grid.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/status.h"

namespace tenonnx {
namespace {

// Beyond it a coordinate is marked: far outside of every image, and float16 still holds it.
constexpr double kFarthest = 1e4;

// Metres. A camera on a mountain sees 300 km of the ground; calibrations in millimetres pass, too.
constexpr double kFarthestCell = 1e6;
constexpr double kSmallestCell = 1e-6;

Status check_limits(std::string_view name, double from, double to, std::int64_t cells) {
  if (!std::isfinite(from) || !std::isfinite(to) || from == to)
    return InvalidArgument(
        "the area reaches from {} = {} to {} m: two different numbers are "
        "needed",
        name, from, to);
  if (std::max(std::abs(from), std::abs(to)) > kFarthestCell)
    return InvalidArgument(
        "the area reaches from {} = {:g} to {:g} m: at most {:g} m from the vehicle's origin are "
        "possible. --x, --y and --height are metres",
        name, from, to, kFarthestCell);
  if (const double size = std::abs(to - from) / static_cast<double>(cells); size < kSmallestCell)
    return InvalidArgument(
        "the area reaches from {} = {} to {} m in {} cells of {:g} m: at least {:g} m are "
        "possible. --x, --y and --height are metres",
        name, from, to, cells, size, kSmallestCell);
  return {};
}

}  // namespace

Result<GroundGrid> ground_grid(const std::vector<Camera>& cameras, const GroundArea& area,
                               const ImageSize& image, bool pixel_centres) {
  constexpr std::int64_t kMost = 1 << 14;
  if (area.rows < 1 || area.columns < 1 || area.rows > kMost || area.columns > kMost)
    return InvalidArgument("the grid has {} rows and {} columns, 1 to {} of each are possible",
                           area.rows, area.columns, kMost);
  if (image.width < 1 || image.height < 1)
    return InvalidArgument("the image is {} x {} pixels, at least 1 x 1 is needed", image.width,
                           image.height);
  TENONNX_RETURN_IF_ERROR(check_limits("x", area.x_min, area.x_max, area.columns));
  TENONNX_RETURN_IF_ERROR(check_limits("y", area.y_min, area.y_max, area.rows));
  if (!std::isfinite(area.height) || std::abs(area.height) > kFarthestCell)
    return InvalidArgument(
        "the height of the plane is {:g} m: a number from {:g} to {:g} is needed", area.height,
        -kFarthestCell, kFarthestCell);
  if (cameras.empty()) return InvalidArgument("there is no camera");
  GroundGrid made;
  made.grid = Tensor(DType::kFloat32,
                     {static_cast<std::int64_t>(cameras.size()), area.rows, area.columns, 2});
  auto* out = made.grid.mutable_data<float>();
  const auto w = static_cast<double>(image.width), h = static_cast<double>(image.height);
  for (const Camera& camera : cameras)
    for (std::int64_t row = 0; row < area.rows; ++row)
      for (std::int64_t column = 0; column < area.columns; ++column, out += 2) {
        const auto part = [](std::int64_t i, std::int64_t of) {
          return (static_cast<double>(i) + 0.5) / static_cast<double>(of);
        };
        const double p[] = {area.x_min + part(column, area.columns) * (area.x_max - area.x_min),
                            area.y_min + part(row, area.rows) * (area.y_max - area.y_min),
                            area.height};
        double c[3];
        for (std::size_t i = 0; i < 3; ++i)
          c[i] = camera.r[3 * i] * p[0] + camera.r[3 * i + 1] * p[1] + camera.r[3 * i + 2] * p[2] +
                 camera.t[i];
        out[0] = out[1] = kOutsideMark;
        // A point behind the camera is projected into the image, too, upside down.
        if (!(c[2] > 0)) {
          ++made.behind;
          continue;
        }
        const double centre = pixel_centres ? 0.5 : 0;
        const double x = c[0] / c[2], y = c[1] / c[2];
        const double u = camera.k[0] * x + camera.k[1] * y + camera.k[2] + centre;
        const double v = camera.k[3] * x + camera.k[4] * y + camera.k[5] + centre;
        ++(u >= 0 && u <= w && v >= 0 && v <= h ? made.inside : made.beside);
        const double gx = 2 * u / w - 1, gy = 2 * v / h - 1;
        if (!(std::abs(gx) <= kFarthest && std::abs(gy) <= kFarthest)) continue;
        out[0] = static_cast<float>(gx);
        out[1] = static_cast<float>(gy);
      }
  return made;
}

}  // namespace tenonnx
