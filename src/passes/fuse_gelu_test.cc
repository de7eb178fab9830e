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

constexpr const char* kConstants =
    "<float half = {0.5}, float one = {1}, float two = {2}, float three = {3}, "
    "float r = {1.4142135}, float ir = {0.70710678}, float t = {0.79788456}, float c = {0.044715}, "
    "float[1] quarter = {0.25}, float[1,1] half2 = {0.5}, float bad = {0.7979}, float bad_cubic = "
    "{0.0447}>";

Model graph(const std::string& body, int opset = 20, const std::string& type = "float") {
  return model_from_text(
      fmt::format("<ir_version: 9, opset_import: [\"\" : {}]> "
                  "g ({}[2,3,16] x) => ({}[2,3,16] y) {} {{ {} }}",
                  opset, type, type, kConstants, body));
}

class FuseGeluForms : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(FuseGeluForms, BecomeOneGelu) {
  const auto [approximate, body] = GetParam();
  Model model = graph(body);
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "fuse_gelu");
  EXPECT_EQ(outcome.applied, 1) << body << first_reason(outcome);
  ASSERT_THAT(op_types(model), ElementsAre("Gelu")) << body;
  const onnx::NodeProto& node = model.proto().graph().node(0);
  EXPECT_EQ(attribute_or(node, "approximate", "none"), approximate);
  EXPECT_EQ(node.input(0), "x");
  EXPECT_EQ(model.proto().graph().initializer_size(), 0);
  expect_within_noise(before, model, {{"x", ramp({2, 3, 16})}});
}

INSTANTIATE_TEST_SUITE_P(
    Orders, FuseGeluForms,
    testing::Values(
        // Of PyTorch: x first, 0.5 last.
        std::pair{"none",
                  "a = Div (x, r) e = Erf (a) s = Add (e, one) p = Mul (x, s) y = Mul (p, half)"},
        std::pair{"none",
                  "a = Mul (x, ir) e = Erf (a) s = Add (one, e) p = Mul (s, x) y = Mul (half, p)"},
        std::pair{"none",
                  "h = Mul (x, half) a = Div (x, r) e = Erf (a) s = Add (e, one) y = Mul (h, s)"},
        std::pair{"none",
                  "h = Div (x, two) a = Div (x, r) e = Erf (a) s = Add (e, one) y = Mul (s, h)"},
        std::pair{"none",
                  "a = Div (x, r) e = Erf (a) s = Add (e, one) p = Mul (s, half2) y = Mul (x, p)"},
        std::pair{"none",
                  "a = Div (x, r) e = Erf (a) s = Add (e, one) p = Mul (s, x) y = Div (p, two)"},
        std::pair{"none",
                  "a = Div (x, r) e = Erf (a) h = Mul (e, half) s = Add (h, half) y = Mul (x, s)"},
        std::pair{"none",
                  "n = Cast <to = 1> (x) a = Div (n, r) e = Erf (a) s = Add (e, one) "
                  "p = Mul (n, s) y = Mul (p, half)"},
        std::pair{"tanh",
                  "q = Pow (x, three) k = Mul (q, c) i = Add (x, k) a = Mul (i, t) e = Tanh (a) "
                  "s = Add (e, one) p = Mul (x, s) y = Mul (p, half)"},
        std::pair{"tanh",
                  "h = Mul (half, x) q = Mul (x, x) w = Mul (q, x) k = Mul (c, w) i = Add (k, x) "
                  "a = Mul (t, i) e = Tanh (a) s = Add (one, e) y = Mul (h, s)"},
        std::pair{"tanh",
                  "q = Mul (x, x) k = Mul (q, c) i = Add (k, one) w = Mul (x, t) a = Mul (w, i) "
                  "e = Tanh (a) s = Add (e, one) p = Mul (s, half) y = Mul (p, x)"}));

TEST(FuseGelu, RefusesWrongConstants) {
  for (const auto& [body, reason] : std::vector<std::pair<std::string, std::string>>{
           {"a = Div (x, r) e = Erf (a) s = Add (e, one) p = Mul (x, s) y = Mul (p, quarter)",
            "the factor of x (1 + Erf) is not 0.5"},
           {"a = Mul (x, bad) e = Erf (a) s = Add (e, one) p = Mul (x, s) y = Mul (p, half)",
            "the argument of Erf is not x / sqrt(2)"},
           {"a = Div (x, r) e = Erf (a) s = Add (e, two) p = Mul (x, s) y = Mul (p, half)",
            "adds 2 to 1 times Erf"},
           {"q = Pow (x, three) k = Mul (q, c) i = Add (x, k) a = Mul (i, bad) e = Tanh (a) "
            "s = Add (e, one) p = Mul (x, s) y = Mul (p, half)",
            "the argument of Tanh is not sqrt(2/pi)"},
           {"q = Pow (x, three) k = Mul (q, bad_cubic) i = Add (x, k) a = Mul (i, t) "
            "e = Tanh (a) s = Add (e, one) p = Mul (x, s) y = Mul (p, half)",
            "the argument of Tanh is not sqrt(2/pi)"}}) {
    Model model = graph(body);
    const PassOutcome outcome = run_pass(model, "fuse_gelu");
    EXPECT_EQ(outcome.applied, 0) << body;
    EXPECT_THAT(first_reason(outcome), HasSubstr(reason)) << body;
  }
}

TEST(FuseGelu, LeavesOtherUsesOfErfAndTanhAloneWithoutAWord) {
  Model model = graph("e = Erf (x) t2 = Tanh (x) s = Add (e, x) p = Mul (t2, s) y = Mul (p, half)");
  const PassOutcome outcome = run_pass(model, "fuse_gelu");
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_TRUE(outcome.skipped.empty()) << first_reason(outcome);
}

TEST(FuseGelu, RefusesAnInsideThatIsUsed) {
  Model model = model_from_text(R"(<ir_version: 9, opset_import: ["" : 20]>
    g (float[4] x) => (float[4] y, float[4] e, float[4] n)
    <float r = {1.4142135}, float one = {1}, float half = {0.5}> {
      a = Div (x, r)  e = Erf (a)  s = Add (e, one)  p = Mul (x, s)  y = Mul (p, half)
      a2 = Div (x, r)  e2 = Erf (a2)  s2 = Add (e2, one)  p2 = Mul (x, s2)  y2 = Mul (p2, half)
      m = Add (y2, a2)  n = Neg (m)
    })");
  const PassOutcome outcome = run_pass(model, "fuse_gelu");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);  // of the first, the Erf is an output: no chain begins
  EXPECT_THAT(outcome.skipped[0].reason, AllOf(HasSubstr("'a2' is used by"), HasSubstr("Add")));
}

TEST(FuseGelu, RefusesAnOlderOpsetAndFloat16) {
  const std::string body =
      "a = Div (x, r) e = Erf (a) s = Add (e, one) p = Mul (x, s) y = Mul (p, half)";
  Model old = graph(body, 17);
  EXPECT_THAT(first_reason(run_pass(old, "fuse_gelu")),
              AllOf(HasSubstr("Gelu came with opset 20"), HasSubstr("imports 17"),
                    HasSubstr("convert_opset")));
  EXPECT_EQ(op_types(old).size(), 5U);
  // The text form takes float16 as bits: sqrt(2), 1, 0.5.
  Model half = model_from_text(R"(<ir_version: 9, opset_import: ["" : 20]>
    g (float16[4] x) => (float16[4] y)
    <float16 r = {15784}, float16 one = {15360}, float16 half = {14336}> {
      a = Div (x, r)  e = Erf (a)  s = Add (e, one)  p = Mul (x, s)  y = Mul (p, half)
    })");
  EXPECT_THAT(first_reason(run_pass(half, "fuse_gelu")), HasSubstr("'a' is float16"));
  EXPECT_EQ(op_types(half).size(), 5U);
}

TEST(FuseGelu, FindsTheOneOfTheExample) {
  Model model = folded_example();
  const PassOutcome outcome = run_pass(model, "fuse_gelu");
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("convert_opset"));
}

}  // namespace
}  // namespace tenonnx
