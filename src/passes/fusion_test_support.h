// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// For the tests of fusions and decompositions: how far the values may move, and the example model.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "metrics/noise_floor.h"
#include "metrics/tensor_error.h"
#include "passes/test_support.h"

namespace tenonnx {

// `tensor` with every element moved to a neighbour in float32, up and down in turns.
inline Tensor nudged(const Tensor& tensor) {
  if (tensor.dtype() != DType::kFloat32) return tensor;
  Tensor moved = tensor.clone();
  float* values = moved.mutable_data<float>();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < moved.size(); ++i)
    values[i] = std::nextafter(values[i], (i * 7 + i / 3) % 2 == 0 ? kInfinity : -kInfinity);
  return moved;
}

// The old graph's own noise is what moving its inputs by one unit in the last place does to its
// outputs; the new graph may be `factor` times that away. Each rounding inside is at most half a
// unit of an intermediate of the same size, and a chain has about ten of them: 8 is the factor
// where nothing else is said.
inline void expect_within_noise(const Model& before, const Model& after, const TensorMap& inputs,
                                double factor = 8) {
  TensorMap moved;
  for (const auto& [name, tensor] : inputs) moved[name] = nudged(tensor);
  const TensorMap a = run_on_cpu(before, inputs), noise = run_on_cpu(before, moved);
  const TensorMap b = run_on_cpu(after, inputs);
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  for (const auto& [name, reference] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    const auto floor = measured_noise_floor(reference, noise.at(name), "inputs moved by one ulp");
    const auto error = compare_tensors(reference, b.at(name));
    ASSERT_TRUE(floor.ok() && error.ok()) << name << ": " << error.status().message();
    EXPECT_EQ(error->broken, 0) << name;
    EXPECT_GT(floor->max_abs, 0) << name;
    EXPECT_LE(error->max_abs, factor * floor->max_abs)
        << name << ": noise floor " << floor->max_abs << " (inputs moved by one ulp)";
  }
}

// The example detector as the passes see it: static shapes, constants folded.
inline Model folded_example() {
  const std::filesystem::path source = TENONNX_TEST_SOURCE_DIR;
  auto model = Model::load(source / "examples/models/shapes_deimv2.onnx");
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return {};
  run_pass(*model, "fold_constants");
  return std::move(model).value();
}

// Noise for every input; sizes are 160.
inline TensorMap example_inputs(const Model& model) {
  TensorMap inputs;
  for (const TensorInfo& info : model.inputs()) {
    Shape shape = info.shape;
    std::replace(shape.begin(), shape.end(), std::int64_t{-1}, std::int64_t{1});
    inputs[info.name] = info.dtype == DType::kInt64
                            ? Tensor::from<std::int64_t>(DType::kInt64, {1, 2}, {160, 160})
                            : ramp(shape);
  }
  return inputs;
}

// The scores of two forms of the example, which its graph sorts: detections may change places in a
// tie, their scores may not move.
inline void expect_same_scores(const Model& before, const Model& after, double factor = 8) {
  const TensorMap inputs = example_inputs(before);
  TensorMap moved;
  for (const auto& [name, tensor] : inputs) moved[name] = nudged(tensor);
  const Tensor scores = run_on_cpu(before, inputs).at("scores");
  const auto floor = measured_noise_floor(scores, run_on_cpu(before, moved).at("scores"),
                                          "inputs moved by one ulp");
  const auto error = compare_tensors(scores, run_on_cpu(after, inputs).at("scores"));
  ASSERT_TRUE(floor.ok() && error.ok());
  EXPECT_EQ(error->broken, 0);
  EXPECT_GT(floor->max_abs, 0);
  EXPECT_LE(error->max_abs, factor * floor->max_abs);
}

// "reason" of the first refusal, "" where there is none.
inline std::string first_reason(const PassOutcome& outcome) {
  return outcome.skipped.empty() ? std::string() : outcome.skipped.front().reason;
}

}  // namespace tenonnx
