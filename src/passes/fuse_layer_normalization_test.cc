// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/fusion_test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kConstants =
    "<float two = {2}, float one = {1}, float eps = {0.001}, float root = {0.5}, "
    "float inv = {-0.5}, int64[1] last = {-1}, int64[2] last2 = {1, 2}, int64[1] mid = {1}, "
    "float[4] s = {1, -2, 0.5, 3}, float[4] b = {0.1, 0.2, -0.3, 0.4}, "
    "float[1,1,4] s3 = {1, -2, 0.5, 3}, float[1] s1 = {2}, float[3,1] sc = {1, 2, 3}, "
    "float[3,4] s34 = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6}>";

// Opset 18: axes are inputs.
Model graph(const std::string& body, int opset = 18) {
  return model_from_text(
      fmt::format("<ir_version: 8, opset_import: [\"\" : {}]> "
                  "g (float[2,3,4] x) => (float[2,3,4] y) {} {{ {} }}",
                  opset, kConstants, body));
}

const std::string kHead =
    "m = ReduceMean (x, last) d = Sub (x, m) q = Mul (d, d) "
    "v = ReduceMean (q, last) e = Add (v, eps) ";

struct Form {
  const char* name;
  std::string body;
  std::size_t inputs;  // of the node that results: 3 with a bias
  std::int64_t axis = -1;
  std::vector<std::string> ops = {"LayerNormalization"};
};

class FuseLayerNormalizationForms : public testing::TestWithParam<Form> {};

TEST_P(FuseLayerNormalizationForms, BecomeOneNode) {
  const Form& form = GetParam();
  Model model = graph(form.body);
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "fuse_layer_normalization");
  EXPECT_EQ(outcome.applied, 1) << first_reason(outcome);
  ASSERT_EQ(op_types(model), form.ops);
  const onnx::NodeProto& node = model.proto().graph().node(0);
  EXPECT_EQ(node.input(0), "x");
  EXPECT_EQ(static_cast<std::size_t>(node.input_size()), form.inputs);
  EXPECT_EQ(attribute_or(node, "axis", std::int64_t{0}), form.axis);
  EXPECT_EQ(attribute_or(node, "epsilon", 0.0F), 0.001F);  // exactly
  expect_within_noise(before, model, {{"x", ramp({2, 3, 4})}});
}

INSTANTIATE_TEST_SUITE_P(
    Forms, FuseLayerNormalizationForms,
    testing::Values(
        Form{"of_pytorch",
             "m = ReduceMean (x, last) d = Sub (x, m) q = Pow (d, two) v = ReduceMean (q, last) "
             "e = Add (v, eps) r = Sqrt (e) n = Div (d, r) k = Mul (n, s) y = Add (k, b)",
             3},
        Form{"operands_exchanged",
             "m = ReduceMean (x, last) d = Sub (x, m) q = Mul (d, d) v = ReduceMean (q, last) "
             "e = Add (eps, v) r = Sqrt (e) n = Div (d, r) k = Mul (s3, n) y = Add (b, k)",
             3},
        Form{"reciprocal", kHead + "r = Sqrt (e) i = Reciprocal (r) n = Mul (d, i) y = Mul (n, s)",
             2},
        Form{"one_divided", kHead + "r = Sqrt (e) i = Div (one, r) n = Mul (i, d) y = Mul (n, s)",
             2},
        Form{"pow_half", kHead + "r = Pow (e, root) y = Div (d, r)", 2},
        Form{"pow_minus_half", kHead + "r = Pow (e, inv) n = Mul (d, r) y = Add (n, b)", 3},
        Form{"deviation_twice",
             kHead + "r = Sqrt (e) m2 = ReduceMean (x, last) d2 = Sub (x, m2) "
                     "n = Div (d2, r) k = Mul (n, s) y = Add (k, b)",
             3},
        Form{"casts_between",
             kHead + "r = Sqrt (e) n = Div (d, r) c = Cast <to = 1> (n) "
                     "k = Mul (c, s) y = Add (k, b)",
             3},
        Form{"last_two_axes",
             "m = ReduceMean (x, last2) d = Sub (x, m) q = Mul (d, d) v = ReduceMean (q, last2) "
             "e = Add (v, eps) r = Sqrt (e) n = Div (d, r) y = Mul (n, s34)",
             2, -2},
        // A factor of another shape stays behind.
        Form{"scale_of_another_axis",
             kHead + "r = Sqrt (e) n = Div (d, r) y = Mul (n, sc)",
             2,
             -1,
             {"LayerNormalization", "Mul"}},
        Form{"scale_of_one_element",
             kHead + "r = Sqrt (e) n = Div (d, r) y = Mul (n, s1)",
             2,
             -1,
             {"LayerNormalization", "Mul"}},
        Form{"computed_scale",
             kHead + "r = Sqrt (e) n = Div (d, r) y = Mul (n, x)",
             2,
             -1,
             {"LayerNormalization", "Mul"}}),
    [](const auto& param) { return param.param.name; });

TEST(FuseLayerNormalization, AxesAreAnAttributeBeforeOpset18) {
  Model model = graph(
      "m = ReduceMean <axes = [2]> (x) d = Sub (x, m) q = Mul (d, d) "
      "v = ReduceMean <axes = [-1], keepdims = 1> (q) e = Add (v, eps) r = Sqrt (e) "
      "n = Div (d, r) k = Mul (n, s) y = Add (k, b)",
      17);
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "fuse_layer_normalization").applied, 1);
  ASSERT_THAT(op_types(model), ElementsAre("LayerNormalization"));
  expect_within_noise(before, model, {{"x", ramp({2, 3, 4})}});
}

TEST(FuseLayerNormalization, RefusesWhatIsNearlyOne) {
  for (const auto& [body, reason] : std::vector<std::pair<std::string, std::string>>{
           {"m = ReduceMean (x, mid) d = Sub (x, m) q = Mul (d, d) v = ReduceMean (q, mid) "
            "e = Add (v, eps) r = Sqrt (e) y = Div (d, r)",
            "over the axes [-2] from the end"},
           {"m = ReduceMean (x, last) d = Sub (x, m) q = Mul (d, d) v = ReduceMean (q, mid) "
            "e = Add (v, eps) r = Sqrt (e) y = Div (d, r)",
            "mean and variance are taken over different axes"},
           {"m = ReduceMean (x, last) d = Sub (x, m) q = Mul (d, d) v = ReduceMean (q, last) "
            "r = Sqrt (v) e = Add (r, eps) y = Div (d, e)",
            "epsilon is added behind the root"},
           {kHead + "r = Sqrt (e) y = Div (x, r)", "divides another tensor"},
           {kHead + "r = Sqrt (e) n = Div (d, r) y = Add (n, d)", "'d' is used by Add"},
           {kHead + "r = Sqrt (e) n = Div (d, r) y = Add (n, r)",
            "'r', the root, is not used by one"}}) {
    Model model = graph(body);
    const PassOutcome outcome = run_pass(model, "fuse_layer_normalization");
    EXPECT_EQ(outcome.applied, 0) << body;
    EXPECT_THAT(first_reason(outcome), HasSubstr(reason)) << body;
  }
}

TEST(FuseLayerNormalization, RefusesAnOutputInside) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4] x) => (float[2,4] y, float[2,4] d) <float eps = {0.001}> {
      m = ReduceMean <axes = [-1]> (x)  d = Sub (x, m)  q = Mul (d, d)
      v = ReduceMean <axes = [-1]> (q)  e = Add (v, eps)  r = Sqrt (e)  y = Div (d, r)
    })");
  const PassOutcome outcome = run_pass(model, "fuse_layer_normalization");
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_THAT(first_reason(outcome), HasSubstr("'d' is an output of the graph"));
}

TEST(FuseLayerNormalization, RefusesAnOlderOpsetAndOtherDtypes) {
  const std::string body =
      "m = ReduceMean <axes = [-1]> (x) d = Sub (x, m) q = Mul (d, d) "
      "v = ReduceMean <axes = [-1]> (q) e = Add (v, eps) r = Sqrt (e) n = Div (d, r) y = Mul (n, "
      "s)";
  Model old = graph(body, 16);
  EXPECT_THAT(first_reason(run_pass(old, "fuse_layer_normalization")),
              AllOf(HasSubstr("LayerNormalization came with opset 17"), HasSubstr("imports 16"),
                    HasSubstr("convert_opset")));
  // 0x1419 is 0.001; 1e-8 would be 0 in float16, and a constant row divided by 0.
  Model half = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float16[2,4] x) => (float16[2,4] y) <float16 eps = {5145}> {
      m = ReduceMean <axes = [-1]> (x)  d = Sub (x, m)  q = Mul (d, d)
      v = ReduceMean <axes = [-1]> (q)  e = Add (v, eps)  r = Sqrt (e)  y = Div (d, r)
    })");
  EXPECT_THAT(first_reason(run_pass(half, "fuse_layer_normalization")),
              AllOf(HasSubstr("'x' is float16"), HasSubstr("epsilon")));
  Model no_epsilon = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float16[2,4] x) => (float16[2,4] y) {
      m = ReduceMean <axes = [-1]> (x)  d = Sub (x, m)  q = Mul (d, d)
      v = ReduceMean <axes = [-1]> (q)  r = Sqrt (v)  y = Div (d, r)
    })");
  EXPECT_THAT(first_reason(run_pass(no_epsilon, "fuse_layer_normalization")),
              AllOf(HasSubstr("'x' is float16"), HasSubstr("float32")));
}

TEST(FuseLayerNormalization, LeavesOtherRootsWithoutAWord) {
  Model model = graph("a = Abs (x) r = Sqrt (a) y = Add (x, r)");
  const PassOutcome outcome = run_pass(model, "fuse_layer_normalization");
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_THAT(outcome.skipped, IsEmpty());
}

// The chain over a width that inference cannot know, with a scale: its size must not be guessed.
TEST(FuseLayerNormalization, AnUnknownWidth) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,W] x) => (float[2,W] y) <float eps = {0.001}, float[1] s = {2}> {
      m = ReduceMean <axes = [-1]> (x)  d = Sub (x, m)  q = Mul (d, d)
      v = ReduceMean <axes = [-1]> (q)  e = Add (v, eps)  r = Sqrt (e)
      n = Div (d, r)  y = Mul (n, s)
    })");
  EXPECT_THAT(first_reason(run_pass(model, "fuse_layer_normalization")),
              HasSubstr("how many elements a scale of ones must have"));
}

}  // namespace
}  // namespace tenonnx
