// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/fixed_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "passes/edit.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Turns the first node of one type into another.
PassOutcome swap_operator(Model& model, const char* from, const char* to) {
  PassOutcome outcome;
  for (auto& node : *model.mutable_proto().mutable_graph()->mutable_node()) {
    if (!is_op(node, from)) continue;
    node.set_op_type(to);
    outcome.applied = 1;
    outcome.sites.push_back({node.name(), fmt::format("{} becomes {}", from, to)});
    return outcome;
  }
  outcome.skipped.push_back({"graph", fmt::format("no {}", from)});
  return outcome;
}

// Relu of Relu is Relu: takes one away at a time, so that it needs rounds.
Result<PassOutcome> drop_one(Model& model, const PassOptions&) {
  PassOutcome outcome;
  auto& graph = *model.mutable_proto().mutable_graph();
  for (int i = 0; i + 1 < graph.node_size(); ++i) {
    if (!is_op(graph.node(i), "Relu") || !is_op(graph.node(i + 1), "Relu")) continue;
    graph.mutable_node(i + 1)->set_input(0, graph.node(i).input(0));
    graph.mutable_node()->DeleteSubrange(i, 1);
    outcome.applied = 1;
    return outcome;
  }
  return outcome;
}
Result<PassOutcome> abs_to_neg(Model& m, const PassOptions&) {
  return swap_operator(m, "Abs", "Neg");
}
Result<PassOutcome> neg_to_abs(Model& m, const PassOptions&) {
  return swap_operator(m, "Neg", "Abs");
}
Result<PassOutcome> breaks(Model& model, const PassOptions&) {
  model.mutable_proto().mutable_graph()->mutable_node(0)->set_input(0, "nowhere");
  PassOutcome outcome;
  outcome.applied = 1;
  return outcome;
}

constexpr PassInfo kDrop = {"drop_one", PassStage::kOptimize, 7, 26, PassClass::kBitwise, "",
                            drop_one};
constexpr PassInfo kWrong = {"replace_abs", PassStage::kOptimize, 7, 26, PassClass::kBitwise, "",
                             abs_to_neg};
constexpr PassInfo kBack = {"replace_neg", PassStage::kOptimize, 7, 26, PassClass::kBitwise, "",
                            neg_to_abs};
constexpr PassInfo kBreaks = {"move_nowhere", PassStage::kOptimize, 7, 26, PassClass::kBitwise, "",
                              breaks};
constexpr PassInfo kOther = {"move_old", PassStage::kOptimize, 7, 9, PassClass::kBitwise, "",
                             drop_one};
constexpr PassInfo kTaste = {"replace_abs", PassStage::kRewrite, 7, 26, PassClass::kApproximate, "",
                             abs_to_neg};

constexpr const char* kChain = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[4] x) => (float[4] y) { a = Relu (x) b = Relu (a) c = Relu (b) d = Abs (c) y = Exp (d) })";

struct Proving {
  std::unique_ptr<Executor> executor = make_cpu_executor();
  ProofData data;
  PassProver prover{*executor, data, {}};
  Proving() {
    data.count = 1;
    data.load = [](std::size_t) -> Result<TensorMap> { return TensorMap{{"x", ramp({4})}}; };
  }
  FixedPointRequest request(std::vector<const PassInfo*> passes) {
    FixedPointRequest request;
    request.passes = std::move(passes);
    request.prove = [this](const PassInfo& pass, const Model& before, const Model& after,
                           const PassOutcome& outcome) {
      return prover.prove(pass, before, after, outcome);
    };
    return request;
  }
};

TEST(FixedPoint, RepeatsUntilNothingChanges) {
  Proving proving;
  Model model = model_from_text(kChain);
  const auto result = run_to_fixed_point(model, proving.request({&kDrop}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->rounds, 3);
  const PassRun& run = result->passes[0];
  EXPECT_EQ(run.applied, 2);
  EXPECT_EQ(run.rounds, 3);  // the last of them found nothing
  EXPECT_EQ(run.nodes_before, 5);
  EXPECT_EQ(run.nodes_after, 3);
  EXPECT_EQ(run.verdict, Verdict::kPass);
  EXPECT_EQ(run.proofs.size(), 2U);
  EXPECT_THAT(op_types(model), ElementsAre("Relu", "Abs", "Exp"));
  EXPECT_EQ(result->names.removed,
            (std::map<std::string, std::string>{{"a", "drop_one"}, {"b", "drop_one"}}));
}

TEST(FixedPoint, UndoesAPassThatFailsAndGoesOn) {
  Proving proving;
  Model model = model_from_text(kChain);
  const auto result = run_to_fixed_point(model, proving.request({&kWrong, &kBreaks, &kDrop}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->any_undone());
  const PassRun& wrong = result->passes[0];
  EXPECT_TRUE(wrong.undone);
  EXPECT_EQ(wrong.verdict, Verdict::kFail);
  EXPECT_EQ(wrong.applied, 0);
  EXPECT_EQ(wrong.rounds, 1);
  ASSERT_EQ(wrong.proofs.size(), 1U);
  EXPECT_THAT(wrong.proofs[0].failures[0].before, ElementsAre("Abs 'node_3'"));
  const PassRun& broken = result->passes[1];
  EXPECT_TRUE(broken.undone);
  EXPECT_THAT(broken.problem, HasSubstr("nowhere"));
  EXPECT_EQ(result->passes[2].verdict, Verdict::kPass);
  EXPECT_THAT(op_types(model), ElementsAre("Relu", "Abs", "Exp"));
}

TEST(FixedPoint, WithoutProofsABrokenGraphIsAnError) {
  Model model = model_from_text(kChain);
  FixedPointRequest request;
  request.passes = {&kDrop, &kBreaks};
  const Status status = run_to_fixed_point(model, request).status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("after pass move_nowhere"));
}

TEST(FixedPoint, PassesThatUndoEachOtherAreAnError) {
  Model model = model_from_text(kChain);
  FixedPointRequest request;
  request.passes = {&kWrong, &kBack};
  const Status status = run_to_fixed_point(model, request).status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("undo each other"));
}

TEST(FixedPoint, LeavesOutOrRefusesOtherOpsets) {
  Model model = model_from_text(kChain);
  FixedPointRequest request;
  request.passes = {&kOther};
  const auto result = run_to_fixed_point(model, request);
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->passes[0].problem, HasSubstr("takes opset 7 to 9, the model imports 17"));
  request.leave_out_other_opsets = false;
  EXPECT_EQ(run_to_fixed_point(model, request).status().code(), StatusCode::kUnsupported);
}

TEST(FixedPoint, TheTaskGateDecidesOnApproximatePasses) {
  for (const bool good : {true, false}) {
    Proving proving;
    Model model = model_from_text(kChain);
    FixedPointRequest request = proving.request({&kTaste});
    request.repeat = false;
    const auto ungated = run_to_fixed_point(model, request);
    ASSERT_TRUE(ungated.ok());
    EXPECT_EQ(ungated->passes[0].verdict, Verdict::kInconclusive);
    model = model_from_text(kChain);
    request.task_gate = [good](const PassInfo&, const Model&, const Model&) {
      return Result<std::vector<Check>>(std::vector<Check>{
          make_check("gate", good ? 0 : 1, Comparison::kAtMost, {0, "of a test"})});
    };
    const auto gated = run_to_fixed_point(model, request);
    ASSERT_TRUE(gated.ok());
    EXPECT_EQ(gated->passes[0].verdict, good ? Verdict::kPass : Verdict::kFail);
    EXPECT_EQ(gated->passes[0].undone, !good);
    EXPECT_EQ(op_counts(model)["Neg"], good ? 1 : 0);
  }
}

TEST(FixedPoint, OptionsOfNoPassAreErrors) {
  Model model = model_from_text(kChain);
  FixedPointRequest request;
  request.passes = {&kDrop};
  request.options = {{"fold_constants.max_bytes", "1"}};
  EXPECT_THAT(run_to_fixed_point(model, request).status().message(),
              HasSubstr("belongs to none of the passes that run"));
}

}  // namespace
}  // namespace tenonnx
