// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "model/tensor_proto.h"
#include "passes/fusion_test_support.h"
#include "passes/inference.h"
#include "passes/proof.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A head as the detectors have it: an MLP over 600 tokens and their anchors, of which 20 are kept.
// `keep`: makes y of z and of k, int64 [images, 20]; `head`: makes z of x.
struct Head {
  int images = 1, anchor_images = 1;
  std::string keep, outputs;
  std::string head =
      "h = MatMul (x, w) hb = Add (b, h) a = Relu (hb) o = MatMul (a, w4) "
      "ob = Add (o, b4) z = Add (ob, anchors)";
};

Model model_of(const Head& head) {
  onnx::ModelProto proto = proto_from_text(fmt::format(
      R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[{0},600,32] t, int64[{0},20] k) => (float[{0},20,4] y, float[{0},600,32] x{1})
      <int64[1] first = {{0}}, int64[1] last = {{-1}}, int64[3] four = {{1, 1, 4}},
       int64[3] same = {{{0}, 20, 1}}, int64[3] wide = {{1, 20, 32}}> {{ x = Tanh (t) {2} {3} }})",
      head.images, head.outputs, head.head, head.keep));
  const auto add = [&](const char* name, Shape shape) {
    *proto.mutable_graph()->add_initializer() = to_tensor_proto(ramp(std::move(shape)), name);
  };
  add("w", {32, 32});
  add("b", {32});
  add("w4", {32, 4});
  add("b4", {4});
  add("anchors", {head.anchor_images, 600, 4});
  auto model = Model::from_proto(std::move(proto));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? std::move(model).value() : Model();
}

constexpr const char* kTile =
    "u = Unsqueeze (k, last) e = Expand (u, same) i = Tile (e, four) "
    "y = GatherElements <axis = 1> (z, i)";

// Rows from both ends, each image its own.
Tensor rows(std::int64_t images, bool negative = false) {
  Tensor k(DType::kInt64, {images, 20});
  for (std::int64_t i = 0; i < k.size(); ++i) {
    const std::int64_t row = (i * 173 + i / 20 * 7) % 600;
    k.mutable_data<std::int64_t>()[i] = negative && i % 3 == 0 ? row - 600 : row;
  }
  return k;
}

TensorMap inputs_of(std::int64_t images, bool negative = false) {
  return {{"t", ramp({images, 600, 32})}, {"k", rows(images, negative)}};
}

Shape shape_of(const Model& model, const std::string& op) {
  const auto inferred = infer(model).graphs.front();
  for (const auto& node : model.proto().graph().node())
    if (node.op_type() == op) return inferred.at(node.output(0)).shape;
  return {};
}

TEST(HoistGather, AnIndexThatIsRepeatedOverTheRowBecomesAGatherBeforeTheHead) {
  Model model = model_of({.keep = kTile});
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "hoist_gather");
  EXPECT_EQ(outcome.applied, 1);
  ASSERT_EQ(outcome.sites.size(), 1U);
  EXPECT_EQ(outcome.sites[0].what, "20 of 600 rows are taken before 6 nodes, of 'anchors', 'x'");
  const auto counts = op_counts(model);
  EXPECT_EQ(counts.at("Gather"), 2);
  EXPECT_FALSE(counts.contains("GatherElements") || counts.contains("Tile"));
  EXPECT_EQ(shape_of(model, "MatMul"), (Shape{1, 20, 32}));
  // The tanh is an output too, in full: it stays.
  EXPECT_EQ(shape_of(model, "Tanh"), (Shape{1, 600, 32}));
  // ONNX Runtime's MatMul sums a row in the same order whatever the number of rows beyond one.
  for (const bool negative : {false, true})
    expect_identical(run_on_cpu(before, inputs_of(1, negative)),
                     run_on_cpu(model, inputs_of(1, negative)));
}

TEST(HoistGather, EachImageKeepsItsOwnRows) {
  for (const int anchor_images : {1, 3}) {
    Model model = model_of({.images = 3, .anchor_images = anchor_images, .keep = kTile});
    const Model before = model.clone();
    EXPECT_EQ(run_pass(model, "hoist_gather").applied, 1);
    EXPECT_EQ(shape_of(model, "MatMul"), (Shape{3, 20, 32}));
    EXPECT_EQ(op_counts(model)["GatherND"], anchor_images == 1 ? 1 : 2);
    EXPECT_EQ(op_counts(model)["Gather"], anchor_images == 1 ? 1 : 0);
    for (const bool negative : {false, true})
      expect_identical(run_on_cpu(before, inputs_of(3, negative)),
                       run_on_cpu(model, inputs_of(3, negative)));
  }
}

// As the dynamo exporter writes it, before no-op casts are taken out; TopK's numbers may be int32
// on the way.
TEST(HoistGather, CastsThatChangeNoNumberArePassed) {
  for (const char* keep :
       {"u = Unsqueeze (k, last) t4 = Tile (u, four) i = Cast <to = 7> (t4) "
        "y = GatherElements <axis = 1> (z, i)",
        "n = Cast <to = 6> (k) u = Unsqueeze (n, last) t4 = Tile (u, four) i = Cast <to = 7> (t4) "
        "y = GatherElements <axis = 1> (z, i)"}) {
    for (const int images : {1, 3}) {
      Model model = model_of({.images = images, .keep = keep});
      const Model before = model.clone();
      const PassOutcome outcome = run_pass(model, "hoist_gather");
      EXPECT_EQ(outcome.applied, 1) << first_reason(outcome);
      expect_identical(run_on_cpu(before, inputs_of(images, true)),
                       run_on_cpu(model, inputs_of(images, true)));
    }
  }
  // A narrower integer may be another row.
  Model narrowed = model_of({.keep = "u = Unsqueeze (k, last) t4 = Tile (u, four) "
                                     "n = Cast <to = 6> (t4) "
                                     "y = GatherElements <axis = 1> (z, n)"});
  EXPECT_EQ(run_pass(narrowed, "hoist_gather").applied, 0);
}

TEST(HoistGather, GatherNDAndGather) {
  struct Case {
    int images;
    const char* keep;
    const char* op;
  };
  for (const Case& one : {
           Case{1, "f = Squeeze (k, first) y = Gather <axis = 1> (z, f)", "Gather"},
           Case{1, "u = Unsqueeze (k, last) y = GatherND <batch_dims = 1> (z, u)", "Gather"},
           Case{3, "u = Unsqueeze (k, last) y = GatherND <batch_dims = 1> (z, u)", "GatherND"},
           Case{3,
                "u = Unsqueeze (k, last) c = Sub (u, u) p = Concat <axis = -1> (c, u) "
                "y = GatherND (z, p)",
                "GatherND"},
       }) {
    Model model = model_of({.images = one.images, .anchor_images = one.images, .keep = one.keep});
    const Model before = model.clone();
    const PassOutcome outcome = run_pass(model, "hoist_gather");
    EXPECT_EQ(outcome.applied, 1) << one.keep << ": " << first_reason(outcome);
    EXPECT_EQ(op_counts(model)[one.op], 2) << one.keep;
    EXPECT_EQ(shape_of(model, "MatMul"), (Shape{one.images, 20, 32}));
    expect_identical(run_on_cpu(before, inputs_of(one.images, true)),
                     run_on_cpu(model, inputs_of(one.images, true)));
  }
}

TEST(HoistGather, AGatherOfTheSameRowsIsUsedAgain) {
  Model model = model_of({.keep = std::string(kTile) + " j = Expand (u, wide) "
                                                       "q = GatherElements <axis = 1> (x, j)",
                          .outputs = ", float[1,20,32] q"});
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "hoist_gather");
  EXPECT_EQ(outcome.applied, 1);
  EXPECT_EQ(op_counts(model)["Gather"], 1);  // of the anchors
  EXPECT_EQ(op_counts(model)["GatherElements"], 1);
  expect_identical(run_on_cpu(before, inputs_of(1)), run_on_cpu(model, inputs_of(1)));
}

TEST(HoistGather, EveryRowWiseOperatorIsPassed) {
  Model model = model_of(
      {.keep = "f = Squeeze (k, first) y = Gather <axis = 1> (z, f)",
       .head =
           "n = LayerNormalization <axis = -1> (x, b, b) s = Sigmoid (n) v = Mul (n, s) "
           "p = Softmax <axis = -1> (v) c = Concat <axis = 2> (p, x) "
           "d = ReduceMax <axes = [2], keepdims = 1> (c) e = Sub (v, d) "
           "flat = Constant <value_ints = [600, 32]> () r = Reshape (e, flat) "
           "g1 = Gemm (r, w4, b4) back = Constant <value_ints = [1, 600, 2, 2]> () "
           "g2 = Reshape (g1, back) g3 = Neg (g2) "
           "rows4 = Constant <value_ints = [0, 600, 4]> () g4 = Reshape (g3, rows4) "
           "low = Constant <value = float {-0.5}> () g5 = Clip (g4, low) z = Add (g5, anchors)"});
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "hoist_gather");
  EXPECT_EQ(outcome.applied, 1) << first_reason(outcome);
  for (const char* op : {"LayerNormalization", "Softmax", "Concat", "ReduceMax"})
    EXPECT_EQ(shape_of(model, op)[1], 20) << op;
  EXPECT_EQ(shape_of(model, "Gemm"), (Shape{20, 4}));
  expect_within_noise(before, model, inputs_of(1, true));
}

TEST(HoistGather, WhatIsReadInFullStays) {
  // The middle of the head is an output too: the rows are taken from there.
  Model model = model_of({.keep = kTile, .outputs = ", float[1,600,32] a"});
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "hoist_gather");
  EXPECT_EQ(outcome.applied, 1);
  EXPECT_THAT(outcome.sites[0].what, HasSubstr("before 3 nodes, of 'a', 'anchors'"));
  EXPECT_THAT(first_reason(outcome), HasSubstr("'a' is an output of the graph"));
  expect_identical(run_on_cpu(before, inputs_of(1)), run_on_cpu(model, inputs_of(1)));

  Model shared = model_of(
      {.keep = std::string(kTile) + " q = ReduceMax <keepdims = 0> (z)", .outputs = ", float q"});
  const PassOutcome refused = run_pass(shared, "hoist_gather");
  EXPECT_EQ(refused.applied, 0);
  EXPECT_THAT(first_reason(refused), HasSubstr("'z' is read in full by ReduceMax 'node_11' too"));
}

TEST(HoistGather, Refusals) {
  const std::string mlp = "o = MatMul (x, w4) ";
  const struct {
    Head head;
    const char* reason;
  } cases[] = {
      {{.keep = kTile, .head = mlp + "z = Softmax <axis = 1> (o)"},
       "Softmax 'node_4' works along axis 1, across the rows of axis 1"},
      {{.keep = kTile, .head = mlp + "z = CumSum (o, first)"},
       "CumSum 'node_4' is not known to compute each row by itself"},
      {{.keep = "c = Constant <value_ints = [3, 1, 0]> () q = Gather <axis = 2> (z, c) "
                "f = Squeeze (k, first) y = Gather <axis = 1> (x, f)",
        .outputs = ", float[1,600,3] q",
        .head = "z = MatMul (x, w4)"},
       "axis 2 is not one of the rows of MatMul"},
      {{.keep = "u = Unsqueeze (k, last) e = Expand (u, four) s4 = CumSum (e, two) "
                "y = GatherElements <axis = 1> (z, s4)"},
       "its index 's4' is not seen to be one number for the whole of a row"},
      {{.keep = "u = Unsqueeze (k, last) p = GatherElements <axis = 1> (z, u) y = Tile (p, four)"},
       "its index covers 1 of 4 along axis 2, no whole rows"},
      {{.images = 3,
        .keep = "u = Unsqueeze (k, last) e = Expand (u, four) s1 = Slice (e, first, one, first) "
                "p = GatherElements <axis = 1> (z, s1) r3 = Constant <value_ints = [3, 1, 1]> () "
                "y = Tile (p, r3)"},
       "its index covers 1 of 3 along axis 0, no whole rows"},
      {{.keep = "y2 = Gather <axis = 1> (z, k) y = Squeeze (y2, first)"},
       "its index has 2 dimensions"},
  };
  for (const auto& one : cases) {
    Head head = one.head;
    head.head =
        "two = Constant <value = int64 {2}> () one = Constant <value_ints = [1]> () " + head.head;
    Model model = model_of(head);
    const PassOutcome outcome = run_pass(model, "hoist_gather");
    std::string reasons;
    for (const Refusal& refusal : outcome.skipped) reasons += refusal.reason + "\n";
    EXPECT_EQ(outcome.applied, 0) << one.reason;
    EXPECT_THAT(reasons, HasSubstr(one.reason));
  }
}

TEST(HoistGather, WhatSavesNothingStays) {
  Model all = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,300,64] x, int64[300] k, float[64,64] w) => (float[1,300,64] y)
      { h = MatMul (x, w) y = Gather <axis = 1> (h, k) })");
  const PassOutcome outcome = run_pass(all, "hoist_gather");
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_TRUE(outcome.skipped.empty());
  Model small = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,30,64] x, int64[3] k) => (float[1,3,64] y)
      { h = Relu (x) y = Gather <axis = 1> (h, k) })");
  EXPECT_THAT(first_reason(run_pass(small, "hoist_gather")), HasSubstr("cost no more than"));
  Model dynamic = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,N,64] x, int64[3] k, float[64,64] w) => (float[1,3,64] y)
      { h = MatMul (x, w) y = Gather <axis = 1> (h, k) })");
  EXPECT_THAT(first_reason(run_pass(dynamic, "hoist_gather")), HasSubstr("is not known"));
}

PassProof proof_of(const Model& before, const Model& after, std::int64_t images) {
  ProofData data;
  data.count = 1;
  data.load = [=](std::size_t) -> Result<TensorMap> { return inputs_of(images); };
  data.name = [](std::size_t) { return std::string("input"); };
  const auto executor = make_cpu_executor();
  const auto pass = find_pass("hoist_gather");
  EXPECT_TRUE(pass.ok());
  auto proof = PassProver(*executor, data, {}).prove(**pass, before, after, {});
  EXPECT_TRUE(proof.ok()) << proof.status().message();
  return proof.ok() ? std::move(proof).value() : PassProof();
}

// The first node of this type.
onnx::NodeProto* node_of(Model& model, const std::string& op) {
  for (auto& node : *model.mutable_proto().mutable_graph()->mutable_node())
    if (node.op_type() == op) return &node;
  return nullptr;
}

TEST(HoistGather, TheProofPassesAndCatchesWrongRows) {
  for (const int images : {1, 3}) {
    const Model before = model_of({.images = images, .keep = kTile});
    Model after = before.clone();
    ASSERT_EQ(run_pass(after, "hoist_gather").applied, 1);
    EXPECT_EQ(proof_of(before, after, images).verdict, Verdict::kPass);

    // Of the anchors alone, of the tokens alone: another index of the same shape.
    for (const char* tensor : {"anchors", "x"}) {
      Model wrong = after.clone();
      for (auto& node : *wrong.mutable_proto().mutable_graph()->mutable_node()) {
        if (!node.op_type().starts_with("Gather")) continue;
        if (!node.input(0).starts_with(tensor)) continue;
        onnx::NodeProto* other = wrong.mutable_proto().mutable_graph()->add_node();
        other->set_op_type("Neg");
        other->set_name("other");
        other->add_input(node.input(1));
        other->add_output("wrong_rows");
        node.set_input(1, "wrong_rows");
        break;
      }
      ASSERT_NE(node_of(wrong, "Neg"), nullptr);
      ASSERT_TRUE(sort_nodes(*wrong.mutable_proto().mutable_graph()).ok());
      EXPECT_EQ(proof_of(before, wrong, images).verdict, Verdict::kFail) << tensor << images;
    }
  }
}

}  // namespace
}  // namespace tenonnx
