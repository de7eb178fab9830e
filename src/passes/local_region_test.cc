// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/local_region.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "model/shapes.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

// One region: all of the graph.
// 0 where there is none.
std::size_t axis(const std::string& inputs, const std::string& before, const std::string& after,
                 const std::string& constants = "") {
  const auto graph = [&](const std::string& nodes) {
    return model_from_text(
        fmt::format("<ir_version: 8, opset_import: [\"\" : 17]> g ({}) => (float[?,?,?,?] y) {} {{ "
                    "{} }}",
                    inputs, constants, nodes));
  };
  const Model was = graph(before), is = graph(after);
  const TensorInfos infos = infer_shapes(was);
  const auto diff = diff_graphs(was, is, {}, "test");
  EXPECT_TRUE(diff.ok()) << diff.status().message();
  EXPECT_EQ(diff->regions.size(), 1U);
  return strip_of(GraphIndex(was.proto().graph()), GraphIndex(is.proto().graph()), diff->regions[0],
                  [&](const RegionTensor& input) -> std::optional<Shape> {
                    const auto it = infos.find(input.before);
                    if (it == infos.end()) return std::nullopt;
                    return it->second.shape;
                  })
      .value_or(Strip())
      .axis;
}

constexpr const char* kImage = "float[1,2,40,40] x";
constexpr const char* kWeights =
    "<float[2,2,1,1] w = {1,2,3,4}, float[2,2,1,1] v = {2,4,6,8}, float k = {2}>";

TEST(LocalRegion, ConvolutionsWithScalesOfChannels) {
  EXPECT_EQ(axis(kImage, "c = Conv (x, w) y = Mul (c, k)", "y = Conv (x, v)", kWeights), 2U);
  EXPECT_EQ(
      axis("float[1,2,40,80] x", "c = Conv (x, w) y = Mul (c, k)", "y = Conv (x, v)", kWeights),
      2U);
}

TEST(LocalRegion, ImagesOfOneHeight) {
  const char* const before = "c = Conv (x, w) m = Mul (c, k) y = Concat <axis = 1> (m, z)";
  const char* const after = "c1 = Conv (x, v) y = Concat <axis = 1> (c1, z)";
  EXPECT_EQ(axis("float[1,2,40,40] x, float[1,3,40,40] z", before, after, kWeights), 2U);
  EXPECT_EQ(axis("float[1,2,40,40] x, float[1,3,1,40] z", before, after, kWeights), 0U);
  EXPECT_EQ(axis("float[1,2,40,40] x, float[1,2,40,40] z",
                 "c = Conv (x, w) m = Mul (c, k) y = Concat <axis = -2> (m, z)",
                 "c1 = Conv (x, v) y = Concat <axis = -2> (c1, z)", kWeights),
            0U);
}

TEST(LocalRegion, ElementsOfSeveralTensors) {
  EXPECT_EQ(axis("float[1,2,700,60] x, float[1,2,700,60] z", "a = Add (x, k) y = Add (a, z)",
                 "a1 = Add (x, z) y = Add (a1, k)", kWeights),
            2U);
  // Broadcast: the longest axis, along which one may have one element.
  EXPECT_EQ(axis("float[1,900,2,40] x, float[1,1,2,40] z", "a = Add (x, k) y = Add (a, z)",
                 "a1 = Add (x, z) y = Add (a1, k)", kWeights),
            3U);
  EXPECT_EQ(axis("float[1,900,2,40] x, float[40] z", "a = Add (x, k) y = Add (a, z)",
                 "a1 = Add (x, z) y = Add (a1, k)", kWeights),
            3U);
}

TEST(LocalRegion, NotWhatMixesOrTellsRows) {
  EXPECT_EQ(axis(kImage, "a = Softmax <axis = 2> (x) y = Mul (a, k)",
                 "a1 = Softmax <axis = 2> (x) y = Mul (k, a1)", kWeights),
            0U);
  EXPECT_EQ(axis("float[1,2,17,1] x", "a = Mul (x, k) y = Mul (a, rows)", "y = Mul (x, rows)",
                 "<float k = {1}, float[17,1] rows = "
                 "{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17}>"),
            0U);
  EXPECT_EQ(axis("float[1,2,17000,2] x", "a = Mul (x, k) y = Mul (a, columns)",
                 "y = Mul (x, columns)", "<float k = {1}, float[1,2] columns = {1,2}>"),
            2U);
}

TEST(LocalRegion, NotWhereThereAreNoMoreRows) {
  EXPECT_EQ(
      axis("float[1,2,4,40] x", "c = Conv (x, w) y = Mul (c, k)", "y = Conv (x, v)", kWeights), 0U);
  EXPECT_EQ(axis("float[2,300] x", "a = Mul (x, k) y = Add (a, k)", "y = Add (k, x)", kWeights),
            0U);
}

// A row of a kernel that no row of the strip meets would not be looked at.
TEST(LocalRegion, WhereTheStripMeetsTheWholeKernel) {
  const auto of_kernel = [](int size, const std::string& attributes) {
    return axis(
        "float[1,1,40,1] x", fmt::format("c = Conv {} (x, w) y = Mul (c, k)", attributes),
        fmt::format("y = Conv {} (x, v)", attributes),
        fmt::format("<float[1,1,{0},1] w = {{{1}}}, float[1,1,{0},1] v = {{{1}}}, "
                    "float k = {{1}}>",
                    size, fmt::join(std::vector<int>(static_cast<std::size_t>(size), 1), ",")));
  };
  EXPECT_EQ(of_kernel(3, ""), 2U);
  EXPECT_EQ(of_kernel(3, "<pads = [1,0,1,0], strides = [2,1]>"), 2U);
  EXPECT_EQ(of_kernel(7, "<pads = [3,0,3,0]>"), 2U);
  EXPECT_EQ(of_kernel(7, "<auto_pad = \"SAME_UPPER\">"), 2U);
  EXPECT_EQ(of_kernel(3, "<auto_pad = \"SAME_UPPER\", strides = [2,1]>"), 0U);
  EXPECT_EQ(of_kernel(7, "<pads = [6,0,0,0]>"), 0U);
  EXPECT_EQ(of_kernel(5, ""), 0U);
  EXPECT_EQ(of_kernel(9, "<pads = [4,0,4,0]>"), 0U);
  EXPECT_EQ(of_kernel(3, "<pads = [1000000000000,0,1,0]>"), 0U);
  EXPECT_EQ(of_kernel(3, "<pads = [1,0,1,0], strides = [4000000000000000000,1]>"), 0U);
  EXPECT_EQ(of_kernel(3, "<pads = [2,0,2,0], dilations = [2,1]>"), 2U);
  EXPECT_EQ(of_kernel(3, "<pads = [4,0,4,0], dilations = [4,1]>"), 0U);
}

TEST(LocalRegion, StridesBehindEachOtherLeaveFewerRows) {
  const auto strided = [](int times) {
    const auto nodes = [times](const char* weights, const char* factor) {
      std::string from = "x", text;
      for (int i = 0; i < times; ++i) {
        text += fmt::format("{0}{1} = Conv <pads = [1,1,1,1], strides = [2,1]> ({2}, {0}) ",
                            weights, i, from);
        from = fmt::format("{}{}", weights, i);
      }
      return text + fmt::format("y = Mul ({}, {})", from, factor);
    };
    return axis("float[1,1,40,8] x", nodes("w", "k"), nodes("v", "l"),
                "<float[1,1,3,3] w = {1,2,3,4,5,6,7,8,9}, float[1,1,3,3] v = "
                "{1,2,3,4,5,6,7,8,8}, float k = {2}, float l = {3}>");
  };
  EXPECT_EQ(strided(1), 2U);
  EXPECT_EQ(strided(2), 0U);
}

}  // namespace
}  // namespace tenonnx
