// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/fusion_test_support.h"
#include "passes/grid_sample_test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Model spelled(int opset, const std::string& attributes) {
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : {}]> g (float[2,3,5,7] v, float[2,6,11,2] p) => "
      "(float[2,3,6,11] y) {{ y = GridSample {} (v, p) }}",
      opset, attributes));
}

std::string mode_of(const Model& model) {
  return attribute_or(model.proto().graph().node(0), "mode", "");
}

TEST(NormalizeGridSample, SpellsAsTheOpsetDoes) {
  const struct {
    int opset;
    const char *wrong, *right;
  } cases[] = {{16, "linear", "bilinear"},
               {19, "cubic", "bicubic"},
               {20, "bilinear", "linear"},
               {22, "bicubic", "cubic"}};
  const TensorMap inputs = {{"v", ramp({2, 3, 5, 7})}, {"p", probe_grid({}, false)}};
  for (const auto& c : cases) {
    Model model = spelled(c.opset, fmt::format("<mode = \"{}\">", c.wrong));
    const PassOutcome outcome = run_pass(model, "normalize_grid_sample");
    ASSERT_EQ(outcome.applied, 1) << c.opset;
    EXPECT_EQ(mode_of(model), c.right);
    EXPECT_THAT(outcome.sites[0].what,
                AllOf(HasSubstr(fmt::format("mode '{}' becomes '{}'", c.wrong, c.right)),
                      HasSubstr("ONNX Runtime rejects the model")));
    // ONNX Runtime takes it now, and computes what it does for the same mode written by hand.
    const Model hand = spelled(c.opset, fmt::format("<mode = \"{}\">", c.right));
    expect_identical(run_on_cpu(hand, inputs), run_on_cpu(model, inputs));
    EXPECT_EQ(run_pass(model, "normalize_grid_sample").applied, 0);
  }
}

// The claim about ONNX Runtime in the head: the wrong spelling does not load.
TEST(NormalizeGridSample, OnnxRuntimeRejectsTheWrongSpelling) {
  for (const int opset : {17, 20}) {
    const Model model =
        spelled(opset, opset < 20 ? "<mode = \"linear\">" : "<mode = \"bilinear\">");
    EXPECT_FALSE(make_cpu_executor()->load(model, {}).ok()) << opset;
  }
}

TEST(NormalizeGridSample, LeavesWhatIsRightAndSaysWhoMisreadsIt) {
  for (const char* attributes : {"", "<mode = \"bilinear\">", "<mode = \"nearest\">"}) {
    Model model = spelled(17, attributes);
    const PassOutcome outcome = run_pass(model, "normalize_grid_sample");
    EXPECT_EQ(outcome.applied, 0);
    EXPECT_TRUE(outcome.skipped.empty()) << first_reason(outcome);
  }
  for (const char* attributes : {"", "<mode = \"nearest\">"}) {
    Model model = spelled(20, attributes);
    EXPECT_TRUE(run_pass(model, "normalize_grid_sample").skipped.empty());
  }
  Model model = spelled(20, "<mode = \"linear\">");
  const PassOutcome outcome = run_pass(model, "normalize_grid_sample");
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_THAT(first_reason(outcome),
              AllOf(HasSubstr("'linear' is right for opset 20"), HasSubstr("TensorRT"),
                    HasSubstr("nearest pixel"), HasSubstr("OpenVINO"), HasSubstr("target=19"),
                    Not(HasSubstr("ONNX Runtime"))));
}

TEST(NormalizeGridSample, CapitalsCountAsSmallLetters) {
  for (const auto& [opset, wrong, right] : {std::tuple(17, "Bilinear", "bilinear"),
                                            {20, "Bilinear", "linear"},
                                            {20, "NEAREST", "nearest"}}) {
    Model model = spelled(opset, fmt::format("<mode = \"{}\">", wrong));
    const PassOutcome outcome = run_pass(model, "normalize_grid_sample");
    EXPECT_EQ(outcome.applied, 1) << wrong;
    EXPECT_EQ(mode_of(model), right);
    // What it has just mended is no site that it left.
    EXPECT_TRUE(outcome.skipped.empty()) << first_reason(outcome);
    EXPECT_TRUE(make_cpu_executor()->load(model, {}).ok());
  }
}

TEST(NormalizeGridSample, RefusesAModeThatNoOpsetHas) {
  Model model = spelled(17, "<mode = \"lanczos\">");
  model.mutable_proto().mutable_graph()->mutable_node(0)->set_name("k7");
  const PassOutcome outcome = run_pass(model, "normalize_grid_sample");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1u);
  EXPECT_THAT(outcome.skipped[0].node, HasSubstr("k7"));
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("no opset has the mode 'lanczos'"));
}

}  // namespace
}  // namespace tenonnx
