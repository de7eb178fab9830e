// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/selections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/parse_for_test.h"
#include "ort/executor.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Of the first TopK only the values are used; the second selects rows; ArgMax selects in them.
constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[6] x, float[6,2] table) => (float[2] spread, float[3,2] rows, int64[3] best)
<int64[1] two = {2}, int64[1] three = {3}> {
  spread, unused = TopK <axis = 0> (x, two)
  top, chosen = TopK <axis = 0, largest = 0> (x, three)
  column = Gather <axis = 0> (table, chosen)
  rows = Relu (column)
  best = ArgMax <axis = 1, keepdims = 0> (rows)
})";

TEST(FindSelections, AreThoseWhoseIndicesAreUsed) {
  const Model model = parse_model(kModel);
  const GraphIndex index(model.proto().graph());
  const auto found = find_selections(model, index);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].indices, "chosen");
  EXPECT_EQ(found[0].values, "");  // "top" is used by nothing
  EXPECT_FALSE(found[0].spec.largest);
  EXPECT_EQ(found[1].op_type, "ArgMax");
  EXPECT_EQ(found[1].scores, "rows");
  const Behind behind = behind_selections(index, found);
  EXPECT_FALSE(behind.contains("spread"));
  EXPECT_THAT(behind.at("rows"), ElementsAre(0));
  EXPECT_THAT(behind.at("best"), ElementsAre(0, 1));
}

TEST(ForceSelections, TakesTheIndicesFromOutside) {
  std::string text = kModel;
  text.replace(text.find("float[3,2] rows, "), 17, "float[3,2] rows, float[3] top, ");
  const Model model = parse_model(text.c_str());
  const GraphIndex index(model.proto().graph());
  const auto found = find_selections(model, index);
  const auto forced = force_selections(model, found, {0});
  ASSERT_TRUE(forced.ok()) << forced.status().message();
  const auto loaded = make_cpu_executor()->load(*forced, {});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const Tensor x = Tensor::from<float>(DType::kFloat32, {6}, {5, 4, 3, 2, 1, 0});
  const Tensor table =
      Tensor::from<float>(DType::kFloat32, {6, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Tensor chosen = Tensor::from<std::int64_t>(DType::kInt64, {3}, {3, 5, 0});
  const auto out = (*loaded)->run({{"x", x}, {"table", table}, {"chosen", chosen}});
  ASSERT_TRUE(out.ok()) << out.status().message();
  const float* rows = out->at("rows").data<float>();
  EXPECT_THAT(std::vector<float>(rows, rows + 6), ElementsAre(6, 7, 10, 11, 0, 1));
  const float* top = out->at("top").data<float>();
  EXPECT_THAT(std::vector<float>(top, top + 3), ElementsAre(2, 0, 5));
}

}  // namespace
}  // namespace tenonnx
