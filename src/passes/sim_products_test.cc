// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Expected values are those of onnxruntime-qnn 2.7.0 (QNN 2.51), HTP emulator on x86-64, soc 43,
// arch 73, 2026-11-30: operands in float32, results as float16's bits read as a number.
#include "passes/sim_products.h"

#include <gtest/gtest.h>

#include <vector>

#include "passes/sim_round.h"

namespace tenonnx {
namespace {

RoundSpec operand_spec() {
  RoundSpec spec;
  spec.storage = DType::kFloat16;
  spec.overflow.kind = Overflow::Kind::kPattern;
  spec.round = false;
  return spec;
}

std::vector<float> operands(std::vector<float> values) {
  round_values(operand_spec(), values.data(), values.data(),
               static_cast<std::int64_t>(values.size()));
  return values;
}

// The dot product of one row and one column.
double dot(const std::vector<float>& x, const std::vector<float>& w) {
  ProductShape shape;
  const auto k = static_cast<std::int64_t>(x.size());
  shape.a = {1, k};
  shape.b = {k, 1};
  shape.y = {1, 1};
  EXPECT_TRUE(is_known(shape));
  return product_value(shape, operands(x).data(), operands(w).data(), 0);
}

TEST(SimProducts, OfChosenOperands) {
  EXPECT_EQ(dot({70016, 1, 1}, {1, 1, 1}), 102784) << "NaN with the quiet bit";
  EXPECT_EQ(dot({-70016, 1, 1}, {1, 1, 1}), 102784) << "its sign is lost";
  EXPECT_EQ(dot({100032, 1, 1}, {-1, -1, -1}), 100032);
  EXPECT_EQ(dot({65536, 1}, {1, 1}), 65536);
  EXPECT_EQ(dot({65536, 1}, {-1, 1}), -65536);
  EXPECT_EQ(dot({65536, 65536}, {1, -1}), -98304) << "inf - inf";
  EXPECT_EQ(dot({60000, 60000}, {1, 1}), 65536);
  EXPECT_EQ(dot({60000, 60000, -60000}, {1, 1, 1}), 60000) << "the sum itself does not overflow";
  // A weight of zero.
  EXPECT_EQ(dot({70016, 1, 1}, {0, 1, 1}), 2);
  EXPECT_EQ(dot({65536, 1, 1}, {-0.0F, 1, 1}), 2);
  EXPECT_EQ(dot({70016, 65536, 80000}, {0, 0, 1}), 112768);
}

TEST(SimProducts, TheFirstNanInTheOrderOfTheDevice) {
  EXPECT_EQ(dot({1, 70016, 1, 1, 1, 80000, 1, 1}, std::vector<float>(8, 1)), 102784);
  EXPECT_EQ(dot({70016, 80000, 1, 1}, std::vector<float>(4, 1)), 112768) << "1 before 0";
  EXPECT_EQ(dot({1, 1, 70016, 80000}, std::vector<float>(4, 1)), 112768) << "3 before 2";
  EXPECT_EQ(dot({1, 70016, 80000, 1}, std::vector<float>(4, 1)), 102784) << "1 before 2";
  EXPECT_EQ(dot({70016, 1}, {80000, 1}), 112768) << "the weight before the activation";
}

// Four channels of 2 x 2, one output: rows of the kernel first, channels inside.
TEST(SimProducts, PlacesOfAConvBeforeItsChannels) {
  ProductShape shape;
  shape.kind = ProductShape::Kind::kConv;
  shape.a = {1, 4, 2, 2};
  shape.b = {1, 4, 2, 2};
  shape.y = {1, 1, 1, 1};
  shape.strides = shape.dilations = {1, 1};
  shape.pads = {0, 0, 0, 0};
  const std::vector<float> weights(16, 1);
  const auto with = [&](int first, int second) {
    std::vector<float> x(16, 1);
    x[static_cast<std::size_t>(first)] = 70016;
    x[static_cast<std::size_t>(second)] = 80000;
    return product_value(shape, operands(x).data(), weights.data(), 0);
  };
  EXPECT_EQ(with(1, 4), 112768) << "channel 0 at (0, 1) against channel 1 at (0, 0)";
  EXPECT_EQ(with(2, 1), 112768) << "(1, 0) against (0, 1)";
  EXPECT_EQ(with(12, 8), 102784) << "channel 3 against 2";
}

TEST(SimProducts, ADepthwiseConvGoesUpwardsAndKeepsTheSign) {
  ProductShape shape;
  shape.kind = ProductShape::Kind::kConv;
  shape.group = 2;
  shape.a = {1, 2, 3, 3};
  shape.b = {2, 1, 3, 3};
  shape.y = {1, 2, 1, 1};
  shape.strides = shape.dilations = {1, 1};
  shape.pads = {0, 0, 0, 0};
  const std::vector<float> weights(18, 1);
  std::vector<float> left = {6, 7, 8, 3, 4, 5, 0, 1, 2};
  std::vector<float> x(18, 1);
  for (std::size_t i = 0; i < 9; ++i) x[9 + i] = 65536 + 64.0F * static_cast<float>(i + 1);
  for (const float place : left) {  // the order of the device, found one by one
    const auto value = product_value(shape, operands(x).data(), weights.data(), 1);
    EXPECT_EQ(value, 98304 + 64 * (place + 1));
    x[9 + static_cast<std::size_t>(place)] = 1;
  }
  x[0] = -70016;
  EXPECT_EQ(product_value(shape, operands(x).data(), weights.data(), 0), -102784);
}

TEST(SimProducts, OfASumTheSecondOperandsNan) {
  ProductShape shape;
  shape.kind = ProductShape::Kind::kSum;
  shape.a = {2, 2};
  shape.b = {2};
  shape.y = {2, 2};
  EXPECT_TRUE(is_known(shape));
  const auto a = operands({1, 2, 70016, -70016}), b = operands({1, 80000});
  EXPECT_EQ(product_value(shape, a.data(), b.data(), 1), 112768);
  EXPECT_EQ(product_value(shape, a.data(), b.data(), 2), 102784);
  EXPECT_EQ(product_value(shape, a.data(), b.data(), 3), 112768);
}

TEST(SimProducts, UnknownShapesAreLeftToTheKernel) {
  ProductShape shape;
  shape.a = {4};
  shape.b = {4, 2};
  shape.y = {2};
  EXPECT_FALSE(is_known(shape));
  shape.a = {3, 2, 4};
  shape.b = {2, 3, 4, 2};
  shape.y = {2, 3, 2, 2};
  EXPECT_FALSE(is_known(shape)) << "leading dimensions that broadcast";
}

}  // namespace
}  // namespace tenonnx
