// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/tensor_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "base/half.h"

namespace tenonnx {
namespace {

using onnx::TensorProto;
using ::testing::HasSubstr;

std::string_view bytes_of(const Tensor& t) { return {t.data<char>(), t.bytes()}; }

TEST(TensorProto, EveryDTypeSurvivesAsRawData) {
  for (int d = 1; d <= static_cast<int>(DType::kBool); ++d) {
    const auto dtype = static_cast<DType>(d);
    EXPECT_EQ(from_onnx_type(to_onnx_type(dtype)), dtype);
    EXPECT_EQ(onnx_type_bits(to_onnx_type(dtype)), 8 * static_cast<int>(size_of(dtype)));
    for (const Shape& shape : {Shape{}, Shape{0, 2}, Shape{2, 3}}) {
      Tensor t(dtype, shape);
      for (std::size_t i = 0; i < t.bytes(); ++i)
        t.mutable_data<char>()[i] = static_cast<char>(i % 2);
      const TensorProto proto = to_tensor_proto(t, "t");
      const auto copy = to_tensor(proto);
      ASSERT_TRUE(copy.ok()) << copy.status().message();
      EXPECT_EQ(copy->dtype(), dtype);
      EXPECT_EQ(copy->shape(), shape);
      EXPECT_EQ(bytes_of(*copy), bytes_of(t));
    }
  }
}

TEST(TensorProto, ViewsDoNotCopy) {
  const auto proto = std::make_shared<TensorProto>(
      to_tensor_proto(Tensor::from<float>(DType::kFloat32, {5}, {1, 2, 3, 4, 5}), "t"));
  EXPECT_EQ(to_tensor(*proto, proto)->raw(), proto->raw_data().data());
  EXPECT_NE(to_tensor(*proto)->raw(), proto->raw_data().data());
}

// onnx.proto: which field holds which type.
TEST(TensorProto, TypedFields) {
  TensorProto p;
  p.add_dims(2);
  p.set_data_type(TensorProto::FLOAT16);
  p.add_int32_data(float_to_float16(1.5F));
  p.add_int32_data(float_to_float16(-2));
  EXPECT_EQ(to_tensor(p)->data<std::uint16_t>()[1], float_to_float16(-2));
  p.set_data_type(TensorProto::BOOL);
  EXPECT_TRUE(to_tensor(p)->data<bool>()[0]);
  p.set_int32_data(0, -3);
  p.set_int32_data(1, 300);
  p.set_data_type(TensorProto::INT32);
  EXPECT_EQ(to_tensor(p)->data<std::int32_t>()[1], 300);
  p.set_data_type(TensorProto::INT8);
  EXPECT_EQ(to_tensor(p)->data<std::int8_t>()[0], -3);
  p.add_float_data(0.5F);
  p.add_float_data(1);
  p.set_data_type(TensorProto::FLOAT);
  EXPECT_EQ(to_tensor(p)->data<float>()[0], 0.5F);
  p.add_double_data(0.25);
  p.add_double_data(1);
  p.set_data_type(TensorProto::DOUBLE);
  EXPECT_EQ(to_tensor(p)->data<double>()[0], 0.25);
  p.add_int64_data(-(1LL << 40));
  p.add_int64_data(1);
  p.set_data_type(TensorProto::INT64);
  EXPECT_EQ(to_tensor(p)->data<std::int64_t>()[0], -(1LL << 40));
  p.add_uint64_data(7);
  p.add_uint64_data(4000000000);
  p.set_data_type(TensorProto::UINT32);
  EXPECT_EQ(to_tensor(p)->data<std::uint32_t>()[1], 4000000000U);
  p.set_data_type(TensorProto::UINT64);
  EXPECT_EQ(to_tensor(p)->data<std::uint64_t>()[1], 4000000000U);
}

TEST(TensorProto, WhatDoesNotFillItsShapeIsRefused) {
  TensorProto p;
  p.set_name("w");
  p.set_data_type(TensorProto::FLOAT);
  p.add_dims(3);
  p.set_raw_data(std::string(8, '\0'));
  EXPECT_EQ(to_tensor(p).status().message(), "tensor 'w': its data does not fill float32 [3]");
  // A shape that claims 4 EB allocates nothing.
  p.set_dims(0, std::int64_t{1} << 60);
  EXPECT_FALSE(to_tensor(p).ok());
  p.clear_raw_data();
  EXPECT_FALSE(to_tensor(p).ok());
  EXPECT_FALSE(tensor_data_bytes(p).ok());
  p.set_dims(0, -1);
  EXPECT_FALSE(to_tensor(p).ok());
  p.set_data_type(TensorProto::STRING);
  EXPECT_THAT(to_tensor(p).status().message(), HasSubstr("'w' is string"));
  p.set_data_type(99);
  EXPECT_THAT(tensor_data_bytes(p).status().message(), HasSubstr("type 99"));
}

TEST(TensorProto, ExternalRange) {
  TensorProto p;
  p.set_name("w");
  p.set_raw_data("abcd");
  set_external(p, {"w.bin", 4096, 4, true});
  EXPECT_TRUE(is_external(p));
  EXPECT_FALSE(p.has_raw_data());
  const auto range = external_range(p);
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(range->location, "w.bin");
  EXPECT_EQ(range->offset, 4096u);
  EXPECT_EQ(range->length, 4u);
  p.mutable_external_data(1)->set_value("-1");
  EXPECT_THAT(external_range(p).status().message(), HasSubstr("offset is '-1'"));
  p.clear_external_data();
  EXPECT_THAT(external_range(p).status().message(), HasSubstr("no location"));
}

TEST(TensorProto, TypeInfoAndBack) {
  const TensorInfo info{"x", DType::kInt64, {-1, 3}};
  const TensorInfo back = to_info(to_value_info(info));
  EXPECT_EQ(back.name, "x");
  EXPECT_EQ(back.dtype, DType::kInt64);
  EXPECT_EQ(back.shape, (Shape{-1, 3}));
  EXPECT_TRUE(back.has_rank);
  TensorInfo unranked = info;
  unranked.has_rank = false;
  EXPECT_FALSE(to_info(to_value_info(unranked)).has_rank);
}

}  // namespace
}  // namespace tenonnx
