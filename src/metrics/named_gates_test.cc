// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/named_gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor floats(const std::vector<float>& values) {
  return Tensor::from(DType::kFloat32, {static_cast<std::int64_t>(values.size())}, values);
}

TEST(Allclose, TakesTheAbsoluteAndTheRelativePart) {
  const Tensor reference = floats({0, 1, 100, kInf});
  EXPECT_EQ(allclose_gate("y", reference, floats({0.9e-5F, 1.000018F, 100.0009F, kInf}))->verdict,
            Verdict::kPass);
  const auto two = allclose_gate("y", reference, floats({1.1e-5F, 1, 100.0012F, kInf}));
  EXPECT_EQ(two->verdict, Verdict::kFail);
  EXPECT_EQ(two->value, 2);
  EXPECT_EQ(allclose_gate("y", reference, floats({0, 1, 100, 65504}))->value, 1);
  EXPECT_EQ(allclose_gate("y", reference, floats({0, kInf, 100, kInf}))->value, 1);
}

// A mean square error of (0.005 * width)^2 is 46.02 dB, of (0.006 * width)^2 44.4 dB.
TEST(Psnr, IsOverTheDeclaredRangeElseTheWidthOfTheReference) {
  const Tensor reference = floats({0, 0.5F});
  EXPECT_EQ(psnr_gate("y", reference, floats({0.005F, 0.505F}), 1)->verdict, Verdict::kPass);
  EXPECT_EQ(psnr_gate("y", reference, floats({0.006F, 0.506F}), 1)->verdict, Verdict::kFail);
  const auto own = psnr_gate("y", reference, floats({0.005F, 0.505F}), 0);
  EXPECT_EQ(own->verdict, Verdict::kFail);  // the width is 0.5 only
  EXPECT_THAT(own->limit.origin, HasSubstr("reference's width 0.5"));
  const auto declared = psnr_gate("y", reference, reference, 1, "scores are 0..1");
  EXPECT_THAT(declared->limit.origin, HasSubstr("the declared range 1: scores are 0..1"));
  EXPECT_EQ(psnr_gate("y", floats({1, 1}), floats({1, 1}), 0)->verdict, Verdict::kInconclusive);
  EXPECT_EQ(psnr_gate("y", reference, floats({kInf, 0.5F}), 1)->verdict, Verdict::kFail);
}

TEST(MapGate, IsHalfAPoint) {
  EXPECT_EQ(map_gate(0.329, 0.327).verdict, Verdict::kPass);
  EXPECT_EQ(map_gate(0.329, 0.335).verdict, Verdict::kFail);
}

}  // namespace
}  // namespace tenonnx
