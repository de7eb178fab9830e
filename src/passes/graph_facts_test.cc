// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/graph_facts.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "passes/rewriter.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

// w is [2,3], which nothing else has.
Model example() {
  return model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[6] x) => (float[6] y) <int64[2] to = {2, 3}> {
      w = Reshape (x, to)
      y = Neg (x)
    })");
}

TEST(GraphFacts, ArePassedOnWhileTheGraphStays) {
  Model model = example();
  {
    Rewriter r(model);
    EXPECT_EQ(r.static_shape("w"), (Shape{2, 3}));
    r.finish();
  }
  EXPECT_NE(model.derived(), nullptr);
  EXPECT_TRUE(has_exact_types(model));
  GraphFacts facts = take_facts(model);
  EXPECT_EQ(model.derived(), nullptr);
  ASSERT_TRUE(facts.index.has_value());
  EXPECT_EQ(&facts.index->graph(), &model.proto().graph());
  ASSERT_TRUE(facts.inference.has_value());
  // A second Rewriter believes what it is handed: the mark proves that it does not infer again.
  facts.inference->graphs.front()["w"].shape = {7};
  keep_facts(model, std::move(facts));
  Rewriter r(model);
  EXPECT_EQ(r.static_shape("w"), (Shape{7}));
}

TEST(GraphFacts, AreDroppedByWhoeverMayChangeTheGraph) {
  Model model = example();
  { Rewriter(model).finish(); }
  ASSERT_NE(model.derived(), nullptr);
  EXPECT_EQ(model.clone().derived(), nullptr);
  model.mutable_proto();
  EXPECT_EQ(model.derived(), nullptr);
}

TEST(GraphFacts, OfAChangedGraphAreNotExact) {
  Model model = example();
  Rewriter r(model);
  ASSERT_TRUE(r.run([&](int i) {
                 if (!is_op(r.node(i), "Neg") || r.dtype("x") != DType::kFloat32) return;
                 if (!r.begin({i})) return;
                 r.insert(i, make_node("Abs", {"x"}, {r.fresh("abs")}));
                 r.insert(i, make_node("Identity", {"abs"}, {"y"}));
                 r.remove(i);
                 r.apply(i, "for the test");
               }).ok());
  r.finish();
  EXPECT_FALSE(has_exact_types(model));
  drop_inexact_types(model);
  EXPECT_TRUE(has_exact_types(model));
  EXPECT_FALSE(take_facts(model).inference.has_value());
}

// w goes with one pass; the next makes another tensor and would like its name.
TEST(GraphFacts, ATensorThatWentLeavesNoTypeToItsName) {
  Model model = example();
  {
    Rewriter r(model);
    EXPECT_EQ(r.static_shape("w"), (Shape{2, 3}));
    ASSERT_TRUE(r.run([&](int i) {
                   if (!is_op(r.node(i), "Reshape") || !r.begin({i})) return;
                   r.remove(i);
                   r.apply(i, "dead");
                 }).ok());
    r.finish();
  }
  GraphFacts facts = take_facts(model);
  facts.names.reset();  // as where another pass stood between
  keep_facts(model, std::move(facts));
  Rewriter r(model);
  ASSERT_TRUE(r.run([&](int i) {
                 if (!is_op(r.node(i), "Neg") || !r.begin({i})) return;
                 const std::string name = r.fresh("w");
                 r.insert(i, make_node("Abs", {"x"}, {name}));
                 r.replace(i, make_node("Sign", {name}, {"y"}));
                 r.apply(i, "for the test");
               }).ok());
  ASSERT_EQ(model.proto().graph().node(0).output(0), "w");
  EXPECT_EQ(r.static_shape("w"), (Shape{6}));
}

}  // namespace
}  // namespace tenonnx
