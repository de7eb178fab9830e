// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Small graphs with one fault each. The real detector: tests/docs; planted faults by the hundred:
// tests/planted_faults.
#include "numerics/locate.h"

#include <onnx/onnx_pb.h>

#include <fstream>

#include "flow/compare_for_test.h"

namespace tenonnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A chain with a product in the middle, a norm behind it, and an output that a softmax makes.
constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[6, 16] x) => (float[6, 16] y) <float k = {300}, float[16] one = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}> {
  [sigmoid] a = Sigmoid(x)
  [scale] m = Mul(x, k)
  [back] n = Div(m, k)
  [norm] l = LayerNormalization <axis = -1, epsilon = 0.00001>(n, one)
  [sum] s = Add(l, a)
  [softmax] y = Softmax <axis = -1>(s)
})";

class Locate : public CompareFixture {
 protected:
  LocateOptions asking(const std::string& reference, double largest = 2) {
    LocateOptions made;
    made.common =
        options(save("a.onnx", reference), {{"x", uniform({6, 16}, -largest, largest, 1)}});
    return made;
  }
  static LocateResult found(const LocateOptions& options) {
    auto result = locate(options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(*result) : LocateResult();
  }
  LocateResult two(const std::string& from, const std::string& to) {
    LocateOptions made = asking(kModel);
    made.common.candidate = save("b.onnx", replaced(kModel, from, to));
    return found(made);
  }
  static std::string first(const LocateResult& result) {
    return result.suspects.empty() ? "none" : result.suspects.front().node;
  }
  static FaultKind kind(const LocateResult& result) {
    return result.suspects.empty() ? FaultKind::kKernel : result.suspects.front().kind.kind;
  }
};

TEST_F(Locate, AValueThatTheDeviceCannotHold) {
  make_device();
  LocateOptions made = asking(kModel, 400);  // times 300: beyond 65504
  made.common.on = "sim:toy16";
  made.node_list = temporary_.path() / "keep.txt";
  made.minimal = temporary_.path() / "case";
  const LocateResult result = found(made);
  EXPECT_EQ(result.verdict, Verdict::kFail) << describe(result);
  EXPECT_EQ(first(result), "Mul 'scale'") << describe(result);
  EXPECT_EQ(kind(result), FaultKind::kRange);
  ASSERT_TRUE(result.keep.has_value());
  // Made at the reference alone it would cross to the device, which cannot hold it: both.
  EXPECT_THAT(result.keep->nodes, ElementsAre("Mul 'scale'", "Div 'back'"));
  EXPECT_TRUE(result.keep->minimal);
  EXPECT_EQ(result.keep->trial.price.segments, 2U);  // what follows from x alone can run first
  std::ifstream list(made.node_list);
  std::string text((std::istreambuf_iterator<char>(list)), {});
  EXPECT_THAT(text, HasSubstr("scale\nback\n"));
  for (const char* file : {"model.onnx", "inputs.npz", "expected.npz", "got.npz", "case.json"})
    EXPECT_TRUE(std::filesystem::exists(made.minimal / file)) << file;
  const auto model = Model::load(made.minimal / "model.onnx");
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->proto().graph().node_size(), 1);
}

TEST_F(Locate, NothingIsSaidOfAHealthyDevice) {
  make_device();
  LocateOptions made = asking(kModel);
  made.common.on = "sim:toy16";
  const LocateResult result = found(made);
  EXPECT_NE(result.verdict, Verdict::kFail) << describe(result);
  EXPECT_THAT(result.headline, HasSubstr("nothing to locate"));
  EXPECT_FALSE(result.keep.has_value());
}

TEST_F(Locate, GraphsThatDifferInOnePlace) {
  struct Case {
    const char *from, *to, *node;
    FaultKind kind;
    const char* text;
  };
  for (const Case& one : {Case{"epsilon = 0.00001", "epsilon = 0.5", "LayerNormalization 'norm'",
                               FaultKind::kEpsilon, "epsilon"},
                          Case{"[sum] s = Add(l, a)", "[other] q = Mul(a, k) [sum] s = Add(l, q)",
                               "Add 'sum'", FaultKind::kScale, "1 Mul more"},
                          Case{"y = Softmax <axis = -1>", "y = Softmax <axis = 0>",
                               "Softmax 'softmax'", FaultKind::kLayout, "axis"}}) {
    const LocateResult result = two(one.from, one.to);
    EXPECT_EQ(result.verdict, Verdict::kFail) << describe(result);
    EXPECT_EQ(first(result), one.node) << describe(result);
    EXPECT_EQ(kind(result), one.kind) << describe(result);
    EXPECT_THAT(result.suspects.at(0).kind.text, HasSubstr(one.text));
    EXPECT_TRUE(result.suspects.at(0).alone_breaks.value_or(false));
  }
}

TEST_F(Locate, TheReferencesPieceMendsTheCandidate) {
  const LocateResult result = two("n = Div(m, k)", "n0 = Div(m, k) n = Mul(n0, k)");
  ASSERT_TRUE(result.keep.has_value()) << describe(result);
  EXPECT_EQ(result.keep->nodes.size(), 1U);
  EXPECT_THAT(describe(result), HasSubstr("FAIL"));
}

// Bars add up to the error of the whole.
TEST_F(Locate, TheWaterfallAddsUp) {
  const LocateResult result = two("epsilon = 0.00001", "epsilon = 0.5");
  double scores = 0;
  for (const WaterfallBar& bar : result.waterfall) scores += bar.scores;
  ASSERT_TRUE(result.whole.has_value());
  EXPECT_NEAR(scores, result.whole->figures.scores_error, 1e-12);
  EXPECT_GT(scores, 0);
}

constexpr const char* kSelects = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[40] x) => (float[8] y) <int64[1] k = {8}, int64[8] turn = {7,6,5,4,3,2,1,0}> {
  [nscore] s = Sigmoid(x)
  [ntop] v, i = TopK(s, k)
  [ntake] y = Gather(x, i)
})";

TEST_F(Locate, AnotherSelectionFromValuesThatAgree) {
  LocateOptions made;
  made.common = options(save("a.onnx", kSelects), {{"x", uniform({40}, -2, 2, 1)}});
  // The right set in another order, and another set.
  for (const char* selection :
       {"v, j = TopK(s, k) [nturn] i = Gather(j, turn)", "v, i = TopK <largest = 0>(s, k)"}) {
    made.common.candidate = save("b.onnx", replaced(kSelects, "v, i = TopK(s, k)", selection));
    const LocateResult result = found(made);
    EXPECT_EQ(result.verdict, Verdict::kFail) << describe(result);
    EXPECT_THAT(result.headline, HasSubstr("selection differs, values agree")) << describe(result);
    EXPECT_EQ(kind(result), FaultKind::kSelection);
  }
}

// Says that it rounds, and runs the reference.
class Pretender : public Executor {
 public:
  explicit Pretender(std::string address) : address_(std::move(address)) {}
  const std::string& address() const override { return address_; }
  Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                            const LoadOptions& options) const override {
    return cpu_->load(model, options);
  }
  std::vector<std::pair<std::string, std::string>> versions() const override { return {}; }

 private:
  std::string address_;
  std::unique_ptr<Executor> cpu_ = make_cpu_executor();
};

TEST_F(Locate, ADeviceThatIsTheReference) {
  make_device();
  LocateOptions made = asking(kModel);
  made.common.on = "sim:toy16";
  made.common.load.optimization = Optimization::kDisabled;
  auto setup = set_up_comparison(made.common);
  ASSERT_TRUE(setup.ok());
  setup->on = std::make_unique<Pretender>("sim:toy16");
  const auto result = locate(made, *setup);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kFail);
  EXPECT_EQ(kind(*result), FaultKind::kCopy);
  EXPECT_THAT(result->headline, HasSubstr("is the reference itself"));
}

// The provider's own file names operator types, and the note says what that means.
TEST_F(Locate, AnAffinityFileForTheProviderThatHasOne) {
  make_device();
  LocateOptions made = asking(kModel, 400);
  made.common.on = "sim:toy16";
  made.node_list = temporary_.path() / "keep.txt";
  auto setup = set_up_comparison(made.common);
  ASSERT_TRUE(setup.ok());
  class Named : public Executor {
   public:
    explicit Named(std::unique_ptr<Executor> inner) : inner_(std::move(inner)) {}
    const std::string& address() const override { return address_; }
    Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                              const LoadOptions& options) const override {
      return inner_->load(model, options);
    }
    std::vector<std::pair<std::string, std::string>> versions() const override { return {}; }

   private:
    std::string address_ = "qnn:soc=43";
    std::unique_ptr<Executor> inner_;
  };
  setup->on = std::make_unique<Named>(std::move(setup->on));
  const auto result = locate(made, *setup);
  ASSERT_TRUE(result.ok()) << result.status().message();
  std::ifstream file(temporary_.path() / "keep.txt.affinity.json");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(text, testing::AllOf(HasSubstr("Mul"), HasSubstr("Div")));
  EXPECT_THAT(describe(*result), HasSubstr("op_affinity"));
}

// Integers that differ, and NaN on one side alone, are wrong outputs too.
TEST_F(Locate, OutputsThatAreNoFiniteFloats) {
  constexpr const char* kInteger = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[6, 16] x) => (uint8[6, 16] y) <float k = {40}> {
  [scale] m = Mul(x, k)
  [limit] a = Abs(m)
  [cast] y = Cast <to = 2>(a)
})";
  LocateOptions made = asking(kInteger);
  made.common.candidate = save("b.onnx", replaced(kInteger, "k = {40}", "k = {20}"));
  EXPECT_EQ(found(made).verdict, Verdict::kFail);
  constexpr const char* kRoot = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[6, 16] x) => (float[6, 16] y) <float k = {0}> { [sum] m = Add(x, k) [root] y = Sqrt(m) })";
  made = asking(kRoot);  // NaN of negative numbers
  made.common.candidate = save("c.onnx", replaced(kRoot, "k = {0}", "k = {5}"));
  EXPECT_EQ(found(made).verdict, Verdict::kFail);
}

// Of what no node makes nothing is asked.
TEST_F(Locate, OutputsThatAreInputsOrConstants) {
  const std::string graph =
      replaced(kModel, "(float[6, 16] y)", "(float[6, 16] y, float[6, 16] x, float k)");
  LocateOptions made = asking(graph);
  made.common.candidate = save("b.onnx", replaced(graph, "epsilon = 0.00001", "epsilon = 0.5"));
  const LocateResult result = found(made);
  EXPECT_EQ(first(result), "LayerNormalization 'norm'") << describe(result);
}

TEST_F(Locate, AnotherOrderOfTheOutputs) {
  const std::string graph =
      replaced(kModel, "(float[6, 16] y)", "(float[6, 16] y, float[6, 16] s)");
  LocateOptions made = asking(graph);
  made.common.candidate =
      save("b.onnx", replaced(kModel, "(float[6, 16] y)", "(float[6, 16] s, float[6, 16] y)"));
  const LocateResult result = found(made);
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_THAT(result.headline, HasSubstr("the outputs stand in another order"));
}

// The same names in no place but the inputs and outputs.
TEST_F(Locate, AFaultUnderOtherNames) {
  constexpr const char* kOther = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[6, 16] x) => (float[6, 16] y) <float k = {300}, float[16] one = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}> {
  [n1] t1 = Sigmoid(x)
  [n2] t2 = Mul(x, k)
  [n3] t3 = Div(t2, k)
  [n4] t4 = LayerNormalization <axis = -1, epsilon = 0.00001>(t3, one)
  [n5] t5 = Add(t4, t1)
  [n6] y = Softmax <axis = -1>(t5)
})";
  LocateOptions made = asking(kModel);
  made.common.candidate = save("b.onnx", kOther);
  EXPECT_THAT(found(made).headline, HasSubstr("nothing to locate"));
  made.common.candidate = save("b.onnx", replaced(kOther, "epsilon = 0.00001", "epsilon = 0.5"));
  const LocateResult result = found(made);
  EXPECT_EQ(result.verdict, Verdict::kFail) << describe(result);
  EXPECT_EQ(first(result), "LayerNormalization 'n4'") << describe(result);
  EXPECT_EQ(kind(result), FaultKind::kEpsilon);
}

// Where the graphs share nothing inside, one node stands for all of them, and the result says so.
TEST_F(Locate, ANodeThatStandsForManySaysSo) {
  std::string chain, other;
  for (int i = 0; i < 10; ++i) {
    chain += fmt::format(" a{} = Tanh({}) b{} = Exp(a{})", i,
                         i == 0 ? "x" : fmt::format("b{}", i - 1), i, i);
    other += fmt::format(" c{} = Erf({}) d{} = Sigmoid(c{})", i,
                         i == 0 ? "x" : fmt::format("d{}", i - 1), i, i);
  }
  const std::string head =
      R"(<ir_version: 8, opset_import: ["" : 17]> g (float[6, 16] x) => (float[6, 16] y) {)";
  LocateOptions made = asking(head + chain + " y = Neg(b9) }");
  made.common.candidate = save("b.onnx", head + other + " y = Abs(d9) }");
  const LocateResult result = found(made);
  EXPECT_EQ(result.verdict, Verdict::kFail);
  EXPECT_EQ(result.unmapped, 20U);
  EXPECT_THAT(result.headline, HasSubstr("or in one of the 20 nodes before it"));
  EXPECT_THAT(describe(result), HasSubstr("20 of 21 tensors of the reference have no counterpart"));
}

// A changed perm gives a tensor of another shape, which ends nothing.
TEST_F(Locate, ATensorOfAnotherShape) {
  constexpr const char* kTurned = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[6, 16] x) => (float[6, 16] y) <int64[2] s = {6, 16}> {
  [tanh] a = Tanh(x)
  [turn] b = Transpose <perm = [0, 1]>(a)
  [shape] c = Reshape(b, s)
  [exp] y = Exp(c)
})";
  LocateOptions made = asking(kTurned);
  made.common.candidate = save("b.onnx", replaced(kTurned, "perm = [0, 1]", "perm = [1, 0]"));
  const LocateResult result = found(made);
  EXPECT_EQ(result.verdict, Verdict::kFail) << describe(result);
  EXPECT_EQ(kind(result), FaultKind::kLayout) << describe(result);
  EXPECT_THAT(result.suspects.at(0).kind.text, HasSubstr("'perm' of Transpose is [1, 0]"));
}

// A wrong node that the task does not need is named, and is no pass.
TEST_F(Locate, AFaultThatTheOutputsHide) {
  constexpr const char* kHidden = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[6, 16] x) => (float[6, 16] y) <float k = {2}, float low = {-0.25}, float high = {0.25}> {
  [scale] m = Mul(x, k)
  [limit] y = Clip(m, low, high)
})";
  LocateOptions made;
  made.common = options(save("a.onnx", kHidden), {{"x", uniform({6, 16}, 1, 2, 1)}});
  made.common.candidate = save("b.onnx", replaced(kHidden, "k = {2}", "k = {3}"));
  const LocateResult result = found(made);
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_THAT(result.headline, HasSubstr("does not move on these inputs, and yet: scale at Mul"));
  EXPECT_EQ(first(result), "Mul 'scale'");
}

TEST_F(Locate, ACaseOfTwoModelsShowsTheFault) {
  LocateOptions made = asking(kModel);
  made.common.candidate = save("b.onnx", replaced(kModel, "epsilon = 0.00001", "epsilon = 0.5"));
  made.minimal = temporary_.path() / "case";
  found(made);
  CompareOptions again;
  again.reference = made.minimal / "reference.onnx";
  again.candidate = made.minimal / "model.onnx";
  again.inputs = made.minimal / "inputs.npz";
  again.cache = "none";
  EXPECT_EQ(run(again).verdict, Verdict::kFail);
  std::ifstream file(made.minimal / "README.txt");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(text, HasSubstr("tenonnx compare reference.onnx model.onnx --inputs inputs.npz"));
}

// Of several values that do not fit the first is named first.
TEST_F(Locate, TheFirstOfSeveralOverflows) {
  make_device();
  LocateOptions made = asking(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[6, 16] x) => (float[6, 16] y) <float k = {300}, float q = {0.00001}> {
  [scale] m = Mul(x, k)
  [more] n = Mul(m, k)
  [back] y = Mul(n, q)
})",
                              400);
  made.common.on = "sim:toy16";
  const LocateResult result = found(made);
  EXPECT_THAT(result.headline, HasSubstr("range at Mul 'scale'")) << describe(result);
}

TEST_F(Locate, FilesThatCannotBeWrittenAreRefusedFirst) {
  LocateOptions made = asking(kModel);
  made.node_list = temporary_.path() / "nowhere/keep.txt";
  EXPECT_THAT(locate(made).status().message(), HasSubstr("nowhere' does not exist"));
}

TEST_F(Locate, TheBudgetIsKept) {
  make_device();
  LocateOptions made = asking(kModel, 400);
  made.common.on = "sim:toy16";
  made.budget = 2;
  const LocateResult result = found(made);
  EXPECT_LE(result.trials, 2U);
  EXPECT_EQ(first(result), "Mul 'scale'");  // found without any
  EXPECT_THAT(describe(result), HasSubstr("--budget"));
}

TEST_F(Locate, AnEqualRunGoesOnWhereTheFirstEnded) {
  make_device();
  LocateOptions made = asking(kModel, 400);
  made.common.on = "sim:toy16";
  made.common.cache = temporary_.path() / "cache";
  const LocateResult one = found(made);
  made.common.resume = true;
  const LocateResult two = found(made);
  EXPECT_GT(one.trials, 0U);
  EXPECT_EQ(two.trials, 0U);
  EXPECT_EQ(to_json(one)["keep"], to_json(two)["keep"]);
}

TEST_F(Locate, ADryRunComputesNothing) {
  LocateOptions made = asking(kModel);
  made.dry_run = true;
  const LocateResult result = found(made);
  EXPECT_EQ(result.tensors, 0U);
  EXPECT_THAT(describe(result), HasSubstr("nothing was computed"));
}

TEST_F(Locate, BadInputIsSaidBeforeAnythingLong) {
  const auto message = [](const LocateOptions& made) { return locate(made).status().message(); };
  LocateOptions made = asking(kModel);
  made.cut = "nowhere";
  EXPECT_THAT(message(made), HasSubstr("nowhere"));
  made = asking(kModel);
  made.budget = 0;
  EXPECT_THAT(message(made), HasSubstr("--budget is at least 1"));
  made = asking(kModel);
  made.minimal = temporary_.path();  // holds a.onnx
  EXPECT_THAT(message(made), HasSubstr("a minimal case"));
  made = asking(kModel);
  made.common.on = "nothing:here";
  EXPECT_THAT(message(made), HasSubstr("--on"));
  made = asking(kModel);
  made.common.candidate =
      save("other.onnx", replaced(kModel, "float[6, 16] x) =>", "float[6, 16] x, float z) =>"));
  EXPECT_THAT(message(made), HasSubstr("the two models take other inputs"));
}

}  // namespace
}  // namespace tenonnx
