// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ort/library.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

class ValuesTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(onnxruntime().ok()) << onnxruntime().status().message(); }
};

class ValuesOfTypeTest : public ValuesTest, public testing::WithParamInterface<DType> {};

TEST_P(ValuesOfTypeTest, BothWaysWithoutACopy) {
  Tensor tensor(GetParam(), {2, 3});
  const auto value = value_from_tensor(tensor);
  ASSERT_TRUE(value.ok()) << value.status().message();
  EXPECT_EQ(value->GetTensorRawData(), tensor.raw());
  EXPECT_EQ(value->GetTensorSizeInBytes(), tensor.bytes());
  // A value that the runtime owns, back.
  Ort::AllocatorWithDefaultOptions allocator;
  const std::int64_t shape[] = {2, 3};
  auto owned = Ort::Value::CreateTensor(allocator, shape, 2, dtype_to_ort(GetParam()));
  const void* memory = owned.GetTensorRawData();
  const auto back = tensor_from_value(std::move(owned), "y");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->raw(), memory);
  EXPECT_EQ(back->dtype(), GetParam());
  EXPECT_EQ(back->shape(), (Shape{2, 3}));
}

INSTANTIATE_TEST_SUITE_P(AllTypes, ValuesOfTypeTest,
                         testing::Values(DType::kFloat32, DType::kFloat64, DType::kFloat16,
                                         DType::kBFloat16, DType::kInt8, DType::kInt16,
                                         DType::kInt32, DType::kInt64, DType::kUInt8,
                                         DType::kUInt16, DType::kUInt32, DType::kUInt64,
                                         DType::kBool),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST_F(ValuesTest, TensorKeepsTheRuntimesMemoryAlive) {
  Tensor tensor;
  {
    Ort::AllocatorWithDefaultOptions allocator;
    const std::int64_t shape[] = {1000};
    auto value = Ort::Value::CreateTensor<float>(allocator, shape, 1);
    for (int i = 0; i < 1000; ++i) value.GetTensorMutableData<float>()[i] = static_cast<float>(i);
    auto converted = tensor_from_value(std::move(value), "y");
    ASSERT_TRUE(converted.ok());
    tensor = *converted;
  }
  // Freed memory would be found by AddressSanitizer, and most likely reused by this:
  std::vector<float> other(1000, -1.0F);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(tensor.data<float>()[i], static_cast<float>(i));
}

TEST_F(ValuesTest, EmptyAndScalar) {
  const Tensor empty(DType::kFloat32, {0, 4});
  const auto value = value_from_tensor(empty);
  ASSERT_TRUE(value.ok()) << value.status().message();
  EXPECT_EQ(value->GetTensorTypeAndShapeInfo().GetShape(), (Shape{0, 4}));
  const Tensor scalar(DType::kInt64, {});
  ASSERT_TRUE(value_from_tensor(scalar).ok());
}

TEST_F(ValuesTest, UndefinedIsRefused) {
  EXPECT_EQ(value_from_tensor(Tensor()).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ValuesTest, StringsAreRefusedByName) {
  Ort::AllocatorWithDefaultOptions allocator;
  const std::int64_t shape[] = {1};
  auto value = Ort::Value::CreateTensor(allocator, shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  const auto tensor = tensor_from_value(std::move(value), "labels");
  ASSERT_FALSE(tensor.ok());
  EXPECT_EQ(tensor.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(tensor.status().message(), HasSubstr("'labels' holds strings"));
}

}  // namespace
}  // namespace tenonnx
