// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The shape of the transformed graph. What it computes: adapters/sim_test.cc,
// passes/sim_round_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/half.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "model/tensor_proto.h"
#include "passes/sim_common.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const onnx::NodeProto& node_making(const onnx::GraphProto& graph, std::string_view tensor) {
  for (const auto& node : graph.node())
    for (const auto& output : node.output())
      if (output == tensor) return node;
  static const onnx::NodeProto none;
  ADD_FAILURE() << "nothing makes " << tensor;
  return none;
}

Arithmetic float16() {
  Arithmetic a;
  a.storage = DType::kFloat16;
  a.round_inputs = a.round_weights = a.round_outputs = true;
  return a;
}

TEST(SimFloat16, InputsWeightsAndOutputsAreRounded) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1.0001, 2, 3, 4}, float[2] b = {0.1, 70000}> {
      p = MatMul (x, w)
      y = Add (p, b)
    })");
  const PassOutcome outcome = run_pass(model, "sim_float16");
  EXPECT_THAT(op_types(model), ElementsAre("Round", "MatMul", "Round", "Add", "Round"));
  EXPECT_EQ(outcome.applied, 5);
  EXPECT_THAT(outcome.skipped, IsEmpty());
  const onnx::GraphProto& graph = model.proto().graph();
  EXPECT_EQ(model.opset("tenonnx.sim"), 1);
  // Inputs and outputs keep their names, and so do the values between.
  EXPECT_EQ(graph.input(0).name(), "x");
  EXPECT_EQ(graph.output(0).name(), "y");
  EXPECT_EQ(graph.node(0).input(0), "x");
  EXPECT_EQ(graph.node(1).input(0), graph.node(0).output(0));
  EXPECT_EQ(graph.node(1).output(0), "p/unrounded");
  EXPECT_EQ(graph.node(2).output(0), "p");
  EXPECT_EQ(graph.node(3).input(0), "p");
  EXPECT_EQ(graph.node(4).op_type(), "Round");
  EXPECT_EQ(graph.node(4).output(0), "y");
  const auto w = model.initializer("w"), b = model.initializer("b");
  ASSERT_TRUE(w.ok() && b.ok());
  EXPECT_EQ(w->data<float>()[0], 1.0F);
  EXPECT_EQ(b->data<float>()[0], float16_to_float(float_to_float16(0.1F)));
  EXPECT_EQ(b->data<float>()[1], std::numeric_limits<float>::infinity());
}

TEST(SimFloat16, EachRoundingCanBeOff) {
  constexpr const char* kText = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) <float[2] w = {1.0001, 2}> { y = Mul (x, w) })";
  const auto simulated = [&](auto change) {
    Arithmetic a = float16();
    change(a);
    Model model = model_from_text(kText);
    EXPECT_TRUE(simulate(model, a).ok());
    return std::pair(op_types(model), model.initializer("w")->data<float>()[0]);
  };
  using Types = std::vector<std::string>;
  EXPECT_EQ(simulated([](Arithmetic&) {}), std::pair(Types{"Round", "Mul", "Round"}, 1.0F));
  EXPECT_EQ(simulated([](Arithmetic& a) { a.round_inputs = false; }),
            std::pair(Types{"Mul", "Round"}, 1.0F));
  EXPECT_EQ(simulated([](Arithmetic& a) { a.round_weights = false; }),
            std::pair(Types{"Round", "Mul", "Round"}, 1.0001F));
  EXPECT_EQ(simulated([](Arithmetic& a) { a.round_outputs = false; }),
            std::pair(Types{"Round", "Mul"}, 1.0F));
  // float32 without limits is the graph itself.
  EXPECT_EQ(simulated([](Arithmetic& a) { a.storage = DType::kFloat32; }),
            std::pair(Types{"Mul"}, 1.0001F));
}

TEST(SimFloat16, NodesThatMoveStoredValuesNeedNoRounding) {
  constexpr const char* kText = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x, int64[2] i) => (float[2,2] v, int64[2,2] k, float[3,2] t)
    <int64[1] two = {2}> {
      r = Relu (x)
      t = Transpose (r)
      g1 = Gather <axis = 0> (r, i)
      v, k = TopK (g1, two)
    })";
  Model model = model_from_text(kText);
  run_pass(model, "sim_float16");
  EXPECT_THAT(op_types(model), ElementsAre("Round", "Relu", "Transpose", "Gather", "TopK"));
  // An input that is not rounded gives values that are not stored ones: each first node rounds.
  Arithmetic a = float16();
  a.round_inputs = false;
  Model other = model_from_text(kText);
  ASSERT_TRUE(simulate(other, a).ok());
  EXPECT_THAT(op_types(other), ElementsAre("Relu", "Round", "Transpose", "Gather", "TopK"));
  // Bounds that are attributes are no stored values.
  Model clip = model_from_text(R"(<ir_version: 8, opset_import: ["" : 9]>
    g (float[2] x) => (float[2] y) { y = Clip <min = 0.1, max = 0.7> (x) })");
  run_pass(clip, "sim_float16");
  EXPECT_THAT(op_types(clip), ElementsAre("Round", "Clip", "Round"));
}

TEST(SimFloat16, OutputsThatNothingUsesStayUnrounded) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4,8] x) => (float[2,4,8] y) <float[8] s = {1, 1, 1, 1, 1, 1, 1, 1}> {
      y, mean = LayerNormalization (x, s)
    })");
  run_pass(model, "sim_float16");
  EXPECT_THAT(op_types(model), ElementsAre("Round", "LayerNormalization", "Round"));
}

TEST(SimFloat16, OperandsOfProductsAsOnHtp) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,2] x) => (float[2,2] a, float[2,2] b, float[2,2] c)
    <float[2,2] w = {1, 2, 3, 4}, float[2,2] big = {1, 70000, 3, 4}> {
      s = Add (x, x)
      a = MatMul (s, w)
      b = MatMul (s, s)
      p = Sigmoid (s)
      c = MatMul (p, big)
    })");
  run_pass(model, "sim_float16", {{"device", "htp-v73"}});
  // One operand for x, of which an addition takes it as well; one for the three uses of s; none for
  // w and for a sigmoid, which are within the range; one for the weight beyond it.
  EXPECT_THAT(op_types(model), ElementsAre("Round", "Round", "Add", "RoundProduct", "Round",
                                           "MatMul", "RoundProduct", "MatMul", "RoundProduct",
                                           "Form", "Round", "Round", "MatMul", "RoundProduct"));
  const onnx::GraphProto& graph = model.proto().graph();
  EXPECT_EQ(node_making(graph, "a/unrounded").input(0), "s/operand");
  EXPECT_EQ(node_making(graph, "a/unrounded").input(1), "w");
  EXPECT_EQ(node_making(graph, "b/unrounded").input(0), "s/operand");
  EXPECT_EQ(node_making(graph, "b/unrounded").input(1), "s/operand");
  EXPECT_EQ(node_making(graph, "c/unrounded").input(0), "p");
  EXPECT_EQ(node_making(graph, "c/unrounded").input(1), "big/operand");
  EXPECT_EQ(attribute_or(node_making(graph, "s/operand"), "range_only", std::int64_t{0}), 1);
  EXPECT_EQ(attribute_or(node_making(graph, "p"), "saturate", 0.0F), 131008);
  for (const char* tensor : {"s", "a", "s/operand"})
    EXPECT_EQ(attribute_or(node_making(graph, tensor), "pattern", std::int64_t{0}), 1) << tensor;
  EXPECT_EQ(attribute_or(node_making(graph, "a"), "product", ""), "MatMul");
  EXPECT_EQ(attribute_or(node_making(graph, "s"), "product", ""), "Add");
  EXPECT_EQ(node_making(graph, "a").input(1), "s/operand");
}

TEST(SimFloat16, BodiesAreSimulatedToo) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x, bool c, int64 n) => (float[2] y, float[2] z) <bool yes = {1}, float[2] w = {0.1, 1}> {
      y = If (c) <
        then_branch = t () => (float[2] a) {
          k = Constant <value = float[2] {0.1, 0.2}> ()
          a = Mul (x, k)
        },
        else_branch = e () => (float[2] b) { b = Identity (x) }
      >
      z = Loop (n, yes, x) <
        body = l (int64 i, bool go, float[2] v) => (bool again, float[2] next) {
          next = Mul (v, w)
          again = Identity (go)
        }
      >
    })");
  run_pass(model, "sim_float16");
  const auto counts = op_counts(model);
  EXPECT_EQ(counts.at("Round"), 3);  // x, a, next; Identity moves
  const onnx::GraphProto& graph = model.proto().graph();
  EXPECT_EQ(graph.node(0).output(0), "x/rounded");
  const onnx::GraphProto* branch = nullptr;
  for (const auto& attribute : node_making(graph, "y").attribute())
    if (attribute.name() == "then_branch") branch = &attribute.g();
  ASSERT_NE(branch, nullptr);
  EXPECT_EQ(branch->output(0).name(), "a");
  EXPECT_EQ(node_making(*branch, "a/unrounded").input(0), "x/rounded");
  const auto k = to_tensor(node_making(*branch, "k").attribute(0).t());
  ASSERT_TRUE(k.ok());
  EXPECT_EQ(k->data<float>()[0], float16_to_float(float_to_float16(0.1F)));
}

TEST(SimFloat16, OtherTypes) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17, "acme" : 1]>
    g (double[2] d, float16[2] h, int64[2] i) => (double[2] a, float16[2] b, int64[2] c, float[2] e)
    {
      a = Add (d, d)
      b = Add (h, h)
      c = Add (i, i)
      u = acme.Warp (d)
      e = Cast <to = 1> (u)
    })");
  const PassOutcome outcome = run_pass(model, "sim_float16");
  EXPECT_THAT(op_types(model), ElementsAre("RoundDouble", "Add", "RoundDouble", "Add", "Add",
                                           "Warp", "Cast", "Round"));
  ASSERT_THAT(outcome.skipped, SizeIs(2));
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("'b' is float16"));
  EXPECT_THAT(outcome.skipped[1].node, HasSubstr("acme.Warp"));
  EXPECT_THAT(outcome.skipped[1].reason, HasSubstr("type of 'u' is not known"));
}

TEST(SimFloat16, RelativeErrorsHaveASeedOfTheirOwn) {
  Arithmetic a = float16();
  a.relative_error["Softmax"] = 0.01;
  a.seed = 5;
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y, float[2] z) { y = Softmax (x)
      z = Softmax (y) })");
  ASSERT_TRUE(simulate(model, a).ok());
  const onnx::GraphProto& graph = model.proto().graph();
  EXPECT_FLOAT_EQ(attribute_or(node_making(graph, "y"), "relative_error", 0.0F), 0.01F);
  EXPECT_NE(attribute_or(node_making(graph, "y"), "seed", std::int64_t{0}),
            attribute_or(node_making(graph, "z"), "seed", std::int64_t{0}));
}

TEST(SimFloat16, DevicesThatDoNotFitAreRefused) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { y = Relu (x) })");
  const auto error = [&](const char* pass, const char* option, const char* value) {
    const std::vector<std::string> names = {pass};
    return run_passes(model, names, {{std::string(pass) + "." + option, value}}).status().message();
  };
  EXPECT_THAT(error("sim_float16", "device", "cpu"), HasSubstr("has no arithmetic section"));
  EXPECT_THAT(error("sim_float16", "device", "htp"), HasSubstr("no device 'htp'"));
  EXPECT_THAT(error("sim_float16", "type", "x"), HasSubstr("unknown option 'type'"));
  EXPECT_THAT(error("sim_bfloat16", "device", "htp-v73"),
              AllOf(HasSubstr("stores float16"), HasSubstr("simulates bfloat16")));
}

}  // namespace
}  // namespace tenonnx
