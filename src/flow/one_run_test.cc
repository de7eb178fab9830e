// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/one_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/sim.h"
#include "base/status.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Judged {
  bool applies = false, settled = false;
  std::size_t differing = 0;
  std::string text;
};

Judged judge(const Model& before, const Model& after, const TensorMap& inputs,
             PassClass exactness = PassClass::kAlgebraic,
             const std::map<std::string, std::string>& renamed = {}) {
  const auto executor = make_proof_executor();
  LoadOptions load;
  load.optimization = Optimization::kDisabled;
  const auto one = OneRun::prepare(before, after, renamed, exactness, *executor, load);
  EXPECT_TRUE(one.ok()) << one.status().message();
  Judged judged;
  judged.applies = one.ok() && *one != nullptr;
  if (!judged.applies) return judged;
  judged.text = (*one)->description();
  const auto found = (*one)->run(inputs);
  judged.settled = found.ok() && found->has_value();
  if (!judged.settled) return judged;
  judged.differing = (*found)->differing;
  expect_identical((*found)->outputs, run_on_cpu(after, inputs));
  return judged;
}

Model graph_of(const std::string& nodes, const std::string& constants = "") {
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,8] x) => (float[2,8] y) {} "
      "{{ {} }}",
      constants, nodes));
}

const TensorMap& inputs() {
  static const TensorMap kInputs = {{"x", ramp({2, 8})}};
  return kInputs;
}

TEST(OneRun, WhatIsFoldedSharedAndNamedAnewIsNoChange) {
  const Model before = graph_of(
      "a = Relu (x) s = Shape (a) i = Identity (k) b = Reshape (a, s) c = Mul (b, i) "
      "l = Constant <value_float = 2.0> () y = Mul (c, l)",
      "<float k = {2}>");
  const Model after = graph_of("a = Relu (x) b = Reshape (a, t) c = Mul (b, k) y = Mul (c, k)",
                               "<float k = {2}, int64[2] t = {2, 8}>");
  const Judged judged = judge(before, after, inputs(), PassClass::kBitwise);
  EXPECT_TRUE(judged.settled);
  EXPECT_THAT(judged.text, StartsWith("4 nodes of both graphs ran once, 0 changed parts"));
}

TEST(OneRun, AWrongConstantIsFound) {
  const Model before =
      graph_of("a = Relu (x) s = Shape (a) b = Reshape (a, s) y = Mul (b, k)", "<float k = {2}>");
  for (const char* after :
       {"<float k = {2.001}, int64[2] t = {2, 8}>", "<float k = {2}, int64[2] t = {1, 16}>"}) {
    const Judged judged =
        judge(before, graph_of("a = Relu (x) b = Reshape (a, t) y = Mul (b, k)", after), inputs());
    EXPECT_FALSE(judged.settled) << after;
  }
}

TEST(OneRun, AnAlgebraicChangeHasItsFloor) {
  const Model before =
      graph_of("a = Mul (x, k) b = Mul (a, l) y = Relu (b)", "<float k = {0.3}, float l = {0.7}>");
  const Model after = graph_of("b = Mul (x, m) y = Relu (b)", "<float m = {0.21}>");
  EXPECT_FALSE(judge(before, after, inputs(), PassClass::kBitwise).settled);
  const Judged judged = judge(before, after, inputs());
  EXPECT_TRUE(judged.settled);
  EXPECT_EQ(judged.differing, 1U);
  const Model wrong = graph_of("b = Mul (x, m) y = Relu (b)", "<float m = {0.2101}>");
  EXPECT_FALSE(judge(before, wrong, inputs()).settled);
}

// An error of one part is not covered by what follows: each part gets the tensors of the graph
// after.
TEST(OneRun, AnErrorThatDoesNotReachTheOutputIsFound) {
  const Model before = graph_of("a = Mul (x, k) b = Sub (a, a) y = Add (x, b)", "<float k = {2}>");
  const Model after = graph_of("a = Mul (x, k) b = Sub (a, a) y = Add (x, b)", "<float k = {3}>");
  EXPECT_FALSE(judge(before, after, inputs()).settled);
}

TEST(OneRun, ARenameIsNotBelieved) {
  const Model before = graph_of("a = Neg (x) b = Abs (a) y = Relu (b)");
  const Model after = graph_of("a = Neg (x) y = Relu (a)");
  EXPECT_FALSE(judge(before, after, inputs(), PassClass::kAlgebraic, {{"b", "a"}}).settled);
  const Model same = graph_of("a = Neg (x) b = Identity (a) y = Relu (b)");
  EXPECT_TRUE(judge(same, after, inputs(), PassClass::kBitwise, {{"b", "a"}}).settled);
}

Model convolution(const std::string& nodes, const std::string& weights) {
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1,2,40,12] x) => (float[1,2,40,12] y) "
      "<{}> {{ {} }}",
      weights, nodes));
}

TEST(OneRun, ConvolutionsAreJudgedOnStrips) {
  const Model before = convolution("c = Conv (x, w) y = Mul (c, k)",
                                   "float[2,2,1,1] w = {0.1,0.2,0.3,0.4}, float k = {0.3}");
  const auto after = [](const char* weights) {
    return convolution("y = Conv (x, v)", fmt::format("float[2,2,1,1] v = {{{}}}", weights));
  };
  const TensorMap image = {{"x", ramp({1, 2, 40, 12})}};
  const Judged judged = judge(before, after("0.03,0.06,0.09,0.12"), image);
  EXPECT_TRUE(judged.settled);
  EXPECT_THAT(judged.text, HasSubstr("(1 on some of their rows)"));
  EXPECT_FALSE(judge(before, after("0.03,0.06,0.09,0.1201"), image).settled);
}

// Two channels cancel: what is finite as the product of their sum is not as the sum of their
// products. Only in a row behind the strip.
TEST(OneRun, AnOverflowBehindTheStripIsNoPass) {
  const Model before = convolution("c = Conv (x, w) y = Mul (c, k)",
                                   "float[2,2,1,1] w = {1,-1,1,-1}, float k = {100}");
  const Model after = convolution("y = Conv (x, v)", "float[2,2,1,1] v = {100,-100,100,-100}");
  Tensor image = ramp({1, 2, 40, 12});
  EXPECT_TRUE(judge(before, after, {{"x", image}}).settled);
  for (const std::int64_t channel : {0, 1})
    image.mutable_data<float>()[(channel * 40 + 30) * 12] = 1e38F;
  EXPECT_FALSE(judge(before, after, {{"x", image}}).settled);
}

TEST(OneRun, FactorsInAnotherOrderAreWithinTheirFloor) {
  const auto graph = [](const char* first, const char* second, const char* inner = "other") {
    return model_from_text(fmt::format(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[40000] x) => (float[40000] y) "
        "<float k = {{{0}}}, float l = {{{1}}}, int64[1] all = {{-1}}> {{ {2} = Mul (x, k) "
        "{2}_r = Reshape ({2}, all) b = Mul ({2}_r, l) y = Relu (b) }}",
        first, second, inner));
  };
  const TensorMap vector = {{"x", ramp({40000})}};
  const Model before = graph("0.3", "0.7", "a");
  const Judged judged = judge(before, graph("0.7", "0.3"), vector);
  EXPECT_TRUE(judged.settled);
  EXPECT_EQ(judged.differing, 1U);
  EXPECT_FALSE(judge(before, graph("0.7", "0.3"), vector, PassClass::kBitwise).settled);
  EXPECT_FALSE(judge(before, graph("0.7", "0.3001"), vector).settled);
}

TEST(OneRun, AnAdditionOfZeroNeedsNoRun) {
  const Model before = graph_of("a = Neg (x) b = Add (a, k) y = Relu (b)", "<float k = {0}>");
  const Model after = graph_of("a = Neg (x) y = Relu (a)");
  const std::map<std::string, std::string> renamed = {{"b", "a"}};
  const Judged judged = judge(before, after, inputs(), PassClass::kAlgebraic, renamed);
  EXPECT_TRUE(judged.settled);
  EXPECT_THAT(judged.text,
              HasSubstr("0 changed parts of the old one on the same tensors, 1 operation"));
  EXPECT_TRUE(judge(before, after, inputs(), PassClass::kBitwise, renamed).settled);
  const Model wrong = graph_of("a = Neg (x) b = Add (a, k) y = Relu (b)", "<float k = {0.001}>");
  EXPECT_FALSE(judge(wrong, after, inputs(), PassClass::kAlgebraic, renamed).settled);
}

TEST(OneRun, NotGraphsOfTwoOpsets) {
  const auto graph = [](int opset) {
    return model_from_text(
        fmt::format("<ir_version: 8, opset_import: [\"\" : {}]> g (float[2,8] x) => (float[2,8] y) "
                    "{{ y = Relu (x) }}",
                    opset));
  };
  EXPECT_FALSE(judge(graph(17), graph(18), inputs()).applies);
  EXPECT_TRUE(judge(graph(17), graph(17), inputs()).settled);
}

TEST(OneRun, ADynamicShapeIsNotFolded) {
  const auto graph = [](const std::string& nodes, const std::string& constants) {
    return model_from_text(fmt::format(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n,8] x) => (float[n,8] y) {} {{ {} }}",
        constants, nodes));
  };
  const Model before = graph("a = Relu (x) s = Shape (a) y = Reshape (a, s)", "");
  const Model after = graph("a = Relu (x) y = Reshape (a, t)", "<int64[2] t = {2, 8}>");
  EXPECT_TRUE(judge(before, after, inputs()).settled);
  EXPECT_FALSE(judge(before, after, {{"x", ramp({4, 8})}}).settled);
}

}  // namespace
}  // namespace tenonnx
