// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// For the tests of what replaces GridSample: one node, a grid that reaches every case, the
// reference.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/grid_sample/grid_sample.h"
#include "passes/grid_sample_form.h"
#include "passes/proof.h"
#include "passes/test_support.h"

namespace tenonnx {

// The proof of what a pass did, on these inputs.
inline PassProof proof_of(const std::string& pass, const Model& before, const Model& after,
                          const PassOutcome& outcome, const TensorMap& inputs) {
  ProofData data;
  data.count = 1;
  data.load = [&](std::size_t) { return Result<TensorMap>(inputs); };
  const auto executor = make_cpu_executor();
  const auto info = find_pass(pass);
  EXPECT_TRUE(info.ok()) << info.status().message();
  auto proof = PassProver(*executor, data, {}).prove(**info, before, after, outcome);
  EXPECT_TRUE(proof.ok()) << proof.status().message();
  return proof.ok() ? std::move(proof).value() : PassProof();
}

// Of its first failure; "" where there is none.
inline std::string first_failure(const PassProof& proof) {
  return proof.failures.empty() ? "" : to_text(proof.failures[0].check);
}

struct GridSampleCase {
  std::int64_t batch = 2, channels = 3, height = 5, width = 7, out_height = 6, out_width = 11;
  std::string mode = "bilinear", padding = "zeros";
  bool align_corners = false;

  Shape value_shape() const { return {batch, channels, height, width}; }
  Shape grid_shape() const { return {batch, out_height, out_width, 2}; }
  std::string text() const {
    return fmt::format("mode={} padding={} align={} {}x{}x{}x{}", mode, padding, align_corners,
                       batch, channels, height, width);
  }
  Model model() const {
    return model_from_text(fmt::format(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[{},{},{},{}] value, "
        "float[{},{},{},2] grid) => (float[{},{},{},{}] y) {{ y = GridSample <mode = \"{}\", "
        "padding_mode = \"{}\", align_corners = {}> (value, grid) }}",
        batch, channels, height, width, batch, out_height, out_width, batch, channels, out_height,
        out_width, mode, padding, align_corners ? 1 : 0));
  }
  GridSampleOptions options() const {
    GridSampleOptions o;
    o.mode = mode == "nearest" ? GridSampleMode::kNearest : GridSampleMode::kLinear;
    o.padding = padding == "zeros"    ? GridSamplePadding::kZeros
                : padding == "border" ? GridSamplePadding::kBorder
                                      : GridSamplePadding::kReflection;
    o.align_corners = align_corners;
    return o;
  }
};

// The coordinate whose pixel is `pixel`, before rounding.
inline float grid_coordinate(double pixel, std::int64_t size, bool align) {
  if (align) return static_cast<float>(size == 1 ? 0 : 2 * pixel / double(size - 1) - 1);
  return static_cast<float>((2 * pixel + 1) / double(size) - 1);
}

// Pixels along an axis: the middle, corners, the border between pixel and outside, half-pixel ties,
// outside by less and by more than a pixel.
inline std::vector<double> probe_pixels(std::int64_t size) {
  const double last = double(size - 1);
  return {last / 2, 0,         last,        -0.5,         last + 0.5, 0.5,  last - 0.5,
          1.25,     -0.25,     last + 0.75, -1,           last + 1,   -1.5, last + 2,
          0.999999, -0.999999, last - 1e-3, last + 0.999, 1.5,        0.1,  2};
}

// Every pair of those and, with `wild`, of coordinates that are far outside or no number; then
// noise in -1.3..1.3.
inline Tensor probe_grid(const GridSampleCase& c, bool wild) {
  std::vector<float> xs, ys;
  for (const double p : probe_pixels(c.width))
    xs.push_back(grid_coordinate(p, c.width, c.align_corners));
  for (const double p : probe_pixels(c.height))
    ys.push_back(grid_coordinate(p, c.height, c.align_corners));
  if (wild) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    for (const float far :
         {3e3F, -3e3F, 1e10F, -1e10F, 3e38F, -3e38F, kInf, -kInf, std::nanf("")}) {
      xs.push_back(far);
      ys.push_back(far);
    }
  }
  Tensor grid(DType::kFloat32, c.grid_shape());
  std::uint32_t state = 12345;
  const auto random = [&] { return state = state * 1664525 + 1013904223; };
  std::size_t pair = 0;
  for (std::int64_t i = 0; i < grid.size(); i += 2, ++pair) {
    float x = 2.6F * float(random() >> 8) / float(1 << 24) - 1.3F;
    float y = 2.6F * float(random() >> 8) / float(1 << 24) - 1.3F;
    if (pair < xs.size() * ys.size()) {
      x = xs[pair % xs.size()];
      y = ys[pair / xs.size()];
    }
    grid.mutable_data<float>()[i] = x;
    grid.mutable_data<float>()[i + 1] = y;
  }
  return grid;
}
// A case whose grid has room for all of them in its first image.
inline GridSampleCase roomy(GridSampleCase c) {
  c.out_height = 31;
  c.out_width = 33;
  return c;
}

inline Tensor reference_of(const GridSampleCase& c, const Tensor& value, const Tensor& grid) {
  Tensor out(DType::kFloat32, {c.batch, c.channels, c.out_height, c.out_width});
  GridSampleSizes sizes;
  sizes.batch = c.batch;
  sizes.channels = c.channels;
  sizes.in = {1, c.height, c.width};
  sizes.out = {1, c.out_height, c.out_width};
  grid_sample_reference<float, float>(
      c.options(), sizes, {value.data<float>(), grid.data<float>(), out.mutable_data<float>()});
  return out;
}

// Elements whose bits differ; zeros of either sign are one value, and so are all NaN.
inline std::int64_t different_bits(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  if (a.shape() != b.shape()) return -1;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const float x = a.data<float>()[i], y = b.data<float>()[i];
    count += !(x == y || (std::isnan(x) && std::isnan(y)));
  }
  return count;
}

inline double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double most = a.shape() == b.shape() ? 0 : std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < a.size() && a.shape() == b.shape(); ++i) {
    const double x = a.data<float>()[i], y = b.data<float>()[i];
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y) continue;  // infinities
    const double d = std::abs(x - y);
    most = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(most, d);
  }
  return most;
}

// What the pass says of options that it does not take.
inline std::string message_of_options(const char* pass, const PassOptions& options) {
  Model model = GridSampleCase().model();
  PassOptions prefixed;
  for (const auto& [name, value] : options) prefixed[std::string(pass) + "." + name] = value;
  const std::vector<std::string> names = {pass};
  return run_passes(model, names, prefixed).status().message();
}

}  // namespace tenonnx
