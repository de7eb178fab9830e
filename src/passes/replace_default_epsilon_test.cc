// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include "passes/fusion_test_support.h"

namespace tenonnx {
namespace {

TEST(ReplaceDefaultEpsilon, WritesItWhereItIsMissing) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4] x) => (float[2,4] y) <float[4] s = {1, 2, 3, 4}, float[4] o = {1, 1, 1, 1}> {
      a = LayerNormalization (x, s)
      b = LayerNormalization <epsilon = 0.1> (a, s)
      y = BatchNormalization (b, s, s, s, o)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "replace_default_epsilon");
  EXPECT_EQ(outcome.applied, 2);
  EXPECT_EQ(attribute_or(model.proto().graph().node(0), "epsilon", 0.0F), 1e-5F);
  EXPECT_EQ(attribute_or(model.proto().graph().node(1), "epsilon", 0.0F), 0.1F);
  EXPECT_EQ(attribute_or(model.proto().graph().node(2), "epsilon", 0.0F), 1e-5F);
  const TensorMap inputs = {{"x", ramp({2, 4})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
  EXPECT_EQ(run_pass(model, "replace_default_epsilon").applied, 0);
}

TEST(ReplaceDefaultEpsilon, InBodiesToo) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (bool c, float[2,4] x, float[4] s) => (float[2,4] y) {
      y = If (c) <then_branch = t () => (float[2,4] p) { p = LayerNormalization (x, s) },
                  else_branch = e () => (float[2,4] n) { n = Neg (x) }>
    })");
  EXPECT_EQ(run_pass(model, "replace_default_epsilon").applied, 1);
}

// The pass writes 1e-5 for all: every version of every operator of that name has this default, and
// no other operator has an epsilon with a default.
TEST(ReplaceDefaultEpsilon, TheDefaultIsTheOneOfOnnx) {
  std::set<std::string> with_default;
  for (const auto& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    const auto it = schema.attributes().find("epsilon");
    if (!schema.domain().empty() || it == schema.attributes().end() || it->second.required)
      continue;
    EXPECT_EQ(it->second.default_value.f(), 1e-5F) << schema.Name();
    with_default.insert(schema.Name());
  }
  EXPECT_THAT(with_default, testing::ElementsAre("BatchNormalization", "GroupNormalization",
                                                 "InstanceNormalization", "LayerNormalization",
                                                 "RMSNormalization"));
}

}  // namespace
}  // namespace tenonnx
