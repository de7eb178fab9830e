// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/kept_segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <fstream>
#include <random>
#include <set>

#include "base/temporary_directory.h"
#include "cut/kept_nodes.h"
#include "flow/prepare.h"
#include "flow/selected_rows.h"
#include "metrics/tensor_error.h"
#include "model/parse_for_test.h"
#include "ort/executor.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// 's' is an output that crosses; 'flat' only reshapes; 'c' follows from constants alone and is an
// output; a tensor has a name that a boundary would get.
constexpr const char* kGraph = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[6] y, float[2,3] s, float[1] c)
<float[1] two = {2}, int64[1] all = {-1}, float[2,3] boundary_1 = {1, 2, 3, 4, 5, 6}>
{
  [first] a = Relu (x)
  [middle] m = Mul (a, boundary_1)
  [last] s = Sigmoid (m)
  [sum] t = Add (s, a)
  [flat] f = Reshape (t, all)
  [end] y = Neg (f)
  [constant] c = Neg (two)
})";

class KeptSegmentsTest : public ::testing::Test {
 protected:
  KeptSegmentsTest() {
    target_.name = "toy";
    target_.roles = {{"model", "sim:toy"}, {"default", "cpu"}};
  }
  Result<KeptSegments> keep(const std::string& list, const Model* prepared = nullptr) const {
    std::ofstream(file_) << list;
    return keep_on_cpu(model_, prepared == nullptr ? model_ : *prepared, target_, file_);
  }
  std::string error(const std::string& list) const {
    const auto kept = keep(list);
    return kept.ok() ? "" : kept.status().message();
  }
  static std::vector<std::string> names(const std::vector<TensorInfo>& tensors) {
    std::vector<std::string> out;
    for (const TensorInfo& tensor : tensors) out.push_back(tensor.name);
    return out;
  }
  static std::vector<std::string> executors(const KeptSegments& kept) {
    std::vector<std::string> out;
    for (const auto& part : kept.parts) out.push_back(part.name + " " + part.executor);
    return out;
  }
  // All parts on the cpu, one after the other.
  static TensorMap run(const KeptSegments& kept, TensorMap known, const LoadOptions& load = {}) {
    for (const auto& part : kept.parts) {
      auto graph = make_cpu_executor()->load(part.model, load);
      if (!graph.ok()) {
        ADD_FAILURE() << part.name << ": " << graph.status().message();
        return {};
      }
      TensorMap inputs;
      for (const TensorInfo& info : (*graph)->inputs()) inputs.emplace(info.name, known[info.name]);
      auto outputs = (*graph)->run(inputs);
      if (!outputs.ok()) {
        ADD_FAILURE() << part.name << ": " << outputs.status().message();
        return {};
      }
      for (auto& [name, tensor] : *outputs) known.insert_or_assign(name, tensor);
    }
    return known;
  }

  Model model_ = parse_model(kGraph);
  Device target_;
  TemporaryDirectory temporary_;
  std::filesystem::path file_ = temporary_.path() / "kept.txt";
};

TEST_F(KeptSegmentsTest, SegmentsAlternateAndComputeTheSame) {
  const auto kept = keep("last\n");
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_THAT(executors(*kept),
              ElementsAre("segment_0 sim:toy", "segment_1 cpu", "segment_2 sim:toy"));
  EXPECT_THAT(kept->nodes, ElementsAre("last"));
  EXPECT_THAT(kept->notes,
              Contains(AllOf(HasSubstr("1 node kept on the cpu, all others on sim:toy: "
                                       "3 segments; 3 tensors cross"),
                             HasSubstr("72 bytes in a run"))));
  std::vector<std::string> sources;
  for (const BoundaryTensor& boundary : kept->boundaries) {
    sources.push_back(boundary.source);
    EXPECT_EQ(boundary.info.shape, (Shape{2, 3})) << boundary.source;
    EXPECT_EQ(boundary.bytes, 24u);
    EXPECT_NE(boundary.name, "boundary_1");  // an initializer has that name
  }
  EXPECT_THAT(sources, UnorderedElementsAre("a", "m", "s"));

  const Tensor x = Tensor::from<float>(DType::kFloat32, {2, 3}, {-1, 0, 1, 2, -3, 0.5F});
  auto whole = make_cpu_executor()->load(model_, {});
  ASSERT_TRUE(whole.ok());
  const auto expected = (*whole)->run({{"x", x}});
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  const TensorMap got = run(*kept, {{"x", x}});
  for (const char* output : {"y", "s", "c"}) {
    ASSERT_TRUE(got.contains(output)) << output;
    const auto same = compare_identical(expected->at(output), got.at(output));
    ASSERT_TRUE(same.ok()) << output;
    EXPECT_EQ(same->differing, 0) << output;  // the same operators on the same inputs
  }
}

// An output that crosses is taken by its boundary name and leaves by its own, from where it is
// made.
TEST_F(KeptSegmentsTest, AnOutputThatCrossesKeepsItsName) {
  const auto kept = keep("last\n");
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_THAT(names(kept->parts[1].model.outputs()), Contains("s"));
  EXPECT_EQ(kept->parts[1].model.outputs().size(), 2u);
  EXPECT_THAT(names(kept->parts[2].model.outputs()), ElementsAre("y", "c"));
}

// The Reshape between two kept nodes is no reason to go to the device and back.
TEST_F(KeptSegmentsTest, WhatOnlyReshapesJoinsTheKept) {
  const auto kept = keep("sum\r\n  end\r\n");
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_THAT(executors(*kept), ElementsAre("segment_0 sim:toy", "segment_1 cpu"));
  EXPECT_THAT(kept->notes, Contains(HasSubstr("1 node beside the kept ones")));
  EXPECT_THAT(kept->nodes, ElementsAre("sum", "end"));
}

TEST_F(KeptSegmentsTest, BadListsAreRefused) {
  EXPECT_THAT(error("first\nmiddel\n"), AllOf(HasSubstr("kept.txt, line 2"), HasSubstr("'middel'"),
                                              HasSubstr("near it: 'middle'")));
  EXPECT_THAT(error("# none\n"), HasSubstr("names no node"));
  EXPECT_THAT(error("constant\n"),
              AllOf(HasSubstr("keeps nothing on the cpu"), HasSubstr("'constant'")));
  EXPECT_THAT(error("first\nmiddle\nlast\nsum\nflat\nend\n"),
              AllOf(HasSubstr("leaves nothing for 'sim:toy' to compute: every node"),
                    HasSubstr("--target cpu")));
  EXPECT_THAT(error("first\nmiddle\nlast\nsum\nend\n"),
              HasSubstr("leaves nothing for 'sim:toy' to compute but names and shapes (1 node)"));
  const auto missing = keep_on_cpu(model_, model_, target_, temporary_.path() / "none.txt");
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("none.txt"));
}

// A list is of the model that was given; what has become a constant is said and left out.
TEST_F(KeptSegmentsTest, FoldedNodesAreLeftOut) {
  const Model folded = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[6] y, float[2,3] s, float[1] c)
<float[1] c = {-2}, int64[1] all = {-1}, float[2,3] boundary_1 = {1, 2, 3, 4, 5, 6}>
{
  [first] a = Relu (x)
  [middle] m = Mul (a, boundary_1)
  [last] s = Sigmoid (m)
  [sum] t = Add (s, a)
  [flat] f = Reshape (t, all)
  [end] y = Neg (f)
})");
  const auto kept = keep("constant\nlast\n", &folded);
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_THAT(kept->nodes, ElementsAre("last"));
  EXPECT_THAT(kept->notes, Contains(HasSubstr("'constant' became constant")));
}

// What nobody needs crosses nowhere, and what the body of an If reads crosses like any input.
TEST_F(KeptSegmentsTest, DeadNodesAndBodies) {
  model_ = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x, bool c) => (float[2,3] y)
{
  [first] a = Relu (x)
  [kept] k = Neg (a)
  [dead] d = Exp (k)
  [choose] r = If (c) <
    then_branch = t () => (float[2,3] u) { u = Neg (k) },
    else_branch = e () => (float[2,3] w) { w = Exp (a) }>
  [last] y = Sigmoid (r)
})");
  EXPECT_THAT(error("dead\n"), HasSubstr("keeps nothing on the cpu"));
  const auto kept = keep("kept\ndead\n");
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_THAT(kept->nodes, ElementsAre("kept"));
  EXPECT_THAT(kept->notes,
              Contains(HasSubstr("'dead' became constant when constants were folded, or "
                                 "no output needs it")));
  ASSERT_EQ(kept->parts.size(), 3u);
  EXPECT_EQ(kept->parts[1].model.outputs().size(), 1u);
  auto whole = make_cpu_executor()->load(model_, {});
  ASSERT_TRUE(whole.ok());
  for (const bool chosen : {false, true}) {
    const TensorMap inputs = {
        {"x", Tensor::from<float>(DType::kFloat32, {2, 3}, {-1, 0, 1, 2, -3, 0.5F})},
        {"c", Tensor::from<std::uint8_t>(DType::kBool, {}, {static_cast<std::uint8_t>(chosen)})}};
    const auto expected = (*whole)->run(inputs);
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    const TensorMap got = run(*kept, inputs);
    ASSERT_TRUE(got.contains("y"));
    EXPECT_EQ(compare_identical(expected->at("y"), got.at("y"))->differing, 0);
  }
}

// Whatever nodes are drawn, the segments on the cpu compute what the whole model computes. With
// optimisation disabled: a fusion may cross a boundary, and rounds less.
TEST_F(KeptSegmentsTest, RandomListsComputeTheSame) {
  auto source = Model::load(std::filesystem::path(TENONNX_TEST_SOURCE_DIR) / "examples" / "models" /
                            "shapes_deimv2.onnx");
  ASSERT_TRUE(source.ok()) << source.status().message();
  Model prepared = source->clone();
  ASSERT_TRUE(prepare_graph(prepared, {}).ok());
  LoadOptions plain;
  plain.optimization = Optimization::kDisabled;
  std::mt19937_64 random(1);
  TensorMap inputs;
  Tensor image(DType::kFloat32, {1, 3, 160, 160});
  float* values = image.mutable_data<float>();
  for (std::int64_t i = 0; i < image.size(); ++i)
    values[i] = static_cast<float>(random() % 1000) / 1000.0F;
  inputs.emplace("images", image);
  inputs.emplace("orig_target_sizes",
                 Tensor::from<std::int64_t>(DType::kInt64, {1, 2}, {160, 120}));
  auto whole = make_cpu_executor()->load(*source, plain);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const auto expected = (*whole)->run(inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().message();

  const GraphIndex index(prepared.proto().graph());
  const auto count = static_cast<std::uint64_t>(index.graph().node_size());
  for (const int drawn : {1, 4, 16, 64}) {
    std::set<int> nodes;
    for (int i = 0; i < drawn; ++i) nodes.insert(static_cast<int>(random() % count));
    std::ofstream(file_) << node_list_text(index, nodes, {});
    const auto kept = keep_on_cpu(*source, prepared, target_, file_);
    ASSERT_TRUE(kept.ok()) << drawn << ": " << kept.status().message();
    EXPECT_GT(kept->parts.size(), 1u);
    const TensorMap got = run(*kept, inputs, plain);
    for (const auto& [name, tensor] : *expected) {
      ASSERT_TRUE(got.contains(name)) << name << ", " << drawn << " drawn";
      const auto same = compare_identical(tensor, got.at(name));
      ASSERT_TRUE(same.ok()) << name;
      EXPECT_EQ(same->differing, 0) << name << ", " << drawn << " drawn";
    }
  }
}

TEST_F(KeptSegmentsTest, TheDeviceOfATarget) {
  const auto of = [](std::map<std::string, std::string> roles) {
    Device device;
    device.name = "toy";
    device.roles = std::move(roles);
    return device_executor(device);
  };
  EXPECT_EQ(*of({{"model", "a"}, {"encoder", "b"}, {"default", "cpu"}}), "a");
  EXPECT_EQ(*of({{"model", "cpu"}, {"encoder", "b"}, {"decoder", "cpu"}}), "b");
  EXPECT_EQ(*of({{"encoder", "b"}, {"decoder", "cpu"}}), "b");
  EXPECT_EQ(*of({{"default", "c"}}), "c");
  EXPECT_THAT(of({{"default", "cpu"}}).status().message(),
              AllOf(HasSubstr("target 'toy'"), HasSubstr("has no device")));
}

TEST_F(KeptSegmentsTest, RowsBehindASelectionAreFollowedThroughSegments) {
  model_ = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,8] x) => (float[1,3] y, float[1,8] z, int64[2] shape)
<int64[1] k = {3}> {
  [act] a = Sigmoid (x)
  [best] v, i = TopK (a, k)
  [rows] r = GatherElements <axis = 1> (x, i)
  [kept] n = Neg (r)
  [out] y = Exp (n)
  [other] z = Neg (a)
  [dims] shape = Shape (n)
})");
  const auto kept = keep("kept\nother\n");
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  std::vector<Segment> segments;
  for (const auto& part : kept->parts) {
    segments.push_back(
        {part.name, part.name + ".onnx", part.executor, part.model.inputs(), part.model.outputs()});
    ASSERT_TRUE(part.model.save(temporary_.path() / segments.back().file).ok());
  }
  const auto rows = selected_rows(temporary_.path(), segments);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ(rows->first, "TopK 'best'");
  std::vector<std::string> expected = {"y"};
  for (const BoundaryTensor& boundary : kept->boundaries)
    if (boundary.source == "r" || boundary.source == "n") expected.push_back(boundary.name);
  EXPECT_EQ(expected.size(), 3u);
  EXPECT_THAT(rows->tensors, ::testing::UnorderedElementsAreArray(expected));
}

}  // namespace
}  // namespace tenonnx
