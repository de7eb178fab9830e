// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/size_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "pipeline/versions.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Contract make_contract(SizeOrder order = SizeOrder::kWidthHeight) {
  Contract contract;
  contract.image.shape = {1, 3, 16, 16};
  contract.size = SizeInput{};
  contract.size->order = order;
  return contract;
}

// A model whose boxes are (0.1, 0.2, 0.3, 0.6) times the numbers `x` and `y` of the size.
ModelRunner model(int x, int y, bool clipped = false) {
  return [=](const TensorMap& inputs) -> Result<TensorMap> {
    const Tensor& size = inputs.at("orig_target_sizes");
    const auto* values = size.data<std::int64_t>();
    const auto scale = [&](int which) {
      return which < 0 ? 1.0F : static_cast<float>(values[which]);
    };
    std::vector<float> boxes = {0.1F * scale(x), 0.2F * scale(y), 0.3F * scale(x), 0.6F * scale(y)};
    if (clipped)
      for (float& b : boxes) b = std::round(std::max(1.0F, b));
    return TensorMap{{"boxes", Tensor::from(DType::kFloat32, {1, 1, 4}, boxes)}};
  };
}

TEST(SizeOrder, IsFoundByWhichNumberScalesX) {
  EXPECT_EQ(probe_size_order(make_contract(), model(0, 1))->order, SizeOrder::kWidthHeight);
  EXPECT_EQ(probe_size_order(make_contract(), model(1, 0))->order, SizeOrder::kHeightWidth);
  EXPECT_EQ(probe_size_order(make_contract(), model(1, 0, true))->order, SizeOrder::kHeightWidth);
}

TEST(SizeOrder, AContradictionIsAnErrorThatSaysWhatToWrite) {
  const auto checked = check_size_order(make_contract(), model(1, 0));
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(checked.status().message(), AllOf(HasSubstr("'orig_target_sizes' is [width, height]"),
                                                HasSubstr("multiplies x by the second number"),
                                                HasSubstr("\"order\": \"height_width\"")));
  EXPECT_FALSE(check_size_order(make_contract(SizeOrder::kHeightWidth), model(0, 1)).ok());
}

TEST(SizeOrder, AgreementIsANote) {
  const auto checked = check_size_order(make_contract(SizeOrder::kHeightWidth), model(1, 0));
  ASSERT_TRUE(checked.ok()) << checked.status().message();
  EXPECT_TRUE(checked->settled);
  EXPECT_THAT(checked->note, HasSubstr("[height, width] of 'orig_target_sizes' is proved"));
}

TEST(SizeOrder, WhatDependsOnNeitherIsNotProved) {
  for (const auto& unproved : {model(-1, -1), model(0, 0), model(0, -1)}) {
    const auto checked = check_size_order(make_contract(), unproved);
    ASSERT_TRUE(checked.ok()) << checked.status().message();
    EXPECT_FALSE(checked->settled);
    EXPECT_THAT(checked->note,
                AllOf(HasSubstr("could not be proved"), HasSubstr("export the model so")));
  }
  Contract contract = make_contract();
  contract.outputs.kind = OutputKind::kRaw;
  const auto ignored = check_size_order(contract, model(-1, -1));
  EXPECT_TRUE(ignored->settled);
  EXPECT_THAT(ignored->note, HasSubstr("does not matter"));
  const auto scaled = check_size_order(contract, model(0, 1));
  EXPECT_FALSE(scaled->settled);
  EXPECT_THAT(scaled->note, HasSubstr("not the same"));
}

TEST(SizeOrder, ErrorsOfTheRunComeThrough) {
  const ModelRunner broken = [](const TensorMap&) -> Result<TensorMap> {
    return Internal("no such luck");
  };
  EXPECT_THAT(check_size_order(make_contract(), broken).status().message(),
              HasSubstr("no such luck"));
}

TEST(Versions, AreComparedAsNumbers) {
  EXPECT_LT(compare_versions("1.29.0", "1.30"), 0);
  EXPECT_GT(compare_versions("1.100.0", "1.29.9"), 0);
  EXPECT_EQ(compare_versions("1.29", "1.29.0"), 0);
  EXPECT_EQ(compare_versions("1.29.0-dev", "1.29.0"), 0);
}

TEST(Versions, OlderOnesAndOtherDeviceFilesAreRefused) {
  const Versions evidence = {
      {"onnxruntime", "1.29.0"}, {"device file", "3f2a"}, {"device file of decoder", "77aa"}};
  EXPECT_TRUE(check_versions(evidence, {{"onnxruntime", "1.29.0"}}, "encoder").ok());
  EXPECT_TRUE(check_versions(evidence, {{"onnxruntime", "1.31.1"}}, "encoder").ok());
  EXPECT_TRUE(check_versions(evidence, {{"driver", "9"}}, "encoder").ok());
  EXPECT_TRUE(check_versions(evidence, {{"device file", "77aa"}}, "decoder").ok());
  const Status older = check_versions(evidence, {{"onnxruntime", "1.28.3"}}, "encoder");
  EXPECT_EQ(older.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(older.message(),
              AllOf(HasSubstr("onnxruntime is 1.28.3 here"), HasSubstr("verified with 1.29.0")));
  EXPECT_THAT(check_versions(evidence, {{"device file", "ffff"}}, "encoder").message(),
              HasSubstr("what was proved may not hold"));
}

}  // namespace
}  // namespace tenonnx
