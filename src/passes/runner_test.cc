// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

const fs::path kSource = TENONNX_TEST_SOURCE_DIR;

constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[N,4] x) => (float[N,4] y) { y = Relu (x) })";

TEST(PassTable, EveryPassHasItsFiles) {
  for (const PassInfo& pass : all_passes()) {
    for (const char* end : {".cc", "_test.cc"}) {
      const fs::path file = kSource / "src/passes" / (std::string(pass.name) + end);
      EXPECT_TRUE(fs::exists(file)) << file;
    }
  }
}

TEST(PassTable, NamesAreUniqueAndBeginWithAVerb) {
  std::set<std::string_view> names;
  for (const PassInfo& pass : all_passes()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    const std::string_view verb = pass.name.substr(0, pass.name.find('_'));
    EXPECT_TRUE(
        (std::set<std::string_view>{"fix",         "fold",      "fuse",   "decompose", "eliminate",
                                    "deduplicate", "merge",     "cancel", "sink",      "move",
                                    "replace",     "convert",   "narrow", "collapse",  "quantize",
                                    "sim",         "normalize", "tile",   "prune",     "hoist"})
            .contains(verb))
        << pass.name;
    EXPECT_FALSE(pass.summary.empty()) << pass.name;
    EXPECT_LE(pass.min_opset, pass.max_opset) << pass.name;
    EXPECT_LE(pass.max_opset, kMaxOpset) << pass.name;
  }
}

TEST(PassTable, RunOrderFollowsTheStages) {
  PassStage last = PassStage::kPrepare;
  for (const PassInfo& pass : all_passes()) {
    EXPECT_GE(pass.stage, last) << pass.name;
    last = pass.stage;
  }
}

TEST(PassTable, TheCommittedPageIsTheGeneratedOne) {
  const fs::path file = kSource / "docs/reference/passes.md";
  if (std::getenv("TENONNX_WRITE_DOCS") != nullptr) {  // tools/gen_docs
    ASSERT_TRUE(write_file_atomic(file, passes_page()).ok());
  }
  const auto page = read_file(file);
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_EQ(*page, passes_page()) << "run tools/gen_docs";
}

TEST(FindPass, NamesTheNearest) {
  EXPECT_TRUE(find_pass("fold_constants").ok());
  const Status status = find_pass("fold_constant").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("no pass 'fold_constant'"),
                                      HasSubstr("nearest names: 'fold_constants'")));
}

TEST(RunPasses, RunsInTheOrderOfTheTable) {
  Model model = model_from_text(kModel);
  const std::vector<std::string> names = {"sim_float16", "fold_constants", "fix_input_shapes",
                                          "fold_constants"};
  const auto reports = run_passes(model, names, {{"x", "2x4"}});
  ASSERT_TRUE(reports.ok()) << reports.status().message();
  ASSERT_EQ(reports->size(), 3u);
  EXPECT_EQ((*reports)[0].name, "fix_input_shapes");
  EXPECT_EQ((*reports)[1].name, "fold_constants");
  EXPECT_EQ((*reports)[2].name, "sim_float16");
  EXPECT_EQ(model.inputs()[0].shape, (Shape{2, 4}));
}

TEST(RunPasses, AFailureLeavesTheModelAsItWas) {
  Model model = model_from_text(kModel);
  const std::vector<std::string> names = {"fix_input_shapes", "sim_float16"};
  const auto reports = run_passes(model, names, {{"x", "2x4"}, {"sim_float16.device", "cpu"}});
  EXPECT_THAT(reports.status().message(), AllOf(HasSubstr("pass sim_float16"), HasSubstr("'cpu'")));
  EXPECT_EQ(model.inputs()[0].shape, (Shape{-1, 4}));
}

TEST(RunPasses, OptionsThatBelongToNoPassAreErrors) {
  Model model = model_from_text(kModel);
  const std::vector<std::string> fold = {"fold_constants"};
  for (const char* option : {"max_bytes", "fold_constant.max_bytes", "sim_float16.device"}) {
    const Status status = run_passes(model, fold, {{option, "1"}}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << option;
    EXPECT_THAT(status.message(), HasSubstr(option));
  }
  const Status status = run_passes(model, fold, {{"fold_constants.limit", "1"}}).status();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("unknown option 'limit'"), HasSubstr("max_bytes")));
  // The pass is named once.
  EXPECT_TRUE(status.message().starts_with("pass fold_constants: unknown option"))
      << status.message();
}

TEST(RunPasses, RefusesAnOpsetOutsideTheRange) {
  Model model = unchecked_model_from_text(R"(<ir_version: 3, opset_import: ["" : 6]>
    g (float[4] x) => (float[4] y) { y = Relu (x) })");
  const std::vector<std::string> names = {"fold_constants"};
  const Status status = run_passes(model, names, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("fold_constants"), HasSubstr("7 to 26"), HasSubstr("imports 6")));
}

// A branch has an initializer of an outer tensor's name: whoever rewires a captured name into it
// would read the branch's.
TEST(RunPasses, ANameThatABranchShadowsIsNotMixedUp) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x, bool c) => (float[2] y) <float[2] w1 = {1, 2}, float[2] w2 = {1, 2}> {
      a = Add (x, w1)
      y = If (c) <then_branch = t () => (float[2] p)
                    <float[2] w1 = {50, 60}> { q = Mul (w1, w2)  p = Add (a, q) },
                  else_branch = e () => (float[2] r) { r = Sub (a, w2) }>
    })");
  const Model before = model.clone();
  run_pass(model, "deduplicate_initializers");
  for (const std::uint8_t taken : {0, 1}) {
    const TensorMap inputs = {{"x", ramp({2})},
                              {"c", Tensor::from<std::uint8_t>(DType::kBool, {}, {taken})}};
    expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
  }
}

}  // namespace
}  // namespace tenonnx
