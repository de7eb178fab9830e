// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_sampling_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>

#include "base/half.h"
#include "base/status.h"
#include "metrics/elements.h"

namespace tenonnx {
namespace {

// A linear map's digits come back to a hundredth of a step; float32 rounds 4096 to 2^-12 of one,
// and a half type 64 to 2^-2 of one, bfloat16's 16 to 2^-4.
constexpr double kDigitTolerance = 0.25;
constexpr double kCheckTolerance = 1.0 / 64;  // of scale + offset: bfloat16 has 2^-8

std::int64_t base_of(DType dtype) {
  if (dtype == DType::kFloat32 || dtype == DType::kFloat64) return 4096;
  return 16;
}

}  // namespace

std::vector<double> to_doubles(const Tensor& tensor) {
  std::vector<double> out(static_cast<std::size_t>(std::max<std::int64_t>(tensor.size(), 0)));
  visit_elements(tensor, [&](const auto* p) {
    using Element = std::remove_cvref_t<decltype(*p)>;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if constexpr (is_float_element<Element>)
        out[i] = to_double(p[i]);
      else
        out[i] = static_cast<double>(p[i]);
    }
  });
  return out;
}

Tensor finite_tensor(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor out(dtype, shape);
  visit_elements(out, [&](const auto* p) {
    using Element = std::remove_cvref_t<decltype(*p)>;
    auto* to = out.mutable_data<Element>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double v = values[i];
      if constexpr (std::is_same_v<Element, Float16Bits>)
        to[i].bits = float_to_float16(static_cast<float>(std::clamp(v, -65504.0, 65504.0)));
      else if constexpr (std::is_same_v<Element, BFloat16Bits>)
        to[i].bits = float_to_bfloat16(static_cast<float>(std::clamp(v, -3e38, 3e38)));
      else
        to[i] = static_cast<Element>(v);
    }
  });
  return out;
}

bool ElementMap::moves() const {
  if (!complete()) return false;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (scale[i] != 1 || offset[i] != 0) return false;
  return true;
}

ElementMap ElementMap::identity(std::int64_t size) {
  ElementMap map;
  map.mapped = size;
  map.scale.assign(static_cast<std::size_t>(size), 1);
  map.offset.assign(static_cast<std::size_t>(size), 0);
  map.from.resize(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) map.from[static_cast<std::size_t>(i)] = i;
  return map;
}

Result<std::map<std::string, ElementMap>> find_maps(const RunTargets& run, const TensorMap& values,
                                                    const std::string& input,
                                                    const std::vector<std::string>& targets) {
  const auto given = values.find(input);
  if (given == values.end()) return InvalidArgument("the region takes no '{}'", input);
  const Tensor& like = given->second;
  const auto size = static_cast<std::size_t>(like.size());
  TensorMap inputs = values;
  const auto run_filled = [&](const std::vector<double>& fill) {
    inputs.insert_or_assign(input, finite_tensor(like.dtype(), like.shape(), fill));
    return run(inputs);
  };
  std::map<std::string, ElementMap> maps;
  std::map<std::string, std::vector<double>> found;  // the element of the input, digit by digit
  const auto for_targets = [&](const TensorMap& outputs, const auto& fn) {
    for (const std::string& name : targets)
      if (const auto it = outputs.find(name); it != outputs.end()) fn(name, to_doubles(it->second));
  };
  TENONNX_ASSIGN_OR_RETURN(const TensorMap zeros, run_filled(std::vector<double>(size, 0)));
  for_targets(zeros, [&](const std::string& name, std::vector<double> v) {
    ElementMap& map = maps[name];
    map.from.assign(v.size(), 0);
    map.scale.assign(v.size(), 0);
    map.offset = std::move(v);
    found[name].assign(map.from.size(), 0);
  });
  TENONNX_ASSIGN_OR_RETURN(const TensorMap ones, run_filled(std::vector<double>(size, 1)));
  for_targets(ones, [&](const std::string& name, const std::vector<double>& v) {
    ElementMap& map = maps[name];
    for (std::size_t i = 0; i < v.size() && i < map.offset.size(); ++i) {
      map.scale[i] = v[i] - map.offset[i];
      if (!(std::fabs(map.scale[i]) > 1e-6) || !std::isfinite(map.scale[i])) map.from[i] = -1;
    }
  });
  const std::int64_t base = base_of(like.dtype());
  for (std::int64_t place = 1; place < static_cast<std::int64_t>(size); place *= base) {
    std::vector<double> digits(size);
    for (std::size_t i = 0; i < size; ++i)
      digits[i] = static_cast<double>(static_cast<std::int64_t>(i) / place % base);
    TENONNX_ASSIGN_OR_RETURN(const TensorMap outputs, run_filled(digits));
    for_targets(outputs, [&](const std::string& name, const std::vector<double>& v) {
      ElementMap& map = maps[name];
      for (std::size_t i = 0; i < v.size() && i < map.from.size(); ++i) {
        if (map.from[i] < 0) continue;
        const double digit = (v[i] - map.offset[i]) / map.scale[i];
        const double whole = std::round(digit);
        if (!(std::fabs(digit - whole) < kDigitTolerance) || whole < 0 ||
            whole >= static_cast<double>(base)) {
          map.from[i] = -1;
          continue;
        }
        map.from[i] += static_cast<std::int64_t>(whole) * place;
      }
    });
  }
  // What is no such map is found out with other values, large ones too: a Clip ends somewhere.
  for (const double width : {1.0, 64.0}) {
    std::mt19937_64 engine(7);
    std::vector<double> random(size);
    for (double& v : random) v = width * (static_cast<double>(engine() >> 11) * 0x1p-52 - 1);
    const Tensor rounded = finite_tensor(like.dtype(), like.shape(), random);
    const std::vector<double> fill = to_doubles(rounded);
    TENONNX_ASSIGN_OR_RETURN(const TensorMap outputs, run_filled(fill));
    for_targets(outputs, [&](const std::string& name, const std::vector<double>& v) {
      ElementMap& map = maps[name];
      for (std::size_t i = 0; i < v.size() && i < map.from.size(); ++i) {
        if (map.from[i] < 0) continue;
        if (map.from[i] >= static_cast<std::int64_t>(size)) {
          map.from[i] = -1;
          continue;
        }
        const double expected =
            map.scale[i] * fill[static_cast<std::size_t>(map.from[i])] + map.offset[i];
        const double room =
            kCheckTolerance * (width * std::fabs(map.scale[i]) + std::fabs(map.offset[i]));
        if (!(std::fabs(v[i] - expected) <= room)) map.from[i] = -1;
      }
    });
  }
  for (auto& [name, map] : maps)
    map.mapped = std::count_if(map.from.begin(), map.from.end(), [](auto j) { return j >= 0; });
  return maps;
}

}  // namespace tenonnx
