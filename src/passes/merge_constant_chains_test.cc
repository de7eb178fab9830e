// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Chains here have at most four roundings of values below 64: 4 * 64 * 2^-24 = 1.5e-5 apart.
void expect_close(const TensorMap& a, const TensorMap& b) {
  for (const auto& [name, old] : a) {
    ASSERT_EQ(old.shape(), b.at(name).shape());
    for (std::int64_t i = 0; i < old.size(); ++i)
      EXPECT_NEAR(old.data<float>()[i], b.at(name).data<float>()[i], 1.5e-5) << name << " " << i;
  }
}

TEST(MergeConstantChains, ThreeTimesTwoIsSix) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4] x) => (float[2,4] y) <float three = {3}, float two = {2}> {
      a = Mul (x, three)  y = Mul (two, a)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "merge_constant_chains").applied, 1);
  EXPECT_THAT(op_types(model), ElementsAre("Mul"));
  ASSERT_EQ(model.proto().graph().initializer_size(), 1);
  EXPECT_EQ(model.constant(model.proto().graph().initializer(0).name())->data<float>()[0], 6.0F);
  const TensorMap inputs = {{"x", ramp({2, 4})}};
  expect_close(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(MergeConstantChains, EveryPairAndBroadcasting) {
  for (const char* chain : {"a = Mul (x, s)  y = Div (a, v)", "a = Div (x, s)  y = Mul (a, v)",
                            "a = Div (x, v)  y = Div (a, s)", "a = Add (x, v)  y = Sub (a, s)",
                            "a = Sub (x, s)  y = Add (v, a)", "a = Sub (x, v)  y = Sub (a, s)"}) {
    Model model = model_from_text(std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[N,4] x) => (float[N,4] y) <float s = {3}, float[1,4] v = {-0.5, -1, -7, -6}> { )") +
                                  chain + " }");
    const Model before = model.clone();
    EXPECT_EQ(run_pass(model, "merge_constant_chains").applied, 1) << chain;
    EXPECT_EQ(op_types(model).size(), 1U) << chain;
    const TensorMap inputs = {{"x", ramp({3, 4})}};
    expect_close(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
  }
}

TEST(MergeConstantChains, ThreeOfAlternatingKindsBecomeTwo) {
  for (const char* chain : {"a = Mul (x, s)  b = Add (a, v)  y = Div (b, t)",
                            "a = Div (x, s)  b = Sub (a, v)  y = Mul (b, t)",
                            "a = Add (x, v)  b = Mul (a, s)  y = Sub (b, t)",
                            "a = Sub (x, v)  b = Div (a, s)  y = Add (t, b)"}) {
    Model model = model_from_text(std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[2,4] x) => (float[2,4] y)
        <float s = {3}, float t = {-1.5}, float[4] v = {0.5, 2, 7, 5}> { )") +
                                  chain + " }");
    const Model before = model.clone();
    EXPECT_EQ(run_pass(model, "merge_constant_chains").applied, 1) << chain;
    EXPECT_EQ(op_types(model).size(), 2U) << chain;
    const TensorMap inputs = {{"x", ramp({2, 4})}};
    expect_close(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
  }
}

TEST(MergeConstantChains, RefusesZeroInfinityOverflowUnderflowAndGrowth) {
  const std::pair<const char*, const char*> cases[] = {
      {"float a = {0}, float b = {2}", "factor is 0"},
      {"float a = {1e30}, float b = {1e30}", "not a normal number"},
      {"float a = {1e-30}, float b = {1e-30}", "not a normal number"},
      {"float[2,1] a = {1, 2}, float[1,4] b = {1, 2, 3, 4}", "would be larger"},
  };
  for (const auto& [constants, reason] : cases) {
    Model model = model_from_text(std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[2,4] x) => (float[2,4] y) <)") +
                                  constants + "> { c = Mul (x, a)  y = Mul (c, b) }");
    const PassOutcome outcome = run_pass(model, "merge_constant_chains");
    EXPECT_EQ(outcome.applied, 0);
    ASSERT_EQ(outcome.skipped.size(), 1U);
    EXPECT_THAT(outcome.skipped[0].reason, HasSubstr(reason));
  }
}

// x + 1e8 keeps multiples of 8 of x, and x + 1.5 * 2^23 its integers: merged, they would keep x.
TEST(MergeConstantChains, RefusesAddedConstantsThatCancel) {
  for (const char* chain :
       {"a = Add (x, big)  y = Sub (a, big)", "a = Sub (x, big)  y = Add (big, a)",
        "a = Add (x, magic)  y = Sub (a, magic)", "a = Add (x, near)  y = Add (far, a)",
        "a = Add (x, magic)  b = Mul (a, two)  y = Sub (b, twice)"}) {
    Model model = model_from_text(std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[2,4] x) => (float[2,4] y)
        <float big = {1e8}, float magic = {12582912}, float two = {2}, float twice = {25165824},
         float[4] near = {1, 1, 1, 100}, float[4] far = {1, 1, 1, -51}> { )") +
                                  chain + " }");
    const std::size_t nodes = op_types(model).size();
    const PassOutcome outcome = run_pass(model, "merge_constant_chains");
    EXPECT_EQ(outcome.applied, 0) << chain;
    EXPECT_EQ(op_types(model).size(), nodes) << chain;
    ASSERT_EQ(outcome.skipped.size(), 1U) << chain;
    EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("cancel")) << chain;
  }
}

// Half of the larger is left: no more than one digit is at stake.
TEST(MergeConstantChains, MergesOppositeConstantsThatDoNotCancel) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4] x) => (float[2,4] y) <float a = {100}, float b = {50}> {
      c = Add (x, a)  y = Sub (c, b) })");
  EXPECT_EQ(run_pass(model, "merge_constant_chains").applied, 1);
}

TEST(MergeConstantChains, UsedTensorsConstantsInFrontAndIntegersStay) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, int64[4] n) => (float[4] y, float[4] a, float[4] z, int64[4] m)
      <float two = {2}, float three = {3}, int64 four = {4}> {
      a = Mul (x, two)  y = Mul (a, three)
      b = Div (two, x)  z = Div (b, three)
      c = Mul (n, four)  m = Mul (c, four)
    })");
  const PassOutcome outcome = run_pass(model, "merge_constant_chains");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("int64"));
}

TEST(MergeConstantChains, TheLastFactorOfAGeluStays) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[8] x) => (float[8] y)
      <float root = {1.41421356}, float one = {1}, float half = {0.5}, float gamma = {0.3}> {
      a = Div (x, root)  b = Erf (a)  c = Add (b, one)  d = Mul (x, c)  e = Mul (d, half)
      y = Mul (e, gamma)
    })");
  const PassOutcome outcome = run_pass(model, "merge_constant_chains");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("last factor of a GELU"));
}

}  // namespace
}  // namespace tenonnx
