// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The real passes that replace GridSample, with a fault planted into what they wrote: the proof
// must catch every one, and pass what they wrote. Faults are planted before the new nodes, as the
// grid that makes a right form compute what a wrong one would, and into indices and attributes.
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

constexpr std::int64_t kHeight = 6, kWidth = 10;

Model original(const std::string& attributes = "") {
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 20]> g (float[1,3,{},{}] value, float[1,5,7,2] grid) "
      "=> (float[1,3,5,7] y) {{ y = GridSample {} (value, grid) }}",
      kHeight, kWidth, attributes));
}

ProofData harmless() {
  ProofData data;
  data.count = 1;
  data.load = [](std::size_t) -> Result<TensorMap> {
    return TensorMap{{"value", ramp({1, 3, kHeight, kWidth})},
                     {"grid", Tensor(DType::kFloat32, {1, 5, 7, 2})}};
  };
  return data;
}

PassProof prove(const Model& before, const Model& after, const ProofData& data,
                PassClass exactness = PassClass::kAlgebraic, const PassOutcome& outcome = {}) {
  const PassInfo pass = {"test_pass", PassStage::kRewrite, 7, 26, exactness, "of a test", nullptr};
  const auto executor = make_cpu_executor();
  auto proof = PassProver(*executor, data, {}).prove(pass, before, after, outcome);
  EXPECT_TRUE(proof.ok()) << proof.status().message();
  return proof.ok() ? std::move(proof).value() : PassProof();
}

// What reads `name` reads op(name, constants...) instead.
void put_before(Model& model, const std::string& name, const char* op_type,
                const std::vector<Tensor>& constants, int axis = -1) {
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  const std::string planted = fmt::format("planted_{}", graph.node_size());
  for (auto& node : *graph.mutable_node())
    for (std::string& input : *node.mutable_input())
      if (input == name) input = planted;
  std::vector<std::string> inputs = {name};
  for (const Tensor& constant : constants) {
    inputs.push_back(fmt::format("{}_{}", planted, inputs.size()));
    *graph.add_initializer() = to_tensor_proto(constant, inputs.back());
  }
  onnx::NodeProto node = make_node(op_type, inputs, {planted});
  node.set_name(planted);
  if (axis >= 0) set_attribute(node, "axis", std::int64_t{axis});
  *graph.add_node() = node;
  for (int i = graph.node_size() - 1; i > 0; --i) graph.mutable_node()->SwapElements(i, i - 1);
}

Tensor pair_of(double x, double y) {
  return Tensor::from<float>(DType::kFloat32, {2}, {static_cast<float>(x), static_cast<float>(y)});
}

struct GridFault {
  const char* name;
  void (*plant)(Model& model);
};
constexpr double kW = kWidth, kH = kHeight;
const GridFault kGridFaults[] = {
    {"SwappedAxes",
     [](Model& m) {
       put_before(m, "grid", "Gather", {Tensor::from<std::int64_t>(DType::kInt64, {2}, {1, 0})}, 3);
     }},
    // (g + 1) * 0.5 * W without the half pixel is this too.
    {"HalfPixelShift", [](Model& m) { put_before(m, "grid", "Add", {pair_of(1 / kW, 1 / kH)}); }},
    {"AlignCorners",
     [](Model& m) { put_before(m, "grid", "Mul", {pair_of((kW - 1) / kW, (kH - 1) / kH)}); }},
    // Into the middles of the outer pixels. The last one that is planted comes first.
    {"Clamp",
     [](Model& m) {
       put_before(m, "grid", "Min", {pair_of((kW - 1) / kW, (kH - 1) / kH)});
       put_before(m, "grid", "Max", {pair_of((1 - kW) / kW, (1 - kH) / kH)});
     }},
    {"SizesSwapped",
     [](Model& m) {
       put_before(m, "grid", "Add", {pair_of(kH / kW - 1, kW / kH - 1)});
       put_before(m, "grid", "Mul", {pair_of(kH / kW, kW / kH)});
     }},
};

using Options = std::map<std::string, std::string>;
const Options kForms[] = {{},
                          {{"form", "elements"}},
                          {{"form", "two_axis"}},
                          {{"zeros", "multiply"}},
                          {{"zeros", "border"}},
                          {{"weights", "nested"}}};

TEST(GatherPass, IsProvedAndItsMutantsAreCaught) {
  for (const char* attributes : {"", "<align_corners = 1>"}) {
    const Model before = original(attributes);
    for (const Options& options : kForms) {
      const std::string form = fmt::format("{} {}", attributes, Json(options).dump());
      Model right = before.clone();
      ASSERT_EQ(run_pass(right, "replace_grid_sample_gather", options).applied, 1) << form;
      const PassProof proof = prove(before, right, harmless());
      EXPECT_EQ(proof.verdict, Verdict::kPass) << form << to_json(proof).dump(2);
      ASSERT_EQ(proof.sampling.size(), 1U);
      EXPECT_THAT(proof.sampling[0].levels[0].made.missing(), testing::IsEmpty());
      EXPECT_GT(proof.sampling[0].levels[0].taps.taps, 0);
      EXPECT_EQ(proof.sampling[0].levels[0].taps.wrong, 0) << form;
      for (const GridFault& fault : kGridFaults) {
        Model wrong = right.clone();
        fault.plant(wrong);
        const PassProof caught = prove(before, wrong, harmless());
        EXPECT_EQ(caught.verdict, Verdict::kFail) << fault.name << form;
        ASSERT_EQ(caught.sampling.size(), 1U);
        EXPECT_GT(caught.sampling[0].levels[0].taps.wrong, 0) << fault.name << form;
        EXPECT_TRUE(caught.sampling[0].breaks.has_value()) << fault.name << form;
      }
    }
  }
}

// The fixed point weighs in steps of 1/512 pixel and rounds values to 1/127 of their range: what is
// within its bound is right, and a fault is still one. Values are -1 to 1.
TEST(Int8LutPass, IsProvedAndItsMutantsAreCaught) {
  const Model before = original();
  for (const char* output : {"float", "int8"}) {
    Model right = before.clone();
    const PassOutcome outcome =
        run_pass(right, "replace_grid_sample_int8_lut", {{"range", "1"}, {"output", output}});
    ASSERT_EQ(outcome.applied, 1);
    const PassProof proof = prove(before, right, harmless(), PassClass::kBounded, outcome);
    EXPECT_EQ(proof.verdict, Verdict::kPass) << to_json(proof).dump(2);
    ASSERT_EQ(proof.sampling.size(), 1U);
    EXPECT_GT(proof.sampling[0].levels[0].taps.taps, 0);
    EXPECT_EQ(proof.sampling[0].levels[0].taps.wrong, 0);
    EXPECT_FALSE(proof.sampling[0].breaks.has_value());
    for (const GridFault& fault : kGridFaults) {
      SCOPED_TRACE(fault.name);
      Model wrong = right.clone();
      fault.plant(wrong);
      const PassProof caught = prove(before, wrong, harmless(), PassClass::kBounded, outcome);
      EXPECT_EQ(caught.verdict, Verdict::kFail);
      ASSERT_EQ(caught.sampling.size(), 1U);
      EXPECT_GT(caught.sampling[0].levels[0].taps.wrong, 0);
    }
  }
}

// A range that real values leave is the caller's mistake, and is said so.
TEST(Int8LutPass, ValuesBeyondTheRangeFailTheProof) {
  const Model before = original();
  Model after = before.clone();
  const PassOutcome outcome = run_pass(after, "replace_grid_sample_int8_lut", {{"range", "0.5"}});
  const PassProof proof = prove(before, after, harmless(), PassClass::kBounded, outcome);
  EXPECT_EQ(proof.verdict, Verdict::kFail);
  ASSERT_EQ(proof.failures.size(), 1U);
  EXPECT_EQ(proof.failures[0].check.name, "value: largest magnitude");
  EXPECT_DOUBLE_EQ(proof.failures[0].check.value, 1);
  EXPECT_NEAR(proof.failures[0].check.limit.value, 0.5 * 127.5 / 127, 1e-6);
  EXPECT_THAT(proof.failures[0].check.limit.origin, testing::HasSubstr("give it a larger range"));
}

// Every read that the pass wrote, one further: out of bounds at the last pixel, wrong elsewhere.
TEST(GatherPass, AReadOneFurtherIsCaught) {
  const Model before = original();
  Model right = before.clone();
  ASSERT_EQ(run_pass(right, "replace_grid_sample_gather").applied, 1);
  int reads = 0;
  for (int i = 0; i < right.proto().graph().node_size(); ++i) {
    const onnx::NodeProto& node = right.proto().graph().node(i);
    if (!is_op(node, "Gather") && !is_op(node, "GatherElements")) continue;
    const GraphIndex index(right.proto().graph());
    const Value* indices = index.find(node.input(1));
    if (indices == nullptr || indices->is_initializer()) continue;  // takes the grid apart
    ++reads;
    Model wrong = right.clone();
    onnx::GraphProto& graph = *wrong.mutable_proto().mutable_graph();
    *graph.add_initializer() =
        to_tensor_proto(Tensor::from<std::int32_t>(DType::kInt32, {}, {1}), "one_further");
    onnx::NodeProto add = make_node("Add", {node.input(1), "one_further"}, {"further"});
    add.set_name("further");
    graph.mutable_node(i)->set_input(1, "further");
    *graph.add_node() = add;
    for (int k = graph.node_size() - 1; k > i; --k) graph.mutable_node()->SwapElements(k, k - 1);
    EXPECT_EQ(prove(before, wrong, harmless()).verdict, Verdict::kFail) << node_label(node);
  }
  EXPECT_GE(reads, 4);
}

}  // namespace
}  // namespace tenonnx
