// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/json.h"
#include "base/npy.h"
#include "base/status.h"
#include "camera/ground_grid.h"

namespace tenonnx {
namespace {

Status numbers(const JsonReader& json, std::span<double> out) {
  TENONNX_ASSIGN_OR_RETURN(const auto items, json.items());
  if (items.size() != out.size()) return json.error(fmt::format("{} numbers", out.size()));
  for (std::size_t i = 0; i < items.size(); ++i) {
    TENONNX_ASSIGN_OR_RETURN(out[i], items[i].number());
  }
  return {};
}

Status matrix(const JsonReader& json, std::span<double, 9> out) {
  TENONNX_ASSIGN_OR_RETURN(const auto rows, json.items());
  if (rows.size() != 3) return json.error("3 rows of 3 numbers");
  for (std::size_t i = 0; i < 3; ++i)
    TENONNX_RETURN_IF_ERROR(numbers(rows[i], out.subspan(3 * i, 3)));
  return {};
}

Status check(const Camera& camera, const std::string& where) {
  const auto finite = [](double v) { return std::isfinite(v); };
  if (!std::all_of(camera.k.begin(), camera.k.end(), finite) ||
      !std::all_of(camera.r.begin(), camera.r.end(), finite) ||
      !std::all_of(camera.t.begin(), camera.t.end(), finite))
    return DataLoss("{}: K, R and t have to be finite numbers", where);
  const auto& k = camera.k;
  if (k[6] != 0 || k[7] != 0 || k[8] != 1 || k[3] != 0)
    return DataLoss(
        "{}: K is [[{},{},{}],[{},{},{}],[{},{},{}]], expected [[fx,skew,cx],[0,fy,cy],"
        "[0,0,1]] (pixels)",
        where, k[0], k[1], k[2], k[3], k[4], k[5], k[6], k[7], k[8]);
  if (k[0] <= 0 || k[4] <= 0)
    return DataLoss("{}: the focal lengths of K are {} and {} pixels, expected more than 0", where,
                    k[0], k[4]);
  const auto& r = camera.r;
  double off = 0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      const double dot =
          r[3 * i] * r[3 * j] + r[3 * i + 1] * r[3 * j + 1] + r[3 * i + 2] * r[3 * j + 2];
      off = std::max(off, std::abs(dot - (i == j ? 1 : 0)));
    }
  const double determinant = r[0] * (r[4] * r[8] - r[5] * r[7]) -
                             r[1] * (r[3] * r[8] - r[5] * r[6]) +
                             r[2] * (r[3] * r[7] - r[4] * r[6]);
  if (off > 1e-3 || determinant < 0)
    return DataLoss(
        "{}: R is no rotation: R R^T is {:.3g} off the identity, its determinant is "
        "{:.3g}; expected the rotation from the vehicle's axes to the camera's",
        where, off, determinant);
  return {};
}

Result<Camera> read_camera(const JsonReader& json) {
  TENONNX_RETURN_IF_ERROR(json.only({"name", "K", "R", "t"}));
  Camera camera;
  TENONNX_ASSIGN_OR_RETURN(const JsonReader k, json.at("K"));
  TENONNX_RETURN_IF_ERROR(matrix(k, std::span<double, 9>(camera.k)));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader r, json.at("R"));
  TENONNX_RETURN_IF_ERROR(matrix(r, std::span<double, 9>(camera.r)));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader t, json.at("t"));
  TENONNX_RETURN_IF_ERROR(numbers(t, camera.t));
  TENONNX_RETURN_IF_ERROR(check(camera, json.where()));
  return camera;
}

Result<std::vector<Camera>> read_json_cameras(const std::filesystem::path& path) {
  TENONNX_ASSIGN_OR_RETURN(const Json value, read_json_file(path));
  const JsonReader json(value, path.string());
  std::vector<Camera> cameras;
  if (!json.has("cameras")) {
    TENONNX_ASSIGN_OR_RETURN(cameras.emplace_back(), read_camera(json));
    return cameras;
  }
  TENONNX_RETURN_IF_ERROR(json.only({"cameras"}));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader list, json.at("cameras"));
  TENONNX_ASSIGN_OR_RETURN(const auto items, list.items());
  if (items.empty()) return list.error("at least one camera");
  for (const JsonReader& item : items) {
    TENONNX_ASSIGN_OR_RETURN(cameras.emplace_back(), read_camera(item));
  }
  return cameras;
}

// NumPy makes integers of a matrix that is written without a point. nullopt: no such numbers.
std::optional<std::vector<double>> numbers_of(const Tensor& a) {
  const auto as = [&]<typename T>(const T* p) { return std::vector<double>(p, p + a.size()); };
  switch (a.dtype()) {
    case DType::kFloat32:
      return as(a.data<float>());
    case DType::kFloat64:
      return as(a.data<double>());
    case DType::kInt8:
      return as(a.data<std::int8_t>());
    case DType::kUInt8:
      return as(a.data<std::uint8_t>());
    case DType::kInt16:
      return as(a.data<std::int16_t>());
    case DType::kUInt16:
      return as(a.data<std::uint16_t>());
    case DType::kInt32:
      return as(a.data<std::int32_t>());
    case DType::kUInt32:
      return as(a.data<std::uint32_t>());
    case DType::kInt64:
      return as(a.data<std::int64_t>());
    case DType::kUInt64:
      return as(a.data<std::uint64_t>());
    default:
      return std::nullopt;
  }
}

Result<std::vector<Camera>> read_npz_cameras(const std::filesystem::path& path) {
  TENONNX_ASSIGN_OR_RETURN(const TensorMap arrays, read_npz(path));
  std::vector<Camera> cameras;
  for (const char* name : {"K", "R", "t"}) {
    const std::string where = fmt::format("{}: array '{}'", path.string(), name);
    const auto it = arrays.find(name);
    if (it == arrays.end()) return DataLoss("{} is missing; a calibration has K, R and t", where);
    const Tensor& a = it->second;
    const Shape tail = *name == 't' ? Shape{3} : Shape{3, 3};
    const Shape& shape = a.shape();
    const bool many = shape.size() == tail.size() + 1;
    const Shape given(shape.begin() + (many ? 1 : 0), shape.end());
    const std::int64_t count = many ? shape[0] : 1;
    if (given != tail || count < 1 || (*name != 'K' && std::ssize(cameras) != count))
      return DataLoss(
          "{} is {}, expected {} or that with the number of cameras in front, the same "
          "for K, R and t",
          where, to_string(shape), to_string(tail));
    const auto numbers = numbers_of(a);
    if (!numbers)
      return DataLoss("{} is {}, expected float32, float64 or an integer dtype", where,
                      to_string(a.dtype()));
    cameras.resize(static_cast<std::size_t>(count));
    const std::int64_t each = element_count(tail);
    for (std::int64_t i = 0; i < a.size(); ++i) {
      const double v = (*numbers)[static_cast<std::size_t>(i)];
      Camera& camera = cameras[static_cast<std::size_t>(i / each)];
      const auto at = static_cast<std::size_t>(i % each);
      (*name == 'K' ? camera.k[at] : *name == 'R' ? camera.r[at] : camera.t[at]) = v;
    }
  }
  for (std::size_t i = 0; i < cameras.size(); ++i)
    TENONNX_RETURN_IF_ERROR(check(cameras[i], fmt::format("{}: camera {}", path.string(), i)));
  return cameras;
}

}  // namespace

Result<std::vector<Camera>> read_calibration(const std::filesystem::path& path) {
  return path.extension() == ".npz" ? read_npz_cameras(path) : read_json_cameras(path);
}

}  // namespace tenonnx
