// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The fragile example is the same model in float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <vector>

#include "eval/shapes.h"
#include "model/model.h"
#include "ort/executor.h"

namespace tenonnx {
namespace {

// The claim of tools/models/make_fragile.py. Scores lie in 0..1; boxes in 0..160, hence the factor.
constexpr double kScoreLimit = 1e-5;
constexpr double kBoxLimit = 1e-5 * kShapesSize;
constexpr int kImages = 10;

std::unique_ptr<LoadedGraph> load_example(const Executor& executor, const char* name) {
  const auto path = std::filesystem::path(TENONNX_TEST_SOURCE_DIR) / "examples/models" / name;
  Result<Model> model = Model::load(path);
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return nullptr;
  auto graph = executor.load(*model, LoadOptions{});
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(*graph) : nullptr;
}

// float32 [1,3,160,160], RGB / 255.
Tensor image_tensor(std::uint64_t seed) {
  const ShapesImage image = make_shapes_image(seed);
  constexpr std::size_t kPlane = std::size_t{kShapesSize} * kShapesSize;
  Tensor tensor(DType::kFloat32, {1, 3, kShapesSize, kShapesSize});
  float* values = tensor.mutable_data<float>();
  for (std::size_t i = 0; i < kPlane; ++i) {
    for (std::size_t c = 0; c < 3; ++c) values[c * kPlane + i] = image.rgb[i * 3 + c] / 255.0F;
  }
  return tensor;
}

double max_difference(const Tensor& a, const Tensor& b) {
  double worst = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(double{a.data<float>()[i]} - double{b.data<float>()[i]});
    if (!(difference <= worst)) worst = difference;  // so that NaN is not lost
  }
  return worst;
}

TEST(ExampleModels, FragileIsTheSameInFloat32) {
  const auto executor = make_cpu_executor();
  const auto original = load_example(*executor, "shapes_deimv2.onnx");
  const auto fragile = load_example(*executor, "shapes_deimv2_fragile.onnx");
  ASSERT_TRUE(original && fragile);
  for (int i = 0; i < kImages; ++i) {
    const std::uint64_t seed = kShapesHeldOutSeed + i;
    const TensorMap inputs = {
        {"images", image_tensor(seed)},
        {"orig_target_sizes",
         Tensor::from<std::int64_t>(DType::kInt64, {1, 2}, {kShapesSize, kShapesSize})}};
    const auto expected = original->run(inputs);
    const auto actual = fragile->run(inputs);
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    ASSERT_TRUE(actual.ok()) << actual.status().message();
    const Tensor& scores = expected->at("scores");
    // Sorted and confident: the model detects, it does not return the same nonsense twice.
    EXPECT_GT(scores.data<float>()[0], 0.5F) << "seed " << seed;
    EXPECT_LE(max_difference(scores, actual->at("scores")), kScoreLimit) << "seed " << seed;
    EXPECT_LE(max_difference(expected->at("boxes"), actual->at("boxes")), kBoxLimit)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace tenonnx
