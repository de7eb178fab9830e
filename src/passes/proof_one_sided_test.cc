// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A pass that makes a sampling node take a tensor that another node makes as well: the changed
// region takes one tensor in the graph before and another after. On free values of both the two
// forms differ, though nothing is wrong; further up, where both come from one tensor, they are
// judged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/status.h"
#include "model/tensor_proto.h"
#include "passes/edit.h"
#include "passes/proof.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kPass = "eliminate_common_subexpressions";

// The same pixels twice; `turned` has rows and columns exchanged.
Model original() {
  return model_from_text(R"(
    <ir_version: 8, opset_import: ["" : 20]>
    g (float[1,6,6,3] image, float[1,5,7,2] grid)
      => (float[1,3,5,7] y, float[1,3,6,6] z, float[1,3,6,6] w)
    {
      once = Transpose <perm = [0, 3, 1, 2]> (image)
      again = Transpose <perm = [0, 3, 1, 2]> (image)
      turned = Transpose <perm = [0, 3, 2, 1]> (image)
      y = GridSample (again, grid)
      z = Neg (once)
      w = Neg (turned)
    })");
}

// Every pixel the same: no captured value can tell the two.
ProofData harmless() {
  ProofData data;
  data.count = 1;
  data.load = [](std::size_t) -> Result<TensorMap> {
    Tensor image(DType::kFloat32, {1, 6, 6, 3});
    for (std::int64_t i = 0; i < image.size(); ++i)
      image.mutable_data<float>()[i] = static_cast<float>(i % 3) + 1;
    return TensorMap{{"image", image}, {"grid", Tensor(DType::kFloat32, {1, 5, 7, 2})}};
  };
  return data;
}

PassProof prove(const Model& before, const Model& after, const PassOutcome& outcome) {
  const auto pass = find_pass(kPass);
  EXPECT_TRUE(pass.ok());
  const auto executor = make_cpu_executor();
  const ProofData data = harmless();
  auto proof = PassProver(*executor, data, {}).prove(**pass, before, after, outcome);
  EXPECT_TRUE(proof.ok()) << proof.status().message();
  return proof.ok() ? std::move(proof).value() : PassProof();
}

TEST(OneSidedRegion, IsProvedFurtherUp) {
  const Model before = original();
  Model after = before.clone();
  PassOutcome outcome = run_pass(after, kPass);
  ASSERT_EQ(outcome.applied, 1);
  ASSERT_EQ(op_counts(after).at("Transpose"), 2);
  outcome.renamed.clear();  // so that the GridSample behind it is in the region
  const PassProof proof = prove(before, after, outcome);
  EXPECT_EQ(proof.verdict, Verdict::kPass) << to_json(proof).dump(2);
  EXPECT_THAT(proof.failures, IsEmpty());
  EXPECT_EQ(proof.with_context, 1);
  // The taps were read there, too, and are right.
  ASSERT_EQ(proof.sampling.size(), 1U);
  ASSERT_EQ(proof.sampling[0].levels.size(), 1U);
  EXPECT_GT(proof.sampling[0].levels[0].taps.taps, 0);
  EXPECT_EQ(proof.sampling[0].levels[0].taps.wrong, 0);
  EXPECT_THAT(proof.sampling[0].levels[0].made.missing(), IsEmpty());
  EXPECT_FALSE(proof.sampling[0].breaks.has_value());
}

// Two that are not the same made one.
TEST(OneSidedRegion, AWrongOneIsCaught) {
  const Model before = original();
  Model after = before.clone();
  onnx::GraphProto& graph = *after.mutable_proto().mutable_graph();
  for (auto& node : *graph.mutable_node())
    if (is_op(node, "GridSample")) node.set_input(0, "turned");
  erase_nodes(graph, [](const onnx::NodeProto& node) { return node.output(0) == "again"; });
  const PassProof proof = prove(before, after, {});
  EXPECT_EQ(proof.verdict, Verdict::kFail);
  EXPECT_FALSE(proof.failures.empty());
  ASSERT_EQ(proof.sampling.size(), 1U);
  EXPECT_GT(proof.sampling[0].levels[0].taps.wrong, 0);
  ASSERT_TRUE(proof.sampling[0].breaks.has_value());
  EXPECT_THAT(proof.sampling[0].breaks->node, HasSubstr("GridSample"));
}

// Two layers sample slices of one flattened image; the second one of them is made to sample the
// image itself. The first one's slices stay, so that nodes of both graphs take the flattened image,
// but behind them nothing of the second layer's is left.
Model two_layers() {
  return model_from_text(R"(
    <ir_version: 8, opset_import: ["" : 20]>
    g (float[1,36,3] rows, float[1,5,7,2] grid, float[1,4,4,2] other) => (float[1,3,5,7] y, float[1,3,4,4] z)
      <int64[1] zero = {0}, int64[1] all = {36}, int64[1] axis = {2}, int64[4] size = {1, 3, 6, 6},
       int64[3] flat = {1, 3, 36}> {
      tokens = Identity (rows)
      turned = Transpose <perm = [0, 2, 1]> (tokens)
      flattened = Reshape (turned, flat)
      slice = Slice (flattened, zero, all, axis)
      first = Reshape (slice, size)
      z = GridSample <mode = "nearest"> (first, other)
      second = Reshape (slice, size)
      y = GridSample (second, grid)
    })");
}

// The second layer without the slice; `perm`: of [1,6,6,3].
Model second_from_the_rows(const Model& before, std::vector<std::int64_t> perm) {
  Model after = before.clone();
  onnx::GraphProto& graph = *after.mutable_proto().mutable_graph();
  *graph.add_initializer() =
      to_tensor_proto(Tensor::from<std::int64_t>(DType::kInt64, {4}, {1, 6, 6, 3}), "image_size");
  onnx::NodeProto shaped = make_node("Reshape", {"tokens", "image_size"}, {"image"});
  shaped.set_name("image");
  onnx::NodeProto turned = make_node("Transpose", {"image"}, {"channels_first"});
  turned.set_name("channels_first");
  set_attribute(turned, "perm", perm);
  erase_nodes(graph, [](const onnx::NodeProto& node) { return node.output(0) == "second"; });
  for (auto& node : *graph.mutable_node())
    if (node.output(0) == "y") node.set_input(0, "channels_first");
  *graph.add_node() = shaped;
  *graph.add_node() = turned;
  EXPECT_TRUE(sort_nodes(graph).ok());
  return after;
}

ProofData of_rows() {
  ProofData data;
  data.count = 1;
  data.load = [](std::size_t) -> Result<TensorMap> {
    return TensorMap{
        {"rows", ramp({1, 36, 3})}, {"grid", ramp({1, 5, 7, 2})}, {"other", ramp({1, 4, 4, 2})}};
  };
  return data;
}

TEST(OneSidedRegion, WhatAnotherLayerAloneStillReadsDoesNotCount) {
  const Model before = two_layers();
  const auto pass = find_pass("replace_ms_deform_attn");
  ASSERT_TRUE(pass.ok());
  const auto executor = make_cpu_executor();
  const ProofData data = of_rows();
  const PassProver prover(*executor, data, {});
  const auto right = prover.prove(**pass, before, second_from_the_rows(before, {0, 3, 1, 2}), {});
  ASSERT_TRUE(right.ok()) << right.status().message();
  EXPECT_EQ(right->verdict, Verdict::kPass) << to_json(*right).dump(2);
  ASSERT_EQ(right->sampling.size(), 1U);
  EXPECT_GT(right->sampling[0].levels[0].taps.taps, 0);
  EXPECT_EQ(right->sampling[0].levels[0].taps.wrong, 0);
  // Rows and columns exchanged.
  const auto wrong = prover.prove(**pass, before, second_from_the_rows(before, {0, 3, 2, 1}), {});
  ASSERT_TRUE(wrong.ok()) << wrong.status().message();
  EXPECT_EQ(wrong->verdict, Verdict::kFail);
  ASSERT_EQ(wrong->sampling.size(), 1U);
  EXPECT_GT(wrong->sampling[0].levels[0].taps.wrong, 0);
}

}  // namespace
}  // namespace tenonnx
