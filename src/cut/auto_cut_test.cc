// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The rules of the automatic cut on graphs small enough to see the answer. What exporters really
// write: exports_test.cc.
#include "cut/auto_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cut/scramble_for_test.h"
#include "model/extract.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

AutoCut automatic(const Model& model) { return find_auto_cut(model, infer_shapes(model)); }

// Found, taken by split(), and the same under other names and orders.
Names expect_cut(const Model& model) {
  const AutoCut found = automatic(model);
  EXPECT_TRUE(found.cut.has_value()) << found.why_none;
  if (!found.cut) return {};
  const auto parts = split(model, found.cut->tensors);
  EXPECT_TRUE(parts.ok()) << parts.status().message();
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Scrambled other = scramble(model, seed);
    const AutoCut again = automatic(other.model);
    EXPECT_TRUE(again.cut.has_value()) << again.why_none;
    if (!again.cut) break;
    Names names;
    for (const std::string& name : again.cut->tensors) names.push_back(other.old_names.at(name));
    EXPECT_EQ(names, found.cut->tensors) << "seed " << seed;
    EXPECT_EQ(again.cut->kind, found.cut->kind);
    EXPECT_EQ(again.alternatives.size(), found.alternatives.size());
  }
  return found.cut->tensors;
}

// The head of every model here: an image of 8 x 8, one stem, and two levels of 4 x 4 and 2 x 2 with
// 4 channels, the coarser made from the finer one.
constexpr const char* kHead = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,8,8] images, int64[1,2] size) => (float[1,2,4] boxes)
<int64[4] w_stem_shape = {4, 3, 1, 1}, int64[4] w_shape = {4, 4, 1, 1},
 int64[4] w_half_shape = {4, 4, 2, 2}, int64[2] m_shape = {4, 4}, int64[2] m2_shape = {4, 2},
 float[4] bias = {1, 2, 3, 4}, int64[3] flat = {1, 4, -1}, int64[1] two = {2},
 int64[4] fine = {1, 4, 4, 4}, int64[4] grid_shape = {1, 1, 2, 2}, int64[3] rows = {1, 2, 4},
 int64[1] last = {2}, int64[1] one = {1}, int64[3] spread = {1, 2, 4},
 int64[2] level_sizes = {16, 4}, int64[3] level_sizes_3 = {16, 4, 1}, int64[3] pair = {1, 2, 2},
 int64[2] spread_axes = {1, 2}> {
  w_stem = ConstantOfShape (w_stem_shape)
  w = ConstantOfShape (w_shape)
  w_half = ConstantOfShape (w_half_shape)
  m = ConstantOfShape (m_shape)
  m2 = ConstantOfShape (m2_shape)
  s0 = Conv <kernel_shape = [1, 1]> (images, w_stem)
  stem = Relu (s0)
  c0 = Conv <kernel_shape = [2, 2], strides = [2, 2]> (stem, w_half)
  f0 = Relu (c0)
  c1 = Conv <kernel_shape = [2, 2], strides = [2, 2]> (f0, w_half)
  f1 = Relu (c1)
)";
// The size joins at the end, as in every detector that scales its boxes.
constexpr const char* kTail = R"(
  scale = Cast <to = 1> (size)
  factor = ReduceSum <keepdims = 0> (scale)
  boxes = Mul (result, factor)
})";
// Selection of 2 rows of 'memory' and one layer that samples the fine level of 'value'.
constexpr const char* kQueries = R"(
  logits = MatMul (memory, m)
  score = ReduceMax <axes = [2], keepdims = 0> (logits)
  top_score, top = TopK (score, two)
  top_rows = Unsqueeze (top, last)
  indices = Expand (top_rows, spread)
  query = GatherElements <axis = 1> (memory, indices)
  offset = MatMul (query, m2)
  place = Tanh (offset)
  grid = Reshape (place, grid_shape)
)";
constexpr const char* kSample = R"(
  value = MatMul (memory, m)
  value_fine, value_coarse = Split <axis = 1> (value, level_sizes)
  value_t = Transpose <perm = [0, 2, 1]> (value_fine)
  value_map = Reshape (value_t, fine)
  sampled = GridSample (value_map, grid)
  sampled_rows = Reshape (sampled, rows)
  result = Add (sampled_rows, query)
)";
constexpr const char* kJoin = R"(
  r0 = Reshape (p0, flat)
  t0 = Transpose <perm = [0, 2, 1]> (r0)
  r1 = Reshape (p1, flat)
  t1 = Transpose <perm = [0, 2, 1]> (r1)
  memory = Concat <axis = 1> (t0, t1)
)";

Model model_of(const std::string& body) { return parse_model(kHead + body + kTail); }

TEST(AutoCut, FeaturesBeforeTheInputProjection) {
  const Model model = model_of(std::string(R"(
  p0 = Conv <kernel_shape = [1, 1]> (f0, w)
  p1 = Conv <kernel_shape = [1, 1]> (f1, w))") +
                               kJoin + kQueries + kSample);
  EXPECT_THAT(expect_cut(model), ElementsAre("f0", "f1"));
  const AutoCut found = automatic(model);
  EXPECT_EQ(found.cut->kind, "features");
  EXPECT_THAT(found.cut->reason, AllOf(HasSubstr("query selection (TopK (makes 'top_score'))"),
                                       HasSubstr("and 1 sampling site")));
  EXPECT_TRUE(found.alternatives.empty());
}

// With the normalisation that was not folded into the convolution, and a mask on the memory.
TEST(AutoCut, FeaturesBeforeANormalisedProjection) {
  const Model model = model_of(std::string(R"(
  a0 = Conv <kernel_shape = [1, 1]> (f0, w)
  p0 = BatchNormalization (a0, bias, bias, bias, bias)
  a1 = Conv <kernel_shape = [1, 1]> (f1, w)
  p1 = BatchNormalization (a1, bias, bias, bias, bias))") +
                               kJoin + kQueries + kSample);
  EXPECT_THAT(expect_cut(model), ElementsAre("f0", "f1"));
}

// As the dynamo exporter writes the scale of a normalisation: its dtype is read from the features.
TEST(AutoCut, CastLikeReadsNoValues) {
  const Model model = model_of(std::string(R"(
  a0 = Conv <kernel_shape = [1, 1]> (f0, w)
  like0 = CastLike (bias, a0)
  scale0 = Unsqueeze (like0, spread_axes)
  p0 = Mul (a0, scale0)
  a1 = Conv <kernel_shape = [1, 1]> (f1, w)
  like1 = CastLike (bias, a1)
  scale1 = Unsqueeze (like1, spread_axes)
  p1 = Mul (a1, scale1))") + kJoin +
                               kQueries + kSample);
  EXPECT_THAT(expect_cut(model), ElementsAre("f0", "f1"));
}

// Nothing is projected; the encoder's last layer is a convolution without activation. f0 is read
// by it as well, which tells that levels come as they are.
TEST(AutoCut, TheEncodersLastConvolutionIsNoProjection) {
  const Model model = model_of(std::string(R"(
  p0 = Identity (f0)
  p1 = Conv <kernel_shape = [1, 1]> (f1, w))") +
                               kJoin + kQueries + kSample);
  EXPECT_THAT(expect_cut(model), ElementsAre("f0", "p1"));
}

// A third level that only the input projection makes, from the last feature: no third tensor.
TEST(AutoCut, ALevelThatTheProjectionAddsIsNoFeature) {
  const Model model = model_of(std::string(R"(
  p0 = Conv <kernel_shape = [1, 1]> (f0, w)
  p1 = Conv <kernel_shape = [1, 1]> (f1, w)
  p2 = Conv <kernel_shape = [2, 2], strides = [2, 2]> (f1, w_half)
  r0 = Reshape (p0, flat)
  t0 = Transpose <perm = [0, 2, 1]> (r0)
  r1 = Reshape (p1, flat)
  t1 = Transpose <perm = [0, 2, 1]> (r1)
  r2 = Reshape (p2, flat)
  t2 = Transpose <perm = [0, 2, 1]> (r2)
  memory = Concat <axis = 1> (t0, t1, t2)
)") + kQueries + R"(
  value = MatMul (memory, m)
  value_fine, value_1, value_2 = Split <axis = 1> (value, level_sizes_3)
  value_t = Transpose <perm = [0, 2, 1]> (value_fine)
  value_map = Reshape (value_t, fine)
  sampled = GridSample (value_map, grid)
  sampled_rows = Reshape (sampled, rows)
  result = Add (sampled_rows, query)
)");
  EXPECT_THAT(expect_cut(model), ElementsAre("f0", "f1"));
}

// No Concat: each level goes into the selection and is sampled on its own.
TEST(AutoCut, LevelsThatAreNeverJoined) {
  const Model model = model_of(R"(
  k0 = ReduceMax <axes = [1, 2], keepdims = 0> (f0)
  k1 = ReduceMax <axes = [1, 2], keepdims = 0> (f1)
  keys = Concat <axis = 1> (k0, k1)
  top_score, top = TopK (keys, two)
  top_rows = Unsqueeze (top_score, last)
  place = Expand (top_rows, pair)
  grid = Reshape (place, grid_shape)
  v0 = Conv <kernel_shape = [1, 1]> (f0, w)
  v1 = Conv <kernel_shape = [1, 1]> (f1, w)
  g0 = GridSample (v0, grid)
  g1 = GridSample (v1, grid)
  sum = Add (g0, g1)
  result = Reshape (sum, rows)
)");
  EXPECT_THAT(expect_cut(model), ElementsAre("f0", "f1"));
}

// Sampling written as a gather: the indices are computed, not selected. The gather of the queries
// takes its indices from TopK and is none.
TEST(AutoCut, SamplingWrittenAsAGather) {
  const Model model = model_of(std::string(R"(
  p0 = Conv <kernel_shape = [1, 1]> (f0, w)
  p1 = Conv <kernel_shape = [1, 1]> (f1, w))") +
                               kJoin + kQueries + R"(
  value = MatMul (memory, m)
  pixel_f = Floor (place)
  pixel = Cast <to = 7> (pixel_f)
  pixel_one = ReduceMax <axes = [2], keepdims = 1> (pixel)
  pixel_rows = Expand (pixel_one, spread)
  sampled = GatherElements <axis = 1> (value, pixel_rows)
  result = Add (sampled, query)
)");
  EXPECT_THAT(expect_cut(model), ElementsAre("f0", "f1"));
  EXPECT_THAT(automatic(model).cut->reason, HasSubstr("and 1 sampling site"));
}

// The second layer of the decoder selects again (as DEIM's quality estimate does), and a TopK
// within the backbone feeds all: neither is the query selection.
TEST(AutoCut, OtherSelectionsAreNotTheQuerySelection) {
  const Model model = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,4,4,4] images) => (float[1,2,4] boxes)
<int64[4] w_shape = {4, 4, 1, 1}, int64[2] m_shape = {4, 4}, int64[2] m2_shape = {4, 2},
 int64[3] flat = {1, 4, -1}, int64[1] two = {2}, int64[4] map = {1, 4, 4, 4}, int64[4] grid_shape = {1, 1, 2, 2}, int64[3] rows = {1, 2, 4},
 int64[1] last = {2}, int64[3] spread = {1, 2, 4}, int64[1] four = {4}> {
  w = ConstantOfShape (w_shape)
  m = ConstantOfShape (m_shape)
  m2 = ConstantOfShape (m2_shape)
  sparse, sparse_at = TopK (images, four)
  c = Conv <kernel_shape = [1, 1]> (sparse, w)
  feature = Relu (c)
  p = Conv <kernel_shape = [1, 1]> (feature, w)
  r = Reshape (p, flat)
  memory = Transpose <perm = [0, 2, 1]> (r)
  score = ReduceMax <axes = [2], keepdims = 0> (memory)
  top_score, top = TopK (score, two)
  top_rows = Unsqueeze (top, last)
  indices = Expand (top_rows, spread)
  query = GatherElements <axis = 1> (memory, indices)
  o1 = MatMul (query, m2)
  g1 = Reshape (o1, grid_shape)
  v1 = MatMul (memory, m)
  vt1 = Transpose <perm = [0, 2, 1]> (v1)
  vm1 = Reshape (vt1, map)
  s1 = GridSample (vm1, g1)
  q1 = Reshape (s1, rows)
  best, best_at = TopK (q1, four)
  o2 = MatMul (best, m2)
  g2 = Reshape (o2, grid_shape)
  v2 = MatMul (memory, m)
  vt2 = Transpose <perm = [0, 2, 1]> (v2)
  vm2 = Reshape (vt2, map)
  s2 = GridSample (vm2, g2)
  boxes = Reshape (s2, rows)
})");
  EXPECT_THAT(expect_cut(model), ElementsAre("feature"));
  EXPECT_THAT(automatic(model).cut->reason, HasSubstr("2 sampling sites"));
}

// Two encoder layers that sample, two decoder layers that sample what the encoder made, queries
// that are constants: the memory, and the features before the encoder.
TEST(AutoCut, WithoutQuerySelectionTheMemoryAndTheFeatures) {
  std::string body = R"(
  p0 = Conv <kernel_shape = [1, 1]> (f0, w)
  p1 = Conv <kernel_shape = [1, 1]> (f1, w))";
  body += kJoin;
  const auto layer = [](const std::string& value_of, const std::string& query,
                        const std::string& prefix, const std::string& out) {
    std::string text = R"(
  @value = MatMul (VALUE, m)
  @fine, @coarse = Split <axis = 1> (@value, level_sizes)
  @t = Transpose <perm = [0, 2, 1]> (@fine)
  @map = Reshape (@t, fine)
  @offset = MatMul (QUERY, m2)
  @grid = Unsqueeze (@offset, one)
  @sampled = GridSample (@map, @grid)
  @flat = Reshape (@sampled, flat)
  @rows = Transpose <perm = [0, 2, 1]> (@flat)
  @sum = Add (@rows, QUERY)
  OUT = LayerNormalization (@sum, bias, bias)
)";
    const auto replace = [&](const std::string& from, const std::string& to) {
      for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    };
    replace("VALUE", value_of);
    replace("QUERY", query);
    replace("OUT", out);
    replace("@", prefix);
    return text;
  };
  body += layer("memory", "memory", "e1_", "enc1");
  body += layer("enc1", "enc1", "e2_", "enc2");
  body += layer("enc2", "queries", "d1_", "dec1");
  body += layer("enc2", "dec1", "d2_", "result");
  const Model model = model_of("  queries = ConstantOfShape (rows)\n" + body);
  EXPECT_THAT(expect_cut(model), ElementsAre("enc2"));
  const AutoCut found = automatic(model);
  EXPECT_EQ(found.cut->kind, "encoder memory");
  EXPECT_THAT(found.cut->reason, HasSubstr("2 sampling sites in 2 layers"));
  ASSERT_EQ(found.alternatives.size(), 1u);
  EXPECT_EQ(found.alternatives[0].kind, "backbone features");
  EXPECT_THAT(found.alternatives[0].tensors, ElementsAre("f0", "f1"));
  EXPECT_TRUE(split(model, found.alternatives[0].tensors).ok());
}

// A detector that ends in NMS. Where its heads are joined before they are decoded, that is the
// narrowest boundary behind the last layer; where they are not, what the layers make is.
TEST(AutoCut, BeforePostProcessingWhereNothingIsSampled) {
  const std::string start = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,8,8] images) => (int64[n,3] kept, float[1,64,4] boxes)
<int64[4] w_shape = {5, 3, 1, 1}, int64[4] w2_shape = {4, 5, 1, 1}, int64[4] w3_shape = {1, 5, 1, 1},
 int64[4] w4_shape = {5, 5, 1, 1}, int64[3] flat = {1, 0, -1}, int64[2] parts = {4, 1},
 float half = {0.5}, int64 most = {10}, float iou = {0.5}, float low = {0.1}> {
  w = ConstantOfShape (w_shape)
  w2 = ConstantOfShape (w2_shape)
  w3 = ConstantOfShape (w3_shape)
  w4 = ConstantOfShape (w4_shape)
  c = Conv <kernel_shape = [1, 1]> (images, w)
  a = Relu (c)
)";
  const std::string end = R"(
  boxes_half = Mul (corner, half)
  boxes = Transpose <perm = [0, 2, 1]> (boxes_half)
  score = Sigmoid (logit)
  kept = NonMaxSuppression (boxes, score, most, iou, low)
})";
  const Model joined = parse_model(start + R"(
  head = Conv <kernel_shape = [1, 1]> (a, w4)
  head_rows = Reshape (head, flat)
  corner, logit = Split <axis = 1> (head_rows, parts)
)" + end);
  EXPECT_THAT(expect_cut(joined), ElementsAre("head"));
  EXPECT_EQ(automatic(joined).cut->kind, "post-processing");
  EXPECT_THAT(automatic(joined).cut->reason, HasSubstr("(NonMaxSuppression (makes 'kept'))"));
  const Model apart = parse_model(start + R"(
  head_b = Conv <kernel_shape = [1, 1]> (a, w2)
  head_s = Conv <kernel_shape = [1, 1]> (a, w3)
  corner = Reshape (head_b, flat)
  logit = Reshape (head_s, flat)
)" + end);
  EXPECT_THAT(expect_cut(apart), ElementsAre("head_b", "head_s"));
}

// Sampling within the body of an If: the node that has the body samples.
TEST(AutoCut, SamplingInABody) {
  const Model model = model_of(std::string(R"(
  p0 = Conv <kernel_shape = [1, 1]> (f0, w)
  p1 = Conv <kernel_shape = [1, 1]> (f1, w))") +
                               kJoin + kQueries + R"(
  value = MatMul (memory, m)
  value_fine, value_coarse = Split <axis = 1> (value, level_sizes)
  value_t = Transpose <perm = [0, 2, 1]> (value_fine)
  value_map = Reshape (value_t, fine)
  condition = Cast <to = 9> (one)
  sampled = If (condition) <
    then_branch = then_g () => (float[1,4,1,2] a) { a = GridSample (value_map, grid) },
    else_branch = else_g () => (float[1,4,1,2] b) { b = GridSample <mode = "nearest"> (value_map, grid) }>
  sampled_rows = Reshape (sampled, rows)
  result = Add (sampled_rows, query)
)");
  EXPECT_THAT(expect_cut(model), ElementsAre("f0", "f1"));
}

TEST(AutoCut, SaysWhyThereIsNone) {
  const auto why = [](const std::string& text) {
    const AutoCut found = automatic(parse_model(text));
    EXPECT_FALSE(found.cut.has_value());
    return found.why_none;
  };
  const std::string start = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,4,4] images) => )";
  EXPECT_THAT(why(start + R"((float[1,3,4,4] y) <int64[4] s = {3, 3, 1, 1}> {
  w = ConstantOfShape (s)
  y = Conv <kernel_shape = [1, 1]> (images, w)
})"),
              AllOf(HasSubstr("neither deformable sampling"), HasSubstr("nor a selection (TopK")));
  EXPECT_THAT(why(start + R"((int64[1,1,4,4] y) {
  y = ArgMax <axis = 1> (images)
})"),
              HasSubstr("no layer with weights"));
  // A token selection, and the network goes on.
  EXPECT_THAT(why(start + R"((float[1,3,4,4] y) <int64[2] s = {4, 4}, int64[1] four = {4}> {
  m = ConstantOfShape (s)
  x = MatMul (images, m)
  best, at = TopK (x, four)
  y = MatMul (best, m)
})"),
              HasSubstr("layers with weights lie behind every selection"));
  // The image itself is what is sampled.
  EXPECT_THAT(
      why(start + R"((float[1,3,2,2] y) <int64[2] s = {4, 2}, int64[4] shape = {1, 2, 2, 2}> {
  m = ConstantOfShape (s)
  r = ReduceMean <axes = [1, 2]> (images)
  o = MatMul (r, m)
  e = Expand (o, shape)
  y = GridSample (images, e)
})"),
      HasSubstr("reads the input 'images' itself"));
}

}  // namespace
}  // namespace tenonnx
