// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "cut/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cut/scramble_for_test.h"
#include "cut/separators.h"
#include "cut/sites.h"
#include "model/extract.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// x widens to 8 channels, narrows to 2, and goes on in two branches that join.
constexpr const char* kNeck = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,4,4,4] x, float[1] late) => (int64[1,1,4,4] best, float[1,6,4,4] y)
<int64[4] widen_shape = {8, 4, 1, 1}, int64[4] narrow_shape = {2, 8, 1, 1},
 int64[4] w_shape = {4, 2, 1, 1}> {
  widen = ConstantOfShape (widen_shape)
  narrow = ConstantOfShape (narrow_shape)
  w = ConstantOfShape (w_shape)
  wide = Conv <kernel_shape = [1, 1]> (x, widen)
  relu = Relu (wide)
  neck = Conv <kernel_shape = [1, 1]> (relu, narrow)
  a = Conv <kernel_shape = [1, 1]> (neck, w)
  b = Softmax (neck)
  join = Concat <axis = 1> (a, b)
  y = Mul (join, late)
  best = ArgMax <axis = 1> (join)
})";

TEST(Separators, SingleOnesInOrder) {
  const Model model = parse_model(kNeck);
  const DataFlow flow(model);
  std::vector<std::string> names;
  for (const int id : single_separators(flow)) names.push_back(flow.name(id));
  EXPECT_THAT(names, ElementsAre("wide", "relu", "neck", "join"));
}

TEST(Separators, LayersHoldWhatIsAliveWhenEveryNodeWaits) {
  const Model model = parse_model(kNeck);
  const DataFlow flow(model);
  std::vector<std::vector<std::string>> layers;
  for (const TensorIds& ids : layered_separators(flow, 2)) {
    layers.emplace_back();
    for (const int id : ids) layers.back().push_back(flow.name(id));
  }
  // best and y wait for the same step; neither is made before it.
  ASSERT_EQ(layers.size(), 6u);
  EXPECT_THAT(layers[2], ElementsAre("neck"));
  EXPECT_THAT(layers[3], UnorderedElementsAre("a", "b"));
  EXPECT_THAT(layers[4], ElementsAre("join"));
  EXPECT_THAT(layers[5], UnorderedElementsAre("best", "y"));
  EXPECT_EQ(layered_separators(flow, 1).size(), 4u);
}

TEST(Candidates, TheNeckIsDescribed) {
  const Model model = parse_model(kNeck);
  const CutCandidates found = find_candidates(model);
  ASSERT_EQ(found.candidates.size(), 2u);
  const CutCandidate& neck = found.candidates[0];
  ASSERT_EQ(neck.cut.tensors.size(), 1u);
  EXPECT_EQ(neck.cut.tensors[0].name, "neck");
  EXPECT_EQ(neck.cut.elements, 2 * 4 * 4);
  EXPECT_EQ(neck.cut.bytes, 4 * 2 * 4 * 4);
  EXPECT_EQ(neck.cut.nodes_before, 5u);  // with two that make weights
  EXPECT_EQ(neck.cut.nodes_behind, 6u);  // with one
  EXPECT_EQ(neck.cut.sampling_behind, 0u);
  EXPECT_EQ(neck.cut.selections_behind, 1u);
  EXPECT_EQ(neck.cut.normalizations_behind, 1u);
  EXPECT_EQ(neck.cut.layers_behind, 1u);
  EXPECT_EQ(neck.mark, "");
  // No layer is behind the automatic one: it stands before the selection.
  const CutCandidate& automatic = found.candidates[1];
  EXPECT_EQ(automatic.mark, "auto");
  EXPECT_EQ(automatic.kind, "post-processing");
  EXPECT_EQ(automatic.cut.layers_behind, 0u);
}

TEST(Candidates, EachIsACutOfTheExampleWhateverTheOrder) {
  const auto model = Model::load(std::filesystem::path(TENONNX_TEST_SOURCE_DIR) /
                                 "examples/models/shapes_deimv2.onnx");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const CutCandidates found = find_candidates(*model);
  ASSERT_GT(found.candidates.size(), 2u);
  int automatic = 0;
  std::size_t behind = SIZE_MAX;
  for (const CutCandidate& candidate : found.candidates) {
    std::vector<std::string> names;
    for (const TensorInfo& info : candidate.cut.tensors) names.push_back(info.name);
    EXPECT_LE(names.size(), CandidateOptions{}.max_width);
    // Extracting costs half a second; some will do.
    if (candidate.mark == "auto" || &candidate == &found.candidates.front() ||
        &candidate == &found.candidates.back())
      EXPECT_TRUE(split(*model, names).ok()) << ::testing::PrintToString(names);
    EXPECT_LE(candidate.cut.nodes_behind, behind);
    behind = candidate.cut.nodes_behind;
    automatic += candidate.mark == "auto";
  }
  EXPECT_EQ(automatic, 1);
  const Scrambled other = scramble(*model, 7);
  const CutCandidates again = find_candidates(other.model);
  ASSERT_EQ(again.candidates.size(), found.candidates.size());
  for (std::size_t i = 0; i < found.candidates.size(); ++i) {
    EXPECT_EQ(again.candidates[i].cut.bytes, found.candidates[i].cut.bytes) << i;
    EXPECT_EQ(again.candidates[i].cut.nodes_behind, found.candidates[i].cut.nodes_behind) << i;
  }
}

TEST(Candidates, ANormalisationThatIsWrittenOutCounts) {
  const Model model = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,4,4] x) => (float[1,3,4,4] y)
<int64[4] s = {3, 3, 1, 1}, float two = {2}, float epsilon = {0.00001}> {
  w = ConstantOfShape (s)
  c = Conv <kernel_shape = [1, 1]> (x, w)
  square = Pow (c, two)
  mean = ReduceMean <axes = [-1]> (square)
  shifted = Add (mean, epsilon)
  root = Sqrt (shifted)
  y = Div (c, root)
})");
  const TensorInfos infos = infer_shapes(model);
  const DataFlow flow(model);
  const Sides sides = sides_of(flow.index(), {"c"});
  EXPECT_EQ(describe_cut(flow, {}, infos, {"c"}, sides).normalizations_behind, 1u);
}

TEST(Candidates, ADynamicSizeIsNotKnown) {
  const Model model = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[n,3,4,4] x) => (int64[n,1,4,4] y) <int64[4] s = {3, 3, 1, 1}> {
  w = ConstantOfShape (s)
  c = Conv <kernel_shape = [1, 1]> (x, w)
  y = ArgMax <axis = 1> (c)
})");
  const DescribedCut cut = find_described_cut(model);
  ASSERT_TRUE(cut.found.cut.has_value()) << cut.found.why_none;
  EXPECT_EQ(cut.description.elements, -1);
  EXPECT_EQ(cut.description.bytes, -1);
}

}  // namespace
}  // namespace tenonnx
