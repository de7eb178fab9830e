// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/tensor_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/half.h"

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
// Figures of a handful of doubles: a few roundings of 1.1e-16.
constexpr double kRounding = 1e-15;

Tensor floats(const std::vector<float>& values) {
  return Tensor::from(DType::kFloat32, {static_cast<std::int64_t>(values.size())}, values);
}

TensorError compare(const Tensor& a, const Tensor& b) {
  const auto error = compare_tensors(a, b);
  EXPECT_TRUE(error.ok()) << error.status().message();
  return error.ok() ? *error : TensorError{};
}

// Reference (3,4), candidate (4,3): cosine 24/25, |d| = sqrt(2), |r| = 5.
TEST(TensorError, FiguresByHand) {
  const TensorError e = compare(floats({3, 4}), floats({4, 3}));
  EXPECT_NEAR(*e.cosine, 0.96, kRounding);
  EXPECT_NEAR(*e.relative_l2, std::sqrt(2.0) / 5, kRounding);
  EXPECT_EQ(e.max_abs, 1);
  EXPECT_EQ(e.max_abs_index, 0);
  EXPECT_EQ(e.mean_abs, 1);
  EXPECT_EQ(e.differing, 2);
  EXPECT_EQ(e.compared, 2);
}

TEST(TensorError, OppositeVectorsHaveCosineMinusOne) {
  EXPECT_EQ(*compare(floats({1, 2}), floats({-1, -2})).cosine, -1);
  // Exactly 1 for equal vectors, so that no rounding looks like a difference.
  const Tensor odd = floats({0.1F, 0.7F, 1.3F, 1e-20F, 33.3F});
  EXPECT_EQ(*compare(odd, odd.clone()).cosine, 1);
}

TEST(TensorError, ZerosHaveDefinedFigures) {
  EXPECT_EQ(*compare(floats({0, 0}), floats({0, -0.0F})).cosine, 1);
  EXPECT_EQ(*compare(floats({0, 0}), floats({0, -0.0F})).relative_l2, 0);
  const TensorError e = compare(floats({0, 0}), floats({0, 1}));
  EXPECT_EQ(*e.cosine, 0);
  EXPECT_EQ(*e.relative_l2, std::numeric_limits<double>::infinity());
}

// In float, 2^24 + 1 is 2^24: a float accumulator would lose every later 1.
TEST(TensorError, SumsAreInDouble) {
  std::vector<float> a(4097, 1.0F), b(4097, 2.0F);
  a[0] = b[0] = 0x1p24F;
  const TensorError e = compare(floats(a), floats(b));
  EXPECT_NEAR(*e.relative_l2, 64.0 / std::sqrt(0x1p48 + 4096), kRounding);
  EXPECT_NEAR(e.mean_abs, 4096.0 / 4097, kRounding);
}

TEST(TensorError, Float64BeyondTheSquareRootOfItsRange) {
  for (double scale : {1e200, 1e-200}) {
    const Tensor a = Tensor::from<double>(DType::kFloat64, {2}, {3 * scale, 4 * scale});
    const Tensor b = Tensor::from<double>(DType::kFloat64, {2}, {4 * scale, 3 * scale});
    EXPECT_NEAR(*compare(a, b).cosine, 0.96, kRounding) << scale;
    EXPECT_NEAR(*compare(a, b).relative_l2, std::sqrt(2.0) / 5, kRounding) << scale;
  }
}

TEST(TensorError, HalfTypesAreReadAsTheirValues) {
  using Half = std::uint16_t;
  const Tensor a = Tensor::from<Half>(DType::kFloat16, {2}, {float_to_float16(3), 0x4400});
  const Tensor b = Tensor::from<Half>(DType::kFloat16, {2}, {float_to_float16(4), 0x4200});
  EXPECT_NEAR(*compare(a, b).cosine, 0.96, kRounding);
  const Tensor c = Tensor::from<Half>(DType::kBFloat16, {2}, {float_to_bfloat16(3), 0x4080});
  const Tensor d = Tensor::from<Half>(DType::kBFloat16, {2}, {float_to_bfloat16(4), 0x4040});
  EXPECT_NEAR(*compare(c, d).cosine, 0.96, kRounding);
}

TEST(TensorError, NonFiniteIsCountedAndLeftOutOfTheFigures) {
  //                                 broken  broken  masked  masked and lost
  const Tensor r = floats({3, 4, 1, 1, kInf, kInf, kNaN});
  const Tensor c = floats({4, 3, kInf, kNaN, kInf, 65504, kNaN});
  const TensorError e = compare(r, c);
  EXPECT_EQ(e.count, 7);
  EXPECT_EQ(e.compared, 2);
  EXPECT_NEAR(*e.cosine, 0.96, kRounding);
  EXPECT_EQ(e.reference.inf, 2);
  EXPECT_EQ(e.reference.nan, 1);
  EXPECT_EQ(e.candidate.inf, 2);
  EXPECT_EQ(e.candidate.nan, 2);
  EXPECT_EQ(e.broken, 2);
  EXPECT_EQ(e.first_broken_index, 2);
  EXPECT_EQ(e.masked_changed, 1);
  EXPECT_EQ(e.differing, 5);

  const Check check = finite_check("scores", e);
  EXPECT_EQ(check.verdict, Verdict::kFail);
  EXPECT_THAT(check.name, HasSubstr("scores"));
  EXPECT_THAT(check.note, HasSubstr("first at element 2 of 'scores'"));
}

TEST(TensorError, MaskedConstantsAreNoFailure) {
  const TensorError e = compare(floats({kInf, -kInf, 1}), floats({kInf, -kInf, 1}));
  EXPECT_EQ(finite_check("anchors", e).verdict, Verdict::kPass);
  EXPECT_EQ(e.differing, 0);
  EXPECT_EQ(compare(floats({kInf}), floats({-kInf})).masked_changed, 1);
}

TEST(TensorError, NothingFiniteHasNoFigures) {
  const TensorError e = compare(floats({kInf}), floats({1}));
  EXPECT_FALSE(e.cosine.has_value());
  EXPECT_FALSE(e.relative_l2.has_value());
}

TEST(TensorError, LabelsHaveNoCosine) {
  const Tensor a = Tensor::from<std::int64_t>(DType::kInt64, {3}, {1, 2, 3});
  const Tensor b = Tensor::from<std::int64_t>(DType::kInt64, {3}, {1, 3, 2});
  const TensorError e = compare(a, b);
  EXPECT_FALSE(e.cosine.has_value());
  EXPECT_FALSE(e.relative_l2.has_value());
  EXPECT_EQ(e.differing, 2);
  EXPECT_EQ(e.max_abs, 1);
}

TEST(TensorError, IntegerDifferencesDoNotOverflow) {
  const auto low = std::numeric_limits<std::int64_t>::min();
  const auto high = std::numeric_limits<std::int64_t>::max();
  const Tensor a = Tensor::from<std::int64_t>(DType::kInt64, {1}, {low});
  const Tensor b = Tensor::from<std::int64_t>(DType::kInt64, {1}, {high});
  EXPECT_EQ(compare(a, b).max_abs, 0x1p64);  // 2^64 - 1, rounded to double
  const Tensor c = Tensor::from<std::int8_t>(DType::kInt8, {1}, {-128});
  const Tensor d = Tensor::from<std::int8_t>(DType::kInt8, {1}, {127});
  EXPECT_EQ(compare(c, d).max_abs, 255);
}

TEST(TensorError, MismatchNamesBothSides) {
  const auto shape = compare_tensors(Tensor(DType::kFloat32, {1, 4}), Tensor(DType::kFloat32, {4}));
  ASSERT_FALSE(shape.ok());
  EXPECT_EQ(shape.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(shape.status().message(), HasSubstr("float32 [1,4]"));
  EXPECT_THAT(shape.status().message(), HasSubstr("float32 [4]"));
  const auto dtype = compare_tensors(Tensor(DType::kFloat32, {4}), Tensor(DType::kFloat16, {4}));
  ASSERT_FALSE(dtype.ok());
  EXPECT_THAT(dtype.status().message(), HasSubstr("float16 [4]"));
  const auto none = compare_tensors(Tensor(), Tensor(DType::kFloat16, {4}));
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.status().message(), HasSubstr("the reference tensor is undefined"));
}

TEST(TensorError, EmptyTensorsCompare) {
  const TensorError e = compare(floats({}), floats({}));
  EXPECT_EQ(e.count, 0);
  EXPECT_FALSE(e.cosine.has_value());
}

TEST(TensorError, JoinKeepsTheWorstAndAddsCounts) {
  TensorError total;
  join_worst(total, compare(floats({3, 4}), floats({3, 4})));
  join_worst(total, compare(floats({3, 4, 1}), floats({4, 3, kNaN})));
  join_worst(total, compare(floats({3, 4}), floats({3, 4.5F})));
  EXPECT_EQ(total.count, 7);
  EXPECT_EQ(total.compared, 6);
  EXPECT_NEAR(*total.cosine, 0.96, kRounding);
  EXPECT_NEAR(*total.relative_l2, std::sqrt(2.0) / 5, kRounding);
  EXPECT_EQ(total.max_abs, 1);
  EXPECT_NEAR(total.mean_abs, 2.5 / 6, kRounding);
  EXPECT_EQ(total.broken, 1);
  EXPECT_EQ(total.first_broken_index, 2);
}

TEST(RowError, FindsTheOneBadRow) {
  const Tensor r = Tensor::from<float>(DType::kFloat32, {3, 2}, {1, 0, 3, 4, 100, 100});
  const Tensor c = Tensor::from<float>(DType::kFloat32, {3, 2}, {1, 0, 4, 3, 101, 100});
  const auto rows = compare_rows(r, c);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->rows, 3);
  EXPECT_EQ(rows->min_cosine_row, 1);
  EXPECT_NEAR(rows->min_cosine, 0.96, kRounding);
  EXPECT_EQ(rows->max_relative_l2_row, 1);
  const Tensor labels(DType::kInt64, {3, 2});
  EXPECT_THAT(compare_rows(labels, labels).status().message(), HasSubstr("int64"));
}

TEST(Identity, BitsCountExceptThoseOfNaN) {
  const auto identity = [](const std::vector<float>& a, const std::vector<float>& b) {
    return *compare_identical(floats(a), floats(b));
  };
  EXPECT_TRUE(identity({1, -0.0F, kInf, kNaN}, {1, -0.0F, kInf, -kNaN}).identical);
  const Identity ulp = identity({1, 1, 2}, {1, std::nextafter(1.0F, 2.0F), 3});
  EXPECT_FALSE(ulp.identical);
  EXPECT_EQ(ulp.differing, 2);
  EXPECT_EQ(ulp.first_index, 1);
  EXPECT_EQ(ulp.zero_signs, 0);
  const Identity zero = identity({0.0F}, {-0.0F});
  EXPECT_FALSE(zero.identical);
  EXPECT_EQ(zero.zero_signs, 1);
  EXPECT_FALSE(identity({kNaN}, {1}).identical);
  EXPECT_FALSE(identity({kInf}, {-kInf}).identical);
}

TEST(Identity, HoldsForEveryDType) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                      DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8,
                      DType::kUInt16, DType::kUInt32, DType::kUInt64, DType::kBool}) {
    Tensor a(dtype, {5}), b(dtype, {5});
    EXPECT_TRUE(compare_identical(a, b)->identical) << to_string(dtype);
    // The lowest bit of the last element.
    static_cast<unsigned char*>(b.mutable_raw())[4 * size_of(dtype)] = 1;
    const auto identity = compare_identical(a, b);
    EXPECT_EQ(identity->differing, 1) << to_string(dtype);
    EXPECT_EQ(identity->first_index, 4) << to_string(dtype);
    EXPECT_EQ(compare(a, b).differing, 1) << to_string(dtype);
  }
}

TEST(ToFloat32, ConvertsFloatsAndRefusesIntegers) {
  const Tensor half = Tensor::from<std::uint16_t>(DType::kFloat16, {1}, {float_to_float16(2.5F)});
  EXPECT_EQ(to_float32(half)->data<float>()[0], 2.5F);
  const Tensor single = floats({1});
  EXPECT_EQ(to_float32(single)->raw(), single.raw());
  EXPECT_THAT(to_float32(Tensor(DType::kInt8, {2})).status().message(), HasSubstr("int8 [2]"));
  EXPECT_FALSE(to_float32(Tensor()).ok());
}

}  // namespace
}  // namespace tenonnx
