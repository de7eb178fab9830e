// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/constant_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "model/shapes.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

ComputedConstants computed(const Model& model) {
  const TensorInfos infos = infer_shapes(model);
  auto made = compute_constants(model, [&](std::string_view name) -> std::optional<TensorInfo> {
    const auto it = infos.find(std::string(name));
    if (it == infos.end()) return std::nullopt;
    return it->second;
  });
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(*made) : ComputedConstants();
}

TEST(ConstantPart, ShapesAndWhatFollowsFromThem) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,8] x) => (float[16] y) <int64 zero = {0}, int64[1] axis = {0}> {
      a = Relu (x)
      s = Shape (a)
      n = Constant <value_ints = [8]> ()
      rows = Gather (s, zero)
      row = Unsqueeze (rows, axis)
      all = Mul (row, n)
      y = Reshape (a, all)
    })");
  const ComputedConstants made = computed(model);
  EXPECT_THAT(op_types(made.model), ElementsAre("Relu", "Reshape"));
  EXPECT_THAT(made.shapes, ElementsAre(Pair("a", Shape({2, 8}))));
  const auto all = made.model.initializer("all");
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->data<std::int64_t>()[0], 16);
  const TensorMap inputs = {{"x", ramp({2, 8})}};
  expect_identical(run_on_cpu(model, inputs), run_on_cpu(made.model, inputs));
}

// What torch.export writes for a number beside a tensor.
TEST(ConstantPart, CastLikeOfAConstant) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float16[2,8] x) => (float16[2,8] y) <float k = {0.1}> {
      a = Relu (x)
      c = CastLike (k, a)
      n = Neg (c)
      y = Mul (a, n)
    })");
  const ComputedConstants made = computed(model);
  EXPECT_THAT(op_types(made.model), ElementsAre("Relu", "Mul"));
  const auto value = made.model.initializer("n");
  ASSERT_TRUE(value.ok()) << value.status().message();
  EXPECT_EQ(value->dtype(), DType::kFloat16);
  const auto unknown =
      compute_constants(model, [](std::string_view) { return std::optional<TensorInfo>(); });
  ASSERT_TRUE(unknown.ok());
  EXPECT_THAT(op_types(unknown->model), ElementsAre("Relu", "CastLike", "Neg", "Mul"));
}

TEST(ConstantPart, WhatDependsOnInputsOrChanceStays) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,n] x) => (float[2,n] y, float[2,8] z, int64[2] c) <float k = {2}> {
      s = Shape (x)
      f = Cast <to = 1> (s)
      g = ReduceSum <keepdims = 0> (f)
      y = Mul (x, g)
      r = RandomNormal <shape = [2,8]> ()
      z = Mul (r, k)
      c = Constant <value_ints = [1,2]> ()
    })");
  const ComputedConstants made = computed(model);
  EXPECT_THAT(op_types(made.model),
              ElementsAre("Shape", "Cast", "ReduceSum", "Mul", "RandomNormal", "Mul", "Constant"));
  EXPECT_THAT(made.shapes, IsEmpty());
}

// An initializer that is an input too may be overridden.
TEST(ConstantPart, ADefaultIsNoConstant) {
  onnx::ModelProto proto = proto_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x, float[2] k) => (float[2] y) <float[2] k = {1, 2}> {
      l = Neg (k) y = Add (x, l)
    })");
  const auto model = Model::from_proto(std::move(proto));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_THAT(op_types(computed(*model).model), ElementsAre("Neg", "Add"));
}

}  // namespace
}  // namespace tenonnx
