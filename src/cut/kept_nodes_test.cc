// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "cut/kept_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_directory.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two branches; 'c' follows from a constant alone.
constexpr const char* kGraph = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[2,3] y, float[2,3] z)
<float[1] two = {2}>
{
  [first] a = Relu(x)
  [constant] c = Neg(two)
  [left] l = Mul(a, c)
  [right] r = Sigmoid(a)
  [sum] y = Add(l, r)
  [last] z = Sub(y, c)
})";

std::vector<std::vector<int>> nodes_of(const std::vector<NodeSegment>& segments) {
  std::vector<std::vector<int>> out;
  for (const NodeSegment& segment : segments) out.push_back(segment.nodes);
  return out;
}

TEST(KeptNodes, NothingKeptIsOneSegment) {
  const Model model = parse_model(kGraph);
  const GraphIndex index(model.proto().graph());
  const auto segments = divide_nodes(index, {});
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_FALSE(segments[0].kept);
  EXPECT_THAT(segments[0].nodes, ElementsAre(0, 2, 3, 4, 5));
  EXPECT_THAT(segments[0].inputs, ElementsAre("x"));
  EXPECT_THAT(segments[0].outputs, ElementsAre("y", "z"));
  EXPECT_EQ(price_of(model, index, segments).tensors, 0u);
}

// The branch beside the kept node needs no segment of its own.
TEST(KeptNodes, OneNodeInTheMiddleMakesThreeSegments) {
  const Model model = parse_model(kGraph);
  const GraphIndex index(model.proto().graph());
  const auto segments = divide_nodes(index, {3});
  EXPECT_THAT(nodes_of(segments),
              ElementsAre(ElementsAre(0, 2), ElementsAre(3), ElementsAre(4, 5)));
  EXPECT_THAT(segments[1].inputs, ElementsAre("a"));
  EXPECT_THAT(segments[1].outputs, ElementsAre("r"));
  EXPECT_THAT(segments[2].inputs, ElementsAre("l", "r"));
  const DivisionPrice price = price_of(model, index, segments);
  EXPECT_EQ(price.tensors, 3u);
  EXPECT_EQ(price.bytes, 3 * 6 * 4);
  EXPECT_TRUE(price.bytes_known);
}

TEST(KeptNodes, TheSideThatGivesFewerSegmentsBegins) {
  const Model model = parse_model(kGraph);
  const GraphIndex index(model.proto().graph());
  const auto segments = divide_nodes(index, {0, 3});
  EXPECT_THAT(nodes_of(segments), ElementsAre(ElementsAre(0, 3), ElementsAre(2, 4, 5)));
  EXPECT_TRUE(segments[0].kept);
}

TEST(KeptNodes, SegmentsAreModels) {
  const Model model = parse_model(kGraph);
  const GraphIndex index(model.proto().graph());
  for (const NodeSegment& segment : divide_nodes(index, {4})) {
    const auto part = cut_out(model, segment);
    ASSERT_TRUE(part.ok()) << part.status().message();
    EXPECT_EQ(part->inputs().size(), segment.inputs.size());
    EXPECT_EQ(part->outputs().size(), segment.outputs.size());
  }
}

TEST(KeptNodes, ListsThereAndBack) {
  const Model model = parse_model(kGraph);
  const GraphIndex index(model.proto().graph());
  const TemporaryDirectory directory;
  const auto file = directory.path() / "kept.txt";
  std::ofstream(file) << node_list_text(index, {2, 4}, {"of a test"});
  const auto read = read_node_list(file, index);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(*read, ElementsAre(2, 4));
}

// As an editor on Windows writes them.
TEST(KeptNodes, ByteOrderMarkLineEndsAndBlanksAreNoPartOfAName) {
  const Model model = parse_model(kGraph);
  const GraphIndex index(model.proto().graph());
  const TemporaryDirectory directory;
  const auto file = directory.path() / "kept.txt";
  std::ofstream(file, std::ios::binary) << "\xEF\xBB\xBFleft\r\n\r\n\t# of both\r\n  right \r\nl";
  const auto read = read_node_list(file, index);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(*read, ElementsAre(2, 3));
}

TEST(KeptNodes, BadListsSayWhere) {
  const Model model = parse_model(kGraph);
  const GraphIndex index(model.proto().graph());
  const TemporaryDirectory directory;
  const auto file = directory.path() / "kept.txt";
  const auto read = [&](const std::string& text) {
    std::ofstream(file) << text;
    return read_node_list(file, index).status().message();
  };
  EXPECT_THAT(read("left\nrigth\n"), HasSubstr("line 2: the model has no node and no tensor 'rigth'"
                                               "; near it: 'right'"));
  EXPECT_THAT(read("# nothing\n\n"), HasSubstr("names no node"));
  EXPECT_THAT(read_node_list(directory.path() / "none", index).status().message(),
              HasSubstr("none"));
}

}  // namespace
}  // namespace tenonnx
