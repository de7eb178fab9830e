// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/rewriter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Takes Identity away: the smallest pass there is.
Result<PassOutcome> without_identities(Model& model) {
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_op(node, "Identity") || !r.begin({i})) return;
    if (!r.alias(node.output(0), node.input(0))) return r.refuse(i, "joins an input and an output");
    r.remove(i);
    r.apply(i, "goes");
  }));
  return r.finish();
}

TEST(Rewriter, ChainsVanishAndGraphOutputsKeepTheirNames) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y, float[4] z) {
      a = Identity (x)  b = Relu (a)  c = Identity (b)  d = Identity (c)  y = Identity (d)
      z = Neg (d)
    })");
  const Model before = model.clone();
  const auto outcome = without_identities(model);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->applied, 4);
  EXPECT_EQ(outcome->sites.size(), 4U);
  EXPECT_THAT(op_types(model), ElementsAre("Relu", "Neg"));
  EXPECT_EQ(outcome->renamed,
            (std::map<std::string, std::string>{{"a", "x"}, {"b", "y"}, {"c", "y"}, {"d", "y"}}));
  const TensorMap inputs = {{"x", ramp({4})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

// A constant is no tensor of the graph, and what nothing reads any more is gone.
TEST(Rewriter, OnlyTensorsOfBothGraphsAreNamed) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y) <float[4] k = {1, 2, 3, 4}> {
      a = Identity (k)  y = Add (x, a)  b = Neg (x)  c = Identity (b)
    })");
  const auto outcome = without_identities(model);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->applied, 2);
  EXPECT_THAT(outcome->renamed, testing::IsEmpty());
}

TEST(Rewriter, RefusesWhatWouldJoinAnInputAndAnOutput) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y, float[4] z) { y = Identity (x)  w = Neg (x)  z = Identity (w) })");
  const auto outcome = without_identities(model);
  ASSERT_TRUE(outcome.ok());
  EXPECT_THAT(op_types(model), ElementsAre("Identity", "Neg"));
  ASSERT_EQ(outcome->skipped.size(), 1U);
  EXPECT_THAT(outcome->skipped[0].node, HasSubstr("Identity 'node_0'"));
}

TEST(Rewriter, BodiesReadTheNewName) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, bool c) => (float[4] y) {
      a = Neg (x)  b = Identity (a)
      y = If (c) <then_branch = t () => (float[4] p) { p = Relu (b) },
                  else_branch = e () => (float[4] q) { b2 = Abs (b)  q = Identity (b2) }>
    })");
  ASSERT_TRUE(without_identities(model).ok());
  EXPECT_EQ(op_counts(model),
            (std::map<std::string, int>{
                {"Neg", 1}, {"If", 1}, {"Relu", 1}, {"Abs", 1}, {"Identity", 1}}));
  ASSERT_TRUE(check_model(model, "after").ok());
}

TEST(Rewriter, ReadsConstantsShapesAndUses) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[3,2] y) <float two = {2}, int64[2] axes = {1, 0}> {
      half = Constant <value_float = 0.5> ()
      a = Mul (x, two)  b = Mul (a, half)  y = Transpose <perm = [1, 0]> (b)
    })");
  const Rewriter r(model);
  EXPECT_EQ(r.scalar("two"), 2.0);
  EXPECT_EQ(r.scalar("half"), 0.5);
  EXPECT_FALSE(r.scalar("x").has_value());
  EXPECT_EQ(r.integers("axes"), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(r.static_shape("y"), (Shape{3, 2}));
  EXPECT_EQ(r.dtype("a"), DType::kFloat32);
  EXPECT_EQ(r.sole_user("a"), 2);
  EXPECT_EQ(r.sole_user("y"), -1);
  EXPECT_EQ(r.use_count("y"), 1U);
  EXPECT_EQ(r.producer("b", "Mul"), 2);
  EXPECT_EQ(r.producer("b", "Add"), -1);
}

TEST(Rewriter, TwoChangesOfASweepTouchDifferentNodes) {
  // Every pair of Neg vanishes; of three in a row the first two, and never the middle one twice.
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y) { a = Neg (x)  b = Neg (a)  c = Neg (b)  y = Relu (c) })");
  Rewriter r(model);
  ASSERT_TRUE(r.run([&](int i) {
                 if (!is_op(r.node(i), "Neg")) return;
                 const int before = r.producer(r.node(i).input(0), "Neg");
                 if (before < 0 || !r.begin({before, i})) return;
                 if (!r.alias(r.node(i).output(0), r.node(before).input(0))) return;
                 r.remove(i);
                 r.apply(i, "cancels");
               }).ok());
  EXPECT_EQ(r.finish().applied, 1);
  EXPECT_THAT(op_types(model), ElementsAre("Neg", "Relu"));
}

}  // namespace
}  // namespace tenonnx
