// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Rewritten sampling with one fault planted each: the proof must catch every one, and pass the same
// form without it. What is captured is harmless (points in the middle of the image), so that only
// what the proof makes can show the fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/status.h"
#include "passes/edit.h"
#include "passes/proof.h"
#include "passes/sampling_forms_for_test.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

struct Fault {
  GatherFault fault;
  const char* name;
};
const Fault kFaults[] = {{GatherFault::kSwappedAxes, "SwappedAxes"},
                         {GatherFault::kHalfPixelShift, "HalfPixelShift"},
                         {GatherFault::kAlignCorners, "AlignCorners"},
                         {GatherFault::kClampPoint, "ClampPoint"},
                         {GatherFault::kReplicateEdge, "ReplicateEdge"},
                         {GatherFault::kNoHalfPixel, "NoHalfPixel"},
                         {GatherFault::kSizesSwapped, "SizesSwapped"},
                         {GatherFault::kRowStride, "RowStride"},
                         {GatherFault::kUnbounded, "Unbounded"}};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

constexpr std::int64_t kChannels = 3, kHeight = 6, kWidth = 10, kRows = 5, kColumns = 7;

GatherForm form_of(GatherFault fault, bool align_corners) {
  GatherForm form;
  form.prefix = "f_";
  form.value = "image";
  form.x = "gx";
  form.y = "gy";
  form.out = "y";
  form.channels = kChannels;
  form.height = kHeight;
  form.width = kWidth;
  form.out_height = kRows;
  form.out_width = kColumns;
  form.align_corners = align_corners;
  form.fault = fault;
  return form;
}

Model model_of(const std::string& nodes, const std::string& constants) {
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 20]> g (float[1,{},{},{}] image, float[1,{},{},2] "
      "grid) => (float[1,{},{},{}] y) <{}> {{ {} }}",
      kChannels, kHeight, kWidth, kRows, kColumns, kChannels, kRows, kColumns, constants, nodes));
}

Model original(bool align_corners) {
  return model_of(fmt::format("y = GridSample <mode = \"linear\", padding_mode = \"zeros\", "
                              "align_corners = {}> (image, grid)",
                              align_corners ? 1 : 0),
                  "float unused = {0}");
}

Model rewritten(GatherFault fault, bool align_corners) {
  const FormText text = gather_form(form_of(fault, align_corners));
  return model_of(
      "gx = Gather <axis = 3> (grid, first) gy = Gather <axis = 3> (grid, second) " + text.nodes,
      text.constants + ", int64 first = {0}, int64 second = {1}");
}

// Every point in one place where even swapped axes agree.
TensorMap harmless() {
  Tensor grid(DType::kFloat32, {1, kRows, kColumns, 2});
  return {{"image", ramp({1, kChannels, kHeight, kWidth})}, {"grid", grid}};
}

ProofData data_of(TensorMap inputs) {
  ProofData data;
  data.count = 1;
  data.load = [inputs = std::move(inputs)](std::size_t) -> Result<TensorMap> { return inputs; };
  data.name = [](std::size_t) { return std::string("captured"); };
  return data;
}

PassProof prove(PassClass exactness, const Model& before, const Model& after,
                const TensorMap& inputs) {
  const PassInfo pass = {"test_pass", PassStage::kRewrite, 7, 26, exactness, "of a test", nullptr};
  const auto executor = make_cpu_executor();
  const ProofData data = data_of(inputs);
  auto proof = PassProver(*executor, data, {}).prove(pass, before, after, {});
  EXPECT_TRUE(proof.ok()) << proof.status().message();
  return proof.ok() ? std::move(proof).value() : PassProof();
}

class Mutation : public testing::TestWithParam<std::tuple<Fault, bool>> {};

TEST_P(Mutation, IsCaught) {
  const auto& [fault, align_corners] = GetParam();
  const Model before = original(align_corners), after = rewritten(fault.fault, align_corners);
  for (const PassClass exactness : {PassClass::kBitwise, PassClass::kAlgebraic}) {
    const PassProof proof = prove(exactness, before, after, harmless());
    EXPECT_EQ(proof.verdict, Verdict::kFail) << to_string(exactness);
    ASSERT_EQ(proof.sampling.size(), 1U);
    const SamplingProof& sampling = proof.sampling[0];
    ASSERT_EQ(sampling.levels.size(), 1U);
    const SampledLevelProof& level = sampling.levels[0];
    // A gather out of bounds runs into an error, or reads what is there.
    if (fault.fault != GatherFault::kUnbounded) {
      EXPECT_GT(level.taps.wrong, 0);
      EXPECT_LE(level.taps.wrong, level.taps.taps);
    } else {
      EXPECT_TRUE(level.taps.wrong > 0 || !level.taps.problem.empty());
    }
    ASSERT_TRUE(sampling.breaks.has_value()) << to_json(sampling).dump(2);
    EXPECT_EQ(sampling.breaks->pixel.size(), 2U);
  }
}

std::vector<std::tuple<Fault, bool>> all_faults() {
  std::vector<std::tuple<Fault, bool>> out;
  for (const Fault& fault : kFaults) {
    out.emplace_back(fault, false);
    // With aligned corners there is no half pixel to forget.
    if (fault.fault != GatherFault::kNoHalfPixel) out.emplace_back(fault, true);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Faults, Mutation, testing::ValuesIn(all_faults()), [](const auto& test) {
  return std::string(std::get<0>(test.param).name) + (std::get<1>(test.param) ? "Aligned" : "");
});

class Twin : public testing::TestWithParam<bool> {};

TEST_P(Twin, Passes) {
  const bool align_corners = GetParam();
  const PassProof proof = prove(PassClass::kAlgebraic, original(align_corners),
                                rewritten(GatherFault::kNone, align_corners), harmless());
  EXPECT_EQ(proof.verdict, Verdict::kPass) << to_json(proof).dump(2);
  ASSERT_EQ(proof.sampling.size(), 1U);
  const SamplingProof& sampling = proof.sampling[0];
  EXPECT_FALSE(sampling.breaks.has_value());
  ASSERT_EQ(sampling.levels.size(), 1U);
  const SampledLevelProof& level = sampling.levels[0];
  EXPECT_THAT(level.made.missing(), testing::IsEmpty());
  EXPECT_EQ(level.real.points, kRows * kColumns);
  EXPECT_EQ(level.real.centre, kRows * kColumns);
  EXPECT_GT(level.taps.taps, 4 * kRows * kColumns);
  EXPECT_EQ(level.taps.wrong, 0);
  EXPECT_EQ(level.taps.index_difference, 0);
  EXPECT_EQ(level.taps.problem, "");
  EXPECT_GT(sampling.bytes_after, sampling.bytes_before);
  // The image, once a channel and point.
  EXPECT_EQ(sampling.bytes_before, kChannels * kRows * kColumns * 4);
}

INSTANTIATE_TEST_SUITE_P(AlignCorners, Twin, testing::Bool());

// Two levels of unequal, rectangular sizes behind one tensor of locations, 0..1, and one of values,
// channels last, as deformable attention has them; the grids lie inside of the region.
constexpr std::int64_t kPoints = 8, kQueries = 9;
struct Level {
  const char* name;
  std::int64_t height, width, start;
};
constexpr Level kLevels[] = {{"a", 8, 12, 0}, {"b", 3, 5, 96}};

// `fault` < 0: GridSample; else in that level, the other one is right.
Model deformable(int faulty_level, GatherFault fault, bool rewritten) {
  std::string nodes, constants =
                         "int64[1] last = {3}, float two = {2}, float one = {1}, "
                         "int64 first = {0}, int64 second = {1}, int64[1] axis1 = {1}, "
                         "int64[1] axis2 = {2}";
  // No tensor of the rewritten form but y has an old name, so that the whole of it is one region.
  const std::string r = rewritten ? "r_" : "";
  nodes += fmt::format("{0}l = {1} {0}grid = Sub ({0}l, one) ", r,
                       rewritten ? "Add (location, location)" : "Mul (location, two)");
  for (std::size_t l = 0; l < 2; ++l) {
    const Level& level = kLevels[l];
    const std::string n = r + level.name;
    constants += fmt::format(
        ", int64[1] {0}from = {{{1}}}, int64[1] {0}to = {{{2}}}, int64[4] {0}shape = "
        "{{1,{3},{4},{5}}}, int64[1] {0}pfrom = {{{6}}}, int64[1] {0}pto = {{{7}}}",
        n, level.start, level.start + level.height * level.width, kChannels, level.height,
        level.width, l * kPoints / 2, (l + 1) * kPoints / 2);
    nodes += fmt::format(
        "{0}s = Slice (value, {0}from, {0}to, axis1) {0}t = Transpose <perm = [0, 2, 1]> ({0}s) "
        "{0}image = Reshape ({0}t, {0}shape) {0}grid = Slice ({1}grid, {0}pfrom, {0}pto, axis2) ",
        n, r);
    if (!rewritten) {
      nodes += fmt::format("{0}out = GridSample <mode = \"linear\"> ({0}image, {0}grid) ", n);
      continue;
    }
    GatherForm form =
        form_of(static_cast<int>(l) == faulty_level ? fault : GatherFault::kNone, false);
    form.prefix = n + "_";
    form.value = n + "image";
    form.x = n + "gx";
    form.y = n + "gy";
    form.out = n + "out";
    form.height = level.height;
    form.width = level.width;
    form.out_height = kQueries;
    form.out_width = kPoints / 2;
    const FormText text = gather_form(form);
    constants += ", " + text.constants;
    nodes += fmt::format(
        "{0}gx = Gather <axis = 3> ({0}grid, first) {0}gy = Gather <axis = 3> ({0}grid, second) "
        "{1}",
        n, text.nodes);
  }
  nodes += fmt::format(
      "{0}both = Concat <axis = 3> ({0}aout, {0}bout) {0}weighed = Mul ({0}both, weight) "
      "y = ReduceSum <keepdims = 0> ({0}weighed, last)",
      r);
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 20]> g (float[1,111,{0}] value, float[1,{1},{2},2] "
      "location, float[1,1,{1},{2}] weight) => (float[1,{0},{1}] y) <{3}> {{ {4} }}",
      kChannels, kQueries, kPoints, constants, nodes));
}

TensorMap attention() {
  Tensor location(DType::kFloat32, {1, kQueries, kPoints, 2});
  for (std::int64_t i = 0; i < location.size(); ++i) location.mutable_data<float>()[i] = 0.5F;
  Tensor weight = ramp({1, 1, kQueries, kPoints});
  return {{"value", ramp({1, 111, kChannels})}, {"location", location}, {"weight", weight}};
}

class LevelMutation : public testing::TestWithParam<Fault> {};

TEST_P(LevelMutation, IsCaughtInEachLevel) {
  const Model before = deformable(-1, GatherFault::kNone, false);
  for (const int level : {0, 1}) {
    const Model after = deformable(level, GetParam().fault, true);
    const PassProof proof = prove(PassClass::kAlgebraic, before, after, attention());
    EXPECT_EQ(proof.verdict, Verdict::kFail);
    // The one region holds the grids, so that the points went in at the locations.
    ASSERT_EQ(proof.sampling.size(), 1U);
    ASSERT_EQ(proof.sampling[0].levels.size(), 2U);
    const auto wrong = [&](int l) {
      const TapCount& taps = proof.sampling[0].levels[static_cast<std::size_t>(l)].taps;
      return taps.wrong > 0 || !taps.problem.empty();
    };
    EXPECT_TRUE(wrong(level)) << level;
    // Indices beyond the image are an error of the whole region.
    if (GetParam().fault == GatherFault::kUnbounded ||
        GetParam().fault == GatherFault::kSizesSwapped)
      continue;
    EXPECT_FALSE(wrong(1 - level)) << level;
    ASSERT_TRUE(proof.sampling[0].breaks.has_value());
    EXPECT_EQ(proof.sampling[0].breaks->node,
              proof.sampling[0].levels[static_cast<std::size_t>(level)].level.node);
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, LevelMutation, testing::ValuesIn(kFaults),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(LevelTwin, PassesAndReachesEveryCaseOfEveryLevel) {
  const PassProof proof = prove(PassClass::kAlgebraic, deformable(-1, GatherFault::kNone, false),
                                deformable(-1, GatherFault::kNone, true), attention());
  EXPECT_EQ(proof.verdict, Verdict::kPass) << to_json(proof).dump(2);
  ASSERT_EQ(proof.sampling.size(), 1U);
  ASSERT_EQ(proof.sampling[0].levels.size(), 2U);
  for (const SampledLevelProof& level : proof.sampling[0].levels) {
    EXPECT_THAT(level.made.missing(), testing::IsEmpty()) << level.level.node;
    EXPECT_GT(level.taps.taps, 0);
    EXPECT_EQ(level.taps.wrong, 0);
  }
}

// A grid that a node before the region makes of an input reaches every place all the same: what
// fails on made coordinates is not excused by harmless values further up.
TEST(Context, DoesNotExcuseAnUnboundedGather) {
  const auto behind = [](Model model) {
    onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
    for (auto& node : *graph.mutable_node())
      for (std::string& name : *node.mutable_input())
        if (name == "grid") name = "made_grid";
    onnx::NodeProto made = make_node("Neg", {"grid"}, {"made_grid"});
    made.set_name("before");
    *graph.add_node() = made;
    for (int i = graph.node_size() - 1; i > 0; --i) graph.mutable_node()->SwapElements(i, i - 1);
    return model;
  };
  const Model before = behind(original(false));
  EXPECT_EQ(
      prove(PassClass::kAlgebraic, before, behind(rewritten(GatherFault::kNone, false)), harmless())
          .verdict,
      Verdict::kPass);
  EXPECT_EQ(prove(PassClass::kAlgebraic, before, behind(rewritten(GatherFault::kUnbounded, false)),
                  harmless())
                .verdict,
            Verdict::kFail);
}

// Of an approximate pass the taps are told, not judged.
TEST(Approximate, TellsWhichTapsMoved) {
  const PassProof proof = prove(PassClass::kApproximate, original(false),
                                rewritten(GatherFault::kHalfPixelShift, false), harmless());
  EXPECT_EQ(proof.verdict, Verdict::kInconclusive);
  ASSERT_EQ(proof.sampling.size(), 1U);
  EXPECT_GT(proof.sampling[0].levels[0].taps.wrong, 0);
  EXPECT_EQ(proof.sampling[0].levels[0].taps.index_difference, 1);
  EXPECT_GT(proof.sampling[0].made_abs, 0.01);
  EXPECT_EQ(to_json(proof)["sampling"][0]["levels"][0]["index_difference"], 1);
}

}  // namespace
}  // namespace tenonnx
