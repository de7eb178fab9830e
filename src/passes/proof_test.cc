// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Wrong passes, one for each way to be wrong: each must be caught by the proof of its class.
#include "passes/proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/npy.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "model/tensor_proto.h"
#include "passes/edit.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

ProofData data_of(std::vector<TensorMap> inputs) {
  ProofData data;
  data.count = inputs.size();
  data.load = [inputs](std::size_t k) -> Result<TensorMap> { return inputs[k]; };
  data.name = [](std::size_t k) { return fmt::format("input {}", k); };
  data.description = "test inputs";
  return data;
}

PassProof prove(PassClass exactness, const Model& before, const Model& after,
                const std::vector<TensorMap>& inputs, const PassOutcome& outcome = {},
                const ProofOptions& options = {}) {
  PassInfo pass = {"test_pass", PassStage::kOptimize, 7, 26, exactness, "of a test", nullptr};
  const auto executor = make_cpu_executor();
  const ProofData data = data_of(inputs);
  auto proof = PassProver(*executor, data, options).prove(pass, before, after, outcome);
  EXPECT_TRUE(proof.ok()) << proof.status().message();
  return proof.ok() ? std::move(proof).value() : PassProof();
}

Model model_of(const std::string& nodes, const std::string& shape = "2,8",
               const std::string& initializers = "") {
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[{}] x) => (float[{}] y) {} {{ {} }}",
      shape, shape, initializers, nodes));
}

TensorMap positive(Shape shape) {
  Tensor x = ramp(std::move(shape));
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.mutable_data<float>()[i] = std::fabs(x.data<float>()[i]) + 0.5F;
  return {{"x", x}};
}

const std::vector<TensorMap> kRamp = {{{"x", ramp({2, 8})}}};

TEST(BitwiseProof, PassesWhereEveryBitIsTheSame) {
  const PassProof proof = prove(PassClass::kBitwise, model_of("a = Identity (x) y = Relu (a)"),
                                model_of("y = Relu (x)"), kRamp);
  EXPECT_EQ(proof.verdict, Verdict::kPass);
  EXPECT_EQ(proof.regions, 1);
  EXPECT_EQ(proof.captured_inputs, 1);
  EXPECT_EQ(proof.made_inputs, 6);
  EXPECT_THAT(proof.executor, HasSubstr("onnxruntime 1."));
  EXPECT_THAT(proof.executor, HasSubstr("optimisation disabled"));
}

TEST(BitwiseProof, CatchesOneUnitInTheLastPlace) {
  // (x * 3) / 3 is x but for its last bit, here and there.
  const PassProof proof = prove(PassClass::kBitwise,
                                model_of("a = Mul (x, k) y = Div (a, k)", "2,8", "<float k = {3}>"),
                                model_of("y = Identity (x)"), kRamp);
  EXPECT_EQ(proof.verdict, Verdict::kFail);
  ASSERT_EQ(proof.failures.size(), 1U);
  EXPECT_THAT(proof.failures[0].before, testing::ElementsAre("Mul 'node_0'", "Div 'node_1'"));
  EXPECT_THAT(to_text(proof.failures[0].check), HasSubstr("class bitwise"));
}

TEST(BitwiseProof, FindsOnMadeInputsWhatTheCapturedOnesDoNotShow) {
  // The same for every captured value; not for -0.
  const Model before = model_of("y = Add (x, k)", "2,8", "<float k = {0}>");
  const Model after = model_of("y = Identity (x)");
  ProofOptions captured_only;
  captured_only.made_inputs = false;
  EXPECT_EQ(prove(PassClass::kBitwise, before, after, kRamp, {}, captured_only).verdict,
            Verdict::kPass);
  const PassProof proof = prove(PassClass::kBitwise, before, after, kRamp);
  EXPECT_EQ(proof.verdict, Verdict::kFail);
  ASSERT_EQ(proof.failures.size(), 1U);
  EXPECT_EQ(proof.failures[0].input, "negative zeros (made)");
  EXPECT_THAT(proof.failures[0].check.note, HasSubstr("only +0 for -0"));
}

TEST(BitwiseProof, TakesTheNodesBeforeARegionWhereItRestsOnThem) {
  // The second Relu does nothing behind the first; alone it would.
  const PassProof proof =
      prove(PassClass::kBitwise, model_of("a = Relu (x) b = Relu (a) y = Neg (b)"),
            model_of("a = Relu (x) y = Neg (a)"), kRamp);
  EXPECT_EQ(proof.verdict, Verdict::kPass);
  EXPECT_EQ(proof.with_context, 1);
  // Behind a Neg it does something; the captured values are all such that it does not.
  const PassProof wrong = prove(
      PassClass::kBitwise,
      model_of("a = Abs (x) b = Relu (a) c = Sub (b, k) d = Relu (c) "
               "y = Neg (d)",
               "2,8", "<float k = {0.25}>"),
      model_of("a = Abs (x) b = Relu (a) c = Sub (b, k) y = Neg (c)", "2,8", "<float k = {0.25}>"),
      {positive({2, 8})});
  EXPECT_EQ(wrong.verdict, Verdict::kFail);
}

TEST(BitwiseProof, OneRegionAsAnothersCopy) {
  // b is a copy of a: only that makes both forms equal.
  const PassProof proof = prove(
      PassClass::kBitwise, model_of("a = Sigmoid (x) b = Sigmoid (x) c = Neg (a) y = Mul (b, c)"),
      model_of("a = Sigmoid (x) c = Neg (a) y = Mul (a, c)"), kRamp);
  EXPECT_EQ(proof.verdict, Verdict::kPass) << to_json(proof).dump(2);
}

constexpr const char* kNorm =
    "m = ReduceMean <axes = [1]> (x) d = Sub (x, m) s = Mul (d, d) v = ReduceMean <axes = [1]> (s) "
    "e = Add (v, eps) r = Sqrt (e) n = Div (d, r) w = Mul (n, scale) y = Add (w, bias)";

Model norm(const std::string& nodes, const std::string& eps = "1e-05",
           const std::string& scale = "0.5,0.7,0.9,1.1,1.3,1.5,1.7,1.9") {
  return model_of(nodes, "2,8",
                  fmt::format("<float eps = {{{}}}, float[8] scale = {{{}}}, float[8] bias = "
                              "{{0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8}}>",
                              eps, scale));
}

// Two threads take the logarithms' ends apart from one; the constants were folded with one.
TEST(BitwiseProof, DoesNotTakeTheThreadsForTheGraph) {
  constexpr std::int64_t kSize = 34000;
  Model before = model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[{0}] x, float[{0}] k) => (float[{0}] y) "
      "<float one = {{1}}> {{ q = Sub (one, k) r = Div (k, q) l = Log (r) y = Add (x, l) }}",
      kSize));
  Tensor k(DType::kFloat32, {kSize});
  for (std::int64_t i = 0; i < kSize; ++i)
    k.mutable_data<float>()[i] = (static_cast<float>(i) + 0.5F) / static_cast<float>(kSize);
  onnx::GraphProto& graph = *before.mutable_proto().mutable_graph();
  graph.mutable_input()->RemoveLast();
  *graph.add_initializer() = to_tensor_proto(k, "k");
  Model after = before.clone();
  const PassOutcome outcome = run_pass(after, "fold_constants");
  EXPECT_EQ(outcome.applied, 3);
  ProofOptions two;
  two.threads = 2;
  const PassProof proof =
      prove(PassClass::kBitwise, before, after, {{{"x", ramp({kSize})}}}, outcome, two);
  EXPECT_EQ(proof.verdict, Verdict::kPass);
}

TEST(AlgebraicProof, PassesAFusedLayerNormalization) {
  const PassProof proof =
      prove(PassClass::kAlgebraic, norm(kNorm),
            norm("y = LayerNormalization <axis = 1, epsilon = 1e-05> (x, scale, bias)"), kRamp);
  EXPECT_EQ(proof.verdict, Verdict::kPass) << to_json(proof).dump(2);
  // Not a bitwise change: the floor is what lets it pass.
  EXPECT_GT(proof.worst.value, 0);
  EXPECT_THAT(proof.worst.limit.origin, HasSubstr("8 x the noise floor"));
}

TEST(AlgebraicProof, CatchesAWrongEpsilon) {
  const PassProof proof =
      prove(PassClass::kAlgebraic, norm(kNorm),
            norm("y = LayerNormalization <axis = 1, epsilon = 1e-06> (x, scale, bias)"), kRamp);
  EXPECT_EQ(proof.verdict, Verdict::kFail);
}

TEST(AlgebraicProof, CatchesAWrongSign) {
  const PassProof proof =
      prove(PassClass::kAlgebraic, norm(kNorm),
            norm("z = LayerNormalization <axis = 1> (x, scale, bias) y = Neg (z)"), kRamp);
  EXPECT_EQ(proof.verdict, Verdict::kFail);
}

TEST(AlgebraicProof, CatchesATransposedScale) {
  // s folded into w would need columns; here the rows got it.
  const Model before = model_of("a = MatMul (x, w) y = Mul (a, s)", "2,2",
                                "<float[2,2] w = {1.1,2.2,3.3,4.7}, float[2] s = {0.3,1.9}>");
  const Model right =
      model_of("y = MatMul (x, w2)", "2,2", "<float[2,2] w2 = {0.33,4.18,0.99,8.93}>");
  const Model wrong =
      model_of("y = MatMul (x, w2)", "2,2", "<float[2,2] w2 = {0.33,0.66,6.27,8.93}>");
  const std::vector<TensorMap> inputs = {{{"x", ramp({2, 2})}}};
  EXPECT_EQ(prove(PassClass::kAlgebraic, before, right, inputs).verdict, Verdict::kPass)
      << to_json(prove(PassClass::kAlgebraic, before, right, inputs)).dump(2);
  EXPECT_EQ(prove(PassClass::kAlgebraic, before, wrong, inputs).verdict, Verdict::kFail);
}

TEST(AlgebraicProof, InfWhereTheOldFormIsFiniteFails) {
  // ln(e^x) is x until e^x overflows, which only wide inputs show.
  const PassProof proof = prove(PassClass::kAlgebraic, model_of("a = Neg (x) y = Neg (a)"),
                                model_of("a = Exp (x) y = Log (a)"), kRamp);
  EXPECT_EQ(proof.verdict, Verdict::kFail);
}

TEST(BoundedProof, HoldsThePassToItsBound) {
  const Model before = model_of("y = Tanh (x)");
  const Model after = model_of("a = Mul (x, k) y = Tanh (a)", "2,8", "<float k = {1.001}>");
  PassOutcome outcome;
  outcome.bound = Limit{1e-3, "|x| sech^2 x times 0.001, at most 0.00045"};
  EXPECT_EQ(prove(PassClass::kBounded, before, after, kRamp, outcome).verdict, Verdict::kPass);
  outcome.bound = Limit{1e-4, "a bound that does not hold"};
  const PassProof proof = prove(PassClass::kBounded, before, after, kRamp, outcome);
  EXPECT_EQ(proof.verdict, Verdict::kFail);
  EXPECT_THAT(to_text(proof.worst), HasSubstr("a bound that does not hold"));
  EXPECT_EQ(prove(PassClass::kBounded, before, after, kRamp).verdict, Verdict::kInconclusive);
}

TEST(ApproximateProof, AsksForTheTaskGate) {
  const PassProof proof = prove(PassClass::kApproximate, model_of("y = Sigmoid (x)"),
                                model_of("y = HardSigmoid (x)"), kRamp);
  EXPECT_EQ(proof.verdict, Verdict::kInconclusive);
  EXPECT_EQ(proof.regions, 1);
  EXPECT_THAT(to_text(proof.worst), HasSubstr("needs the task gate"));
}

TEST(Renames, AreProvedLikeEverythingElse) {
  const Model before = model_of("a = Neg (x) b = Abs (a) y = Relu (b)");
  // b became c, and is the same.
  const Model right = model_of("a = Neg (x) c = Abs (a) y = Relu (c)");
  PassOutcome outcome;
  outcome.renamed = {{"b", "c"}};
  EXPECT_EQ(prove(PassClass::kBitwise, before, right, kRamp, outcome).verdict, Verdict::kPass);
  // b is gone, and a is not what it was.
  const Model other = model_of("a = Neg (x) y = Abs (a)");
  outcome.renamed = {{"b", "a"}};
  const PassProof proof = prove(PassClass::kBitwise, before, other, kRamp, outcome);
  EXPECT_EQ(proof.verdict, Verdict::kFail) << to_json(proof).dump(2);
  outcome.renamed = {{"b", "nowhere"}};
  const PassProof missing = prove(PassClass::kBitwise, before, other, kRamp, outcome);
  EXPECT_EQ(missing.verdict, Verdict::kFail);
  EXPECT_THAT(missing.worst.note, HasSubstr("the graph after it has no 'nowhere'"));
}

TEST(Proof, AnotherValueUnderAnOldNameIsCaught) {
  // y is right; a is not what it was, and nothing says so.
  const PassProof proof =
      prove(PassClass::kBitwise, model_of("a = Neg (x) b = Neg (a) y = Relu (b)"),
            model_of("a = Relu (x) y = Identity (a)"), kRamp);
  EXPECT_EQ(proof.verdict, Verdict::kFail);
}

TEST(Proof, AGraphThatDoesNotRunIsAFailureAndNamesTheRegion) {
  const Model before = model_of("a = Neg (x) y = Relu (a)");
  const Model after =
      model_of("a = Neg (x) b = Reshape (a, s) y = Relu (b)", "2,8", "<int64[1] s = {7}>");
  const PassProof proof = prove(PassClass::kBitwise, before, after, kRamp);
  EXPECT_EQ(proof.verdict, Verdict::kFail);
  ASSERT_EQ(proof.failures.size(), 1U);
  EXPECT_THAT(proof.failures[0].after, testing::Contains(HasSubstr("Reshape")));
}

TEST(Proof, ErrorsOfOneRegionAreNotInheritedByTheNext) {
  const Model before =
      model_of("a = Mul (x, k) b = Neg (a) c = Relu (b) d = Identity (c) y = Abs (d)", "2,8",
               "<float k = {2}>");
  const Model after =
      model_of("a = Mul (x, k2) b = Neg (a) c = Relu (b) y = Abs (c)", "2,8", "<float k2 = {3}>");
  const PassProof proof = prove(PassClass::kBitwise, before, after, kRamp);
  EXPECT_EQ(proof.regions, 2);
  ASSERT_EQ(proof.failures.size(), 1U);
  EXPECT_THAT(proof.failures[0].before, testing::ElementsAre("Mul 'node_0'"));
}

TEST(Proof, IdenticalRegionsShareMadeInputs) {
  std::string before, after;
  for (int i = 0; i < 5; ++i) {
    const std::string from = i == 0 ? "x" : fmt::format("t{}", i);
    before += fmt::format("i{} = Identity ({}) t{} = Relu (i{}) ", i, from, i + 1, i);
    after += fmt::format("t{} = Relu ({}) ", i + 1, from);
  }
  const PassProof proof = prove(PassClass::kBitwise, model_of(before + "y = Neg (t5)"),
                                model_of(after + "y = Neg (t5)"), kRamp);
  EXPECT_EQ(proof.verdict, Verdict::kPass);
  EXPECT_EQ(proof.regions, 5);
  EXPECT_EQ(proof.distinct, 1);
}

TEST(Proof, SmallWindowsGiveTheSame) {
  ProofOptions options;
  options.window_bytes = 1;
  const PassProof proof = prove(
      PassClass::kBitwise, model_of("a = Identity (x) b = Relu (a) c = Identity (b) y = Abs (c)"),
      model_of("b = Relu (x) y = Abs (b)"), kRamp, {}, options);
  EXPECT_EQ(proof.verdict, Verdict::kPass);
  EXPECT_EQ(proof.regions, 2);
}

TEST(Proof, WithoutInputsNothingIsProved) {
  const PassProof proof = prove(PassClass::kBitwise, model_of("a = Identity (x) y = Relu (a)"),
                                model_of("y = Relu (x)"), {});
  EXPECT_EQ(proof.verdict, Verdict::kInconclusive);
}

TEST(Proof, LooksIntoBodies) {
  const auto model = [](const std::string& op) {
    return model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[2,8] x) => (float[2,8] y) {
        a = Neg (x)
        s = ReduceSum <keepdims = 0> (a)
        zero = Constant <value = float {0}> ()
        c = Greater (s, zero)
        b = If (c) <then_branch = t () => (float[2,8] p) { p = )" +
                           op + R"( (a) }, else_branch = e () => (float[2,8] q) { q = )" + op +
                           R"( (a) }>
        y = Abs (b)
      })");
  };
  EXPECT_EQ(prove(PassClass::kBitwise, model("Relu"), model("Sigmoid"), kRamp).verdict,
            Verdict::kFail);
  EXPECT_EQ(prove(PassClass::kBitwise, model("Relu"), model("Relu"), kRamp).regions, 0);
}

TEST(MinimalCase, IsWrittenAndShowsTheError) {
  const TemporaryDirectory directory;
  ProofOptions options;
  options.failures = directory.path() / "out.failed";
  const PassProof proof =
      prove(PassClass::kAlgebraic,
            model_of("a = Neg (x) b = Mul (a, k) y = Abs (b)", "2,8", "<float k = {2}>"),
            model_of("a = Neg (x) b = Mul (a, k3) y = Abs (b)", "2,8", "<float k3 = {3}>"), kRamp,
            {}, options);
  ASSERT_EQ(proof.failures.size(), 1U);
  const fs::path minimal = proof.failures[0].minimal_case;
  EXPECT_EQ(minimal, options.failures / "test_pass_0");
  const auto old_model = Model::load(minimal / "old.onnx");
  const auto new_model = Model::load(minimal / "new.onnx");
  const auto inputs = read_npz(minimal / "inputs.npz");
  const auto expected = read_npz(minimal / "expected.npz");
  ASSERT_TRUE(old_model.ok() && new_model.ok() && inputs.ok() && expected.ok());
  EXPECT_EQ(op_types(*old_model), std::vector<std::string>{"Mul"});
  expect_identical(run_on_cpu(*old_model, *inputs), *expected);
  const TensorMap wrong = run_on_cpu(*new_model, *inputs);
  EXPECT_EQ(wrong.at("b").data<float>()[0], 1.5F * expected->at("b").data<float>()[0]);
  EXPECT_TRUE(fs::exists(minimal / "README.md"));
}

}  // namespace
}  // namespace tenonnx
