// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenonnx {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<TensorInfo> kAllowed = {{"images", DType::kFloat32, {-1, 3, 8, 8}},
                                          {"orig_target_sizes", DType::kInt64, {1, 2}}};

std::vector<Tensor> good() {
  return {Tensor(DType::kFloat32, {2, 3, 8, 8}), Tensor(DType::kInt64, {1, 2})};
}

TEST(CheckInputsTest, DynamicDimensionTakesAnySize) {
  EXPECT_TRUE(check_inputs(kAllowed, good()).ok());
}

TEST(CheckInputsTest, UnknownRankTakesAnyShape) {
  std::vector<TensorInfo> allowed = {{"x", DType::kFloat32, {}, /*has_rank=*/false}};
  const std::vector<Tensor> given = {Tensor(DType::kFloat32, {2, 3, 4})};
  EXPECT_TRUE(check_inputs(allowed, given).ok());
  allowed[0].has_rank = true;  // a scalar
  EXPECT_FALSE(check_inputs(allowed, given).ok());
}

TEST(CheckInputsTest, WrongShapeSaysGotAndAllowed) {
  auto given = good();
  given[0] = Tensor(DType::kFloat32, {1, 3, 8, 9});
  const Status status = check_inputs(kAllowed, given);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "input 'images' has shape [1,3,8,9], the model takes [?,3,8,8]");
  given[0] = Tensor(DType::kFloat32, {3, 8, 8});
  EXPECT_THAT(check_inputs(kAllowed, given).message(), HasSubstr("[3,8,8]"));
}

TEST(CheckInputsTest, Int32WhereInt64IsTakenIsRefusedWithAReason) {
  auto given = good();
  given[1] = Tensor(DType::kInt32, {1, 2});
  const Status status = check_inputs(kAllowed, given);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr("input 'orig_target_sizes' is int32, the model takes int64"));
  EXPECT_THAT(status.message(), HasSubstr("not interchangeable"));
}

TEST(CheckInputsTest, PixelsAsTheyAre) {
  auto given = good();
  given[0] = Tensor(DType::kUInt8, {1, 3, 8, 8});
  EXPECT_THAT(check_inputs(kAllowed, given).message(), HasSubstr("scale them"));
}

TEST(CheckInputsTest, CountAndUndefined) {
  EXPECT_THAT(check_inputs(kAllowed, std::vector<Tensor>(1)).message(),
              HasSubstr("1 inputs given, the model takes 2"));
  EXPECT_THAT(check_inputs(kAllowed, std::vector<Tensor>(2)).message(),
              HasSubstr("'images' is not set"));
}

TEST(OrderByNameTest, MissingAndUnknownAreNamedAndTheInputsListed) {
  TensorMap given;
  given["image"] = Tensor(DType::kFloat32, {1, 3, 8, 8});
  given["orig_target_sizes"] = Tensor(DType::kInt64, {1, 2});
  const auto ordered = order_by_name(kAllowed, given);
  ASSERT_FALSE(ordered.ok());
  EXPECT_EQ(ordered.status().message(),
            "missing input 'images', unknown input 'image'; the model's inputs are: images float32 "
            "[?,3,8,8]; orig_target_sizes int64 [1,2]");
}

TEST(OrderByNameTest, PutsThemIntoTheModelsOrder) {
  TensorMap given;
  given["orig_target_sizes"] = Tensor(DType::kInt64, {1, 2});
  given["images"] = Tensor(DType::kFloat32, {1, 3, 8, 8});
  const auto ordered = order_by_name(kAllowed, given);
  ASSERT_TRUE(ordered.ok());
  EXPECT_EQ((*ordered)[0].raw(), given["images"].raw());
  EXPECT_EQ((*ordered)[1].dtype(), DType::kInt64);
}

}  // namespace
}  // namespace tenonnx
