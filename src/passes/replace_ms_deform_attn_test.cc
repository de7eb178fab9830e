// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/status.h"
#include "passes/fusion_test_support.h"
#include "passes/ms_deform_attn_graph_for_test.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Value = AttentionForm::Value;
using Sum = AttentionForm::Sum;

constexpr const char* kPass = "replace_ms_deform_attn";

const onnx::NodeProto* attention_of(const Model& model) {
  for (const auto& node : model.proto().graph().node())
    if (node.op_type() == "MSDeformAttn") return &node;
  return nullptr;
}

// Replaces it and compares; returns the model after.
Model replaced(const AttentionForm& form) {
  const AttentionGraph graph(form);
  const Model before = graph.model();
  Model after = before.clone();
  const PassOutcome outcome = run_pass(after, kPass);
  EXPECT_EQ(outcome.applied, 1);
  EXPECT_THAT(outcome.skipped, IsEmpty()) << outcome.skipped.front().reason;
  const auto counts = op_counts(after);
  EXPECT_FALSE(counts.contains("GridSample"));
  EXPECT_EQ(counts.contains("MSDeformAttn") ? counts.at("MSDeformAttn") : 0, 1);
  if (outcome.applied == 1) expect_within_noise(before, after, graph.inputs());
  return after;
}

std::vector<AttentionForm> forms() {
  std::vector<AttentionForm> all;
  unsigned seed = 1;
  for (const Value value :
       {Value::kSequence, Value::kTransposed, Value::kChannelFirst, Value::kImages})
    for (const bool stacked : {false, true})
      for (const Sum sum : {Sum::kMul, Sum::kMatMul})
        for (const std::int64_t batch : {1, 3}) {
          AttentionForm form;
          form.value = value;
          form.stacked = form.levels_apart = stacked;
          form.sum = sum;
          form.batch = batch;
          form.seed = seed++;
          if (!stacked) form.levels = {{4, 6, 3}, {3, 2, 6}, {2, 5, 1}};
          all.push_back(form);
        }
  return all;
}

TEST(ReplaceMsDeformAttn, EveryForm) {
  for (const AttentionForm& form : forms()) {
    SCOPED_TRACE(fmt::format("value {}, {}, {}, batch {}", static_cast<int>(form.value),
                             form.stacked ? "stacked" : "concatenated",
                             form.sum == Sum::kMul ? "Mul" : "MatMul", form.batch));
    const Model after = replaced(form);
    const onnx::NodeProto* node = attention_of(after);
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(node->domain(), "tenonnx");
    std::vector<std::int64_t> shapes, points;
    for (const auto& level : form.levels) {
      shapes.insert(shapes.end(), {level.height, level.width});
      points.push_back(level.points);
    }
    EXPECT_EQ(attribute_ints(*node, "spatial_shapes"), shapes);
    EXPECT_EQ(attribute_ints(*node, "points"), points);
  }
}

// The same graph under other names is found just so.
TEST(ReplaceMsDeformAttn, NamesSayNothing) {
  for (unsigned seed = 100; seed < 110; ++seed) {
    AttentionForm form;
    form.seed = seed;
    replaced(form);
  }
}

// 6-D locations and a value [B,S,C] are taken as they are: no node is left but the operator's.
TEST(ReplaceMsDeformAttn, NeedsNothingButTheOperator) {
  AttentionForm form;
  form.stacked = true;
  form.batch = 2;
  EXPECT_THAT(op_types(replaced(form)), ::testing::ElementsAre("MSDeformAttn", "Tanh"));
}

TEST(ReplaceMsDeformAttn, ReusesTheTransposeOfChannelFirstValues) {
  AttentionForm form;
  form.value = Value::kChannelFirst;
  EXPECT_EQ(op_counts(replaced(form)).at("Transpose"), 1);
}

// Without one, a Transpose is made, once for all layers that sample the value.
TEST(ReplaceMsDeformAttn, MakesAMissingTransposeOnce) {
  const std::string layer =
      "g{0} = GridSample <padding_mode = \"zeros\"> (v4, l{0}) "
      "m{0} = Mul (g{0}, w) r{0} = ReduceSum <keepdims = 0> (m{0}, last) ";
  Model model = model_from_text(
      fmt::format("<ir_version: 9, opset_import: [\"\" : 17]> "
                  "g (float[1,6,8] v, float[2,5,4,2] l0, float[2,5,4,2] l1, float[2,1,5,4] w) "
                  "=> (float[2,3,5] y) <int64[4] s = {{2, 3, 2, 4}}, int64[1] last = {{-1}}> "
                  "{{ v4 = Reshape (v, s) {} {} y = Add (r0, r1) }}",
                  fmt::format(fmt::runtime(layer), 0), fmt::format(fmt::runtime(layer), 1)));
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, kPass).applied, 2);
  std::set<std::string> values, transposed;
  for (const auto& node : model.proto().graph().node()) {
    if (node.op_type() == "MSDeformAttn") values.insert(node.input(0));
    if (node.op_type() == "Transpose") transposed.insert(node.output(0));
  }
  ASSERT_THAT(values, SizeIs(1));
  EXPECT_TRUE(transposed.contains(*values.begin()));
  EXPECT_FALSE(op_counts(model).contains("GridSample"));
  expect_within_noise(before, model,
                      {{"v", ramp({1, 6, 8})},
                       {"l0", ramp({2, 5, 4, 2})},
                       {"l1", ramp({2, 5, 4, 2})},
                       {"w", ramp({2, 1, 5, 4})}});
}

TEST(ReplaceMsDeformAttn, TakesAGridThatIsNotComputedFromALocation) {
  AttentionForm form;
  form.grid_given = true;
  const auto counts = op_counts(replaced(form));
  EXPECT_EQ(counts.at("Mul"), 1);
  EXPECT_EQ(counts.at("Add"), 1);
}

TEST(ReplaceMsDeformAttn, OneLevel) {
  AttentionForm form;
  form.levels = {{5, 4, 7}};
  replaced(form);
}

TEST(ReplaceMsDeformAttn, OutputsKeepTheirShapesForWhatFollows) {
  const Model after = replaced({});
  const std::string& y = attention_of(after)->output(0);
  for (const auto& info : after.proto().graph().value_info()) {
    if (info.name() != y) continue;
    EXPECT_EQ(info.type().tensor_type().shape().dim(2).dim_value(), 6);
    return;
  }
  FAIL() << "nothing is recorded of '" << y << "'";
}

TEST(ReplaceMsDeformAttn, ReportsTheSite) {
  const AttentionGraph graph({});
  Model model = graph.model();
  const PassOutcome outcome = run_pass(model, kPass);
  ASSERT_THAT(outcome.sites, SizeIs(1));
  EXPECT_THAT(outcome.sites[0].node, HasSubstr(graph.grid_samples()[0]));
  EXPECT_THAT(outcome.sites[0].what,
              HasSubstr("2 levels (4x6, 3x2) of 3, 3 points, 2 heads of 3 channels"));
  EXPECT_EQ(outcome.total, "1 layer x 2 levels = 2 GridSample");
}

// Two cameras, ahead and back: from (ahead, left, up) in metres to pixels times depth, of 96 x 64.
Tensor projections() {
  const float both[] = {48,  -50, 0, 24, 32,  0, -50, 16, 1,  0, 0, 0.5F, 0, 0, 0, 1,
                        -48, 50,  0, 24, -32, 0, -50, 16, -1, 0, 0, 0.5F, 0, 0, 0, 1};
  Tensor t(DType::kFloat32, {2, 4, 4});
  std::copy(std::begin(both), std::end(both), t.mutable_data<float>());
  return t;
}

// What a near miss is, and which node is to blame: the level of this index.
struct Miss {
  const char* what;
  AttentionForm form;
  std::string reason;
};

std::vector<Miss> misses() {
  std::vector<Miss> all;
  const auto add = [&](const char* what, const std::string& reason, auto change) {
    AttentionForm form;
    change(form);
    all.push_back({what, form, reason});
  };
  add("nearest", "mode is 'nearest'", [](AttentionForm& f) { f.mode = "nearest"; });
  add("bicubic", "mode is 'bicubic'", [](AttentionForm& f) { f.mode = "bicubic"; });
  add("border", "padding_mode is 'border'", [](AttentionForm& f) { f.padding = "border"; });
  add("reflection", "padding_mode is 'reflection'",
      [](AttentionForm& f) { f.padding = "reflection"; });
  add("corners", "align_corners is 1", [](AttentionForm& f) { f.align_corners = 1; });
  add("double", "it samples float64", [](AttentionForm& f) { f.dtype = DType::kFloat64; });
  add("weights of channels", "are not one for each query, head and point", [](AttentionForm& f) {
    f.weights_shape = {2, 3, 5, 6};
  });
  add("weights of points", "are not one for each query, head and point", [](AttentionForm& f) {
    f.weights_shape = {1, 1, 1, 6};
  });
  add("one weight", "are not one for each query, head and point",
      [](AttentionForm& f) { f.weights_shape = {1}; });
  add("used samples", "is used by several nodes", [](AttentionForm& f) { f.samples_used = true; });
  return all;
}

TEST(ReplaceMsDeformAttn, RefusesNearMisses) {
  for (const Miss& miss : misses()) {
    SCOPED_TRACE(miss.what);
    const AttentionGraph graph(miss.form);
    Model model = graph.model();
    const std::string before = model.serialize().value();
    const PassOutcome outcome = run_pass(model, kPass);
    EXPECT_EQ(outcome.applied, 0);
    ASSERT_THAT(outcome.skipped, SizeIs(1));
    EXPECT_THAT(outcome.skipped[0].reason, HasSubstr(miss.reason));
    EXPECT_EQ(model.serialize().value(), before);
  }
}

PassOutcome outcome_of(const std::string& inputs, const std::string& body) {
  Model model = model_from_text(
      fmt::format("<ir_version: 9, opset_import: [\"\" : 17]> g ({}) => (float[a,b,c] y) "
                  "<int64[1] last = {{-1}}, int64[1] two = {{2}}> {{ {} }}",
                  inputs, body));
  PassOutcome outcome = run_pass(model, kPass);
  EXPECT_EQ(outcome.applied, 0);
  return outcome;
}

std::string only_reason(const PassOutcome& outcome) {
  EXPECT_THAT(outcome.skipped, SizeIs(1));
  return outcome.skipped.empty() ? "" : outcome.skipped[0].node + ": " + outcome.skipped[0].reason;
}

constexpr const char* kInputs =
    "float[2,3,4,6] v, float[2,5,4,2] l, float[2,1,5,4] w, float[2,3,5,4] x";

TEST(ReplaceMsDeformAttn, SaysWhatOtherSamplingLacks) {
  EXPECT_THAT(only_reason(outcome_of(kInputs,
                                     "g = GridSample (v, l) "
                                     "y = ReduceSum <keepdims = 0> (g, last)")),
              AllOf(HasSubstr("ReduceSum"), HasSubstr("they are not multiplied by weights")));
  EXPECT_THAT(only_reason(outcome_of(kInputs,
                                     "g = GridSample (v, l) m = Mul (g, w) "
                                     "y = ReduceMean <axes = [-1], keepdims = 0> (m)")),
              HasSubstr("they are not summed over the points"));
  EXPECT_THAT(only_reason(outcome_of(kInputs,
                                     "g = GridSample (v, l) m = Mul (g, w) "
                                     "y = ReduceSum <keepdims = 0> (m, two)")),
              HasSubstr("it sums axis 2, which is not of points alone"));
  EXPECT_THAT(only_reason(outcome_of(kInputs,
                                     "g = GridSample (v, l) m = Mul (g, g) "
                                     "y = ReduceSum <keepdims = 0> (m, last)")),
              HasSubstr("it squares the samples"));
  EXPECT_THAT(only_reason(outcome_of(kInputs,
                                     "g = GridSample (v, l) c = Concat <axis = -1> (g, x) "
                                     "y = ReduceSum <keepdims = 0> (c, last)")),
              HasSubstr("joins its samples with 'x', which no GridSample makes"));
}

TEST(ReplaceMsDeformAttn, CoordinatesAndWeightsAreOfOneType) {
  Model model = model_from_text(
      "<ir_version: 9, opset_import: [\"\" : 17]> g (float16[2,3,4,6] v, float[2,5,4,2] l, "
      "float16[2,1,5,4] w) => (float16[2,3,5] y) <int64[1] last = {-1}> "
      "{ g = GridSample (v, l) m = Mul (g, w) y = ReduceSum <keepdims = 0> (m, last) }");
  EXPECT_THAT(only_reason(run_pass(model, kPass)),
              HasSubstr("its weights are float16, the coordinates float32"));
  AttentionForm half;
  half.dtype = DType::kFloat16;
  Model all = AttentionGraph(half).model();
  EXPECT_EQ(run_pass(all, kPass).applied, 1);
}

TEST(ReplaceMsDeformAttn, RefusesShapesThatAreNotKnown) {
  EXPECT_THAT(only_reason(outcome_of(
                  "float[N,3,4,6] v, float[N,5,4,2] l, float[N,1,5,4] w",
                  "g = GridSample (v, l) m = Mul (g, w) y = ReduceSum <keepdims = 0> (m, last)")),
              AllOf(HasSubstr("the shape of 'v' is not known, or not static"),
                    HasSubstr("fix_input_shapes")));
}

// The raw export: its shapes are computed by nodes, which the pass folds first.
TEST(ReplaceMsDeformAttn, FindsAllLayersOfTheExample) {
  const std::filesystem::path source = TENONNX_TEST_SOURCE_DIR;
  auto model = Model::load(source / "examples/models/shapes_deimv2.onnx");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto before = op_counts(*model);
  const PassOutcome outcome = run_pass(*model, kPass);
  EXPECT_THAT(outcome.skipped, IsEmpty());
  EXPECT_EQ(outcome.total, "4 layers x 3 levels = 12 GridSample");
  EXPECT_EQ(before.at("GridSample"), 12);
  EXPECT_FALSE(op_counts(*model).contains("GridSample"));
  EXPECT_EQ(op_counts(*model).at("MSDeformAttn"), 4);
}

// A camera-to-bird's-eye-view encoder after BEVFormer (tools/models/export_bevformer.py), raw, of
// both exporters: two layers of temporal attention (two maps of one level) and spatial attention
// (two cameras, three levels, eight points in each).
TEST(ReplaceMsDeformAttn, FindsTheAttentionsOfABevEncoder) {
  const std::filesystem::path source = TENONNX_TEST_SOURCE_DIR;
  for (const char* name : {"bevformer_ts.onnx", "bevformer_dynamo.onnx"}) {
    SCOPED_TRACE(name);
    auto model = Model::load(source / "tests/ms_deform_attn" / name);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const Model before = model->clone();
    const PassOutcome outcome = run_pass(*model, kPass);
    EXPECT_THAT(outcome.skipped, IsEmpty()) << outcome.skipped.front().reason;
    ASSERT_THAT(outcome.sites, SizeIs(4));
    EXPECT_EQ(op_counts(before).at("GridSample"), 8);
    EXPECT_FALSE(op_counts(*model).contains("GridSample"));
    EXPECT_THAT(outcome.sites[0].what, HasSubstr("1 level (6x5) of 4 points, 2 heads"));
    EXPECT_THAT(outcome.sites[1].what,
                HasSubstr("3 levels (8x12, 4x6, 2x3) of 8, 8, 8 points, 2 heads"));
    expect_within_noise(before, *model,
                        {{"previous", ramp({1, 30, 16})},
                         {"projection", projections()},
                         {"features_0", ramp({2, 16, 8, 12})},
                         {"features_1", ramp({2, 16, 4, 6})},
                         {"features_2", ramp({2, 16, 2, 3})}});
  }
}

// Not all shapes of an exported attention can be told without the nodes that compute them; where
// nothing is found, nothing is folded either.
TEST(ReplaceMsDeformAttn, FoldsNothingWhereItReplacesNothing) {
  const std::string body =
      "s = Shape (v) g = GridSample <mode = \"nearest\"> (v, l) m = Mul (g, w) "
      "r = ReduceSum <keepdims = 0> (m, last) k = Add (two, two) u = Cast <to = 1> (k) "
      "y = Mul (r, u)";
  Model model = model_from_text(
      "<ir_version: 9, opset_import: [\"\" : 17]> g (float[N,3,4,6] v, float[N,5,4,2] l, "
      "float[N,1,5,4] w) => (float[a,b,c] y) <int64[1] last = {-1}, int64[1] two = {2}> { " +
      body + " }");
  const std::string before = model.serialize().value();
  const PassOutcome outcome = run_pass(model, kPass);
  EXPECT_THAT(first_reason(outcome), HasSubstr("nearest"));
  EXPECT_EQ(model.serialize().value(), before);
}

}  // namespace
}  // namespace tenonnx
