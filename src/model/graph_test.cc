// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// `x` is used by If's bodies at two depths, `w` in a body only; the Loop body has its own `x`.
constexpr const char* kNested = R"(
  <ir_version: 10, opset_import: ["" : 20]>
  g (bool c, float[2] x, int64 n) => (float[2] y, float[2] r) <float[2] w = {1, 2}>
  {
    [pre] p = Relu (x)
    [outer] h = If (c) <
      then_branch = t () => (float[2] a) {
        [inner] a = If (c) <
          then_branch = t2 () => (float[2] a2) { a2 = Add (x, w) },
          else_branch = e2 () => (float[2] b2) { b2 = Add (p, p) }>
      },
      else_branch = e () => (float[2] b) { b = Neg (x) }>
    [twice] y = Add (h, h)
    [loop] r = Loop (n, c, p) <
      body = l (int64 i, bool cond, float[2] x) => (bool cond_out, float[2] x_out) {
        cond_out = Identity (cond)
        x_out = Abs (x)
      }>
  })";

TEST(GraphIndex, ProducersAndUses) {
  const Model model = parse_model(kNested);
  const GraphIndex index(model.proto().graph());
  EXPECT_EQ(index.producer("h")->name(), "outer");
  EXPECT_EQ(index.producer("x"), nullptr);
  EXPECT_EQ(index.find("a2"), nullptr);  // of a body
  EXPECT_TRUE(index.find("x")->is_input);
  EXPECT_TRUE(index.find("y")->is_output);
  EXPECT_TRUE(index.find("w")->is_initializer());
  const auto& uses = index.uses("h");
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].node, 2);
  EXPECT_EQ(uses[0].input, 0);
  EXPECT_EQ(uses[1].input, 1);
  EXPECT_TRUE(index.uses("nowhere").empty());
}

TEST(GraphIndex, CapturesOfBodiesCountAsUses) {
  const Model model = parse_model(kNested);
  const GraphIndex index(model.proto().graph());
  EXPECT_THAT(index.captures(1), ElementsAre("c", "x", "w", "p"));
  EXPECT_TRUE(index.captures(3).empty()) << "the Loop's x is its own";
  const auto& uses = index.uses("x");
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].node, 0);
  EXPECT_EQ(uses[1].node, 1);
  EXPECT_EQ(uses[1].input, -1);
  ASSERT_EQ(index.uses("w").size(), 1u);
}

TEST(Graph, RenamingFollowsCapturesButNotShadows) {
  onnx::ModelProto proto = parse_proto(kNested);
  rename_tensor(*proto.mutable_graph(), "x", "image");
  rename_tensor(*proto.mutable_graph(), "w", "weight");
  const auto model = Model::from_proto(proto);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto& nodes = model->proto().graph().node();
  EXPECT_EQ(nodes[0].input(0), "image");
  EXPECT_THAT(captured_names(nodes[1]), ElementsAre("c", "image", "weight", "p"));
  EXPECT_EQ(find_attribute(nodes[3], "body")->g().input(2).name(), "x");
}

TEST(Graph, UniqueNamesAvoidEverythingAndRepeat) {
  const Model model = parse_model(kNested);
  for (int round = 0; round < 2; ++round) {
    UniqueNames names(model.proto());
    EXPECT_EQ(names.make("x_out"), "x_out_1");  // inside a body
    EXPECT_EQ(names.make("loop"), "loop_1");    // a node
    EXPECT_EQ(names.make("new"), "new");
    EXPECT_EQ(names.make("new"), "new_1");
  }
  EXPECT_FALSE(UniqueNames::of_tensors(model.proto()).taken("loop"));
}

TEST(Graph, SortingIsStable) {
  const Model model = Model::load(std::filesystem::path(TENONNX_TEST_SOURCE_DIR) /
                                  "examples/models/shapes_deimv2.onnx")
                          .value()
                          .clone();
  const auto order = topological_order(model.proto().graph());
  ASSERT_TRUE(order.ok());
  for (std::size_t i = 0; i < order->size(); ++i) ASSERT_EQ((*order)[i], static_cast<int>(i));
}

TEST(Graph, UnusedThingsGo) {
  onnx::ModelProto proto = parse_proto(R"(
    <ir_version: 10, opset_import: ["" : 20, "f" : 1, "g" : 2]>
    g (float[2] x) => (float[2] y) <float[2] unused = {1, 2}, float[2] w = {3, 4}, float[2] z = {5, 6}>
    { y = f.outer (x, z) }
    <domain: "f", opset_import: ["" : 20, "f" : 1]> outer (a, b) => (c) { c = f.inner (a, b) }
    <domain: "f", opset_import: ["" : 20]> inner (a, b) => (c) { c = Add (a, b) }
    <domain: "g", opset_import: ["" : 20]> nobody (a) => (c) { c = Neg (a) })");
  proto.mutable_graph()->add_value_info()->set_name("gone");
  EXPECT_EQ(remove_unused(proto), 2);
  ASSERT_EQ(proto.graph().initializer_size(), 1);
  EXPECT_EQ(proto.graph().initializer(0).name(), "z");
  EXPECT_EQ(proto.graph().value_info_size(), 0);
  ASSERT_EQ(proto.functions_size(), 2);
  EXPECT_EQ(proto.functions(1).name(), "inner");
  ASSERT_EQ(proto.opset_import_size(), 2);
  EXPECT_EQ(proto.opset_import(1).domain(), "f");
}

TEST(Graph, OpsetImports) {
  onnx::ModelProto proto = parse_proto(kNested);
  EXPECT_TRUE(import_opset(proto, "ai.onnx", 20).ok());
  EXPECT_THAT(import_opset(proto, "", 21).message(), HasSubstr("at version 20, and version 21"));
  EXPECT_TRUE(import_opset(proto, "com.acme", 3).ok());
  EXPECT_EQ(proto.opset_import_size(), 2);
}

TEST(Graph, LabelsAndAttributes) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20, "com.acme" : 1]>
    g (float[1,1,4,4] x) => (float[1,1,4,4] y) {
      a = com.acme.Warp <k: int = 3, s: float = 0.5, m = "zeros", axes = [1, 2]> (x)
      [n] y = Relu (a) })");
  const auto& node = model.proto().graph().node(0);
  EXPECT_EQ(node_label(node), "com.acme.Warp (makes 'a')");
  EXPECT_EQ(node_label(model.proto().graph().node(1)), "Relu 'n'");
  EXPECT_EQ(attribute_or(node, "k", std::int64_t{7}), 3);
  EXPECT_EQ(attribute_or(node, "s", 0.0F), 0.5F);
  EXPECT_EQ(attribute_or(node, "m", "border"), "zeros");
  EXPECT_EQ(attribute_or(node, "m", std::int64_t{7}), 7) << "another type";
  EXPECT_EQ(attribute_or(node, "none", std::int64_t{7}), 7);
  EXPECT_THAT(attribute_ints(node, "axes"), ElementsAre(1, 2));
}

}  // namespace
}  // namespace tenonnx
