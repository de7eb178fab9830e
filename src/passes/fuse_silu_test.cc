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

Model graph(const std::string& body, int opset = 24) {
  return model_from_text(
      fmt::format("<ir_version: 11, opset_import: [\"\" : {}]> "
                  "g (float[2,16] x) => (float[2,16] y) "
                  "<float a = {{1.5}}> {{ {} }}",
                  opset, body));
}

TEST(FuseSilu, EveryOrderAndAlpha) {
  for (const auto& [body, alpha] : std::vector<std::pair<std::string, float>>{
           {"s = Sigmoid (x) y = Mul (x, s)", 1.0F},
           {"s = Sigmoid (x) y = Mul (s, x)", 1.0F},
           {"k = Mul (x, a) s = Sigmoid (k) y = Mul (x, s)", 1.5F},
           {"k = Mul (a, x) s = Sigmoid (k) y = Mul (s, x)", 1.5F},
           {"n = Cast <to = 1> (x) s = Sigmoid (n) y = Mul (x, s)", 1.0F}}) {
    Model model = graph(body);
    const Model before = model.clone();
    EXPECT_EQ(run_pass(model, "fuse_silu").applied, 1) << body;
    ASSERT_THAT(op_types(model), ElementsAre("Swish")) << body;
    EXPECT_EQ(attribute_or(model.proto().graph().node(0), "alpha", 1.0F), alpha);
    expect_within_noise(before, model, {{"x", ramp({2, 16})}});
  }
}

TEST(FuseSilu, LeavesGatesOfOtherTensors) {
  Model model = graph("n = Neg (x) s = Sigmoid (n) y = Mul (x, s)");
  const PassOutcome outcome = run_pass(model, "fuse_silu");
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_THAT(outcome.skipped, IsEmpty());
}

TEST(FuseSilu, RefusesAGateThatIsUsedAndOtherOpsets) {
  Model used = graph("s = Sigmoid (x) m = Mul (x, s) y = Add (m, s)");
  EXPECT_THAT(first_reason(run_pass(used, "fuse_silu")), HasSubstr("'s' is used by Add"));
  Model old = graph("s = Sigmoid (x) y = Mul (x, s)", 17);
  EXPECT_THAT(first_reason(run_pass(old, "fuse_silu")),
              AllOf(HasSubstr("Swish came with opset 24"), HasSubstr("convert_opset")));
  Model newer = graph("s = Sigmoid (x) y = Mul (x, s)", 25);
  EXPECT_THAT(first_reason(run_pass(newer, "fuse_silu")),
              HasSubstr("ONNX Runtime 1.29 runs Swish at opset 24 alone"));
}

// What the refusal above rests on: where a later ONNX Runtime runs it, the refusal can go.
TEST(FuseSilu, OnnxRuntimeDoesNotRunSwishAtOpset25) {
  Model model = graph("y = Swish (x)", 25);
  LoadOptions options;
  options.optimization = Optimization::kDisabled;
  EXPECT_FALSE(make_cpu_executor()->load(model, options).ok());
}

TEST(FuseSilu, FindsAllOfTheExample) {
  Model model = folded_example();
  const PassOutcome outcome = run_pass(model, "fuse_silu");
  EXPECT_EQ(outcome.skipped.size(), 36U);
  EXPECT_THAT(first_reason(outcome), HasSubstr("convert_opset"));
}

}  // namespace
}  // namespace tenonnx
