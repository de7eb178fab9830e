// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// replace_ms_deform_attn on every full-size export: raw, optimised, and under other names in
// another order; and the proof of what it does to the raw one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "cut/scramble_for_test.h"
#include "exports_for_test.h"
#include "passes/proof.h"
#include "passes/runner.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kPass = "replace_ms_deform_attn";

// Of the architectures: decoder layers, with Deformable DETR's three of the encoder, and what they
// sample. `noun`: some exports write their sampling with Gather.
struct Expected {
  const char* name;
  int layers, levels;
  const char* points;
  const char* noun = "GridSample";
};
constexpr const char* kWritten = "samplings written with Gather";
constexpr Expected kExpected[] = {
    {"deformable_detr_r18", 6, 4, "4, 4, 4, 4"},
    {"deformable_detr_r18_single", 6, 4, "4, 4, 4, 4"},
    {"deimv2_n", 3, 2, "6, 6"},
    {"deimv2_s", 4, 3, "3, 6, 3"},
    {"deimv2_s_gather", 4, 3, "3, 6, 3", kWritten},
    {"deimv2_s_transformers", 4, 3, "3, 6, 3"},
    {"dfine_n", 3, 2, "6, 6"},
    {"dfine_s", 3, 3, "3, 6, 3"},
    {"rtdetr_r18", 3, 3, "4, 4, 4"},
    {"rtdetrv2_r18", 3, 3, "4, 4, 4"},
    {"rtdetrv2_r18_discrete", 3, 3, "4, 4, 4", kWritten},
};

int count_of(const Model& model, const char* op_type) {
  int count = 0;
  for (const auto& node : model.proto().graph().node()) count += node.op_type() == op_type;
  return count;
}

Model optimised(const Model& model) {
  std::vector<std::string> names;
  for (const PassInfo& pass : all_passes())
    if (pass.stage == PassStage::kOptimize || pass.name == "fold_constants")
      names.emplace_back(pass.name);
  Model result = model.clone();
  const auto reports = run_passes(result, names, {});
  EXPECT_TRUE(reports.ok()) << reports.status().message();
  return result;
}

PassOutcome replace(Model& model) {
  const std::vector<std::string> names = {kPass};
  auto reports = run_passes(model, names, {});
  EXPECT_TRUE(reports.ok()) << reports.status().message();
  return reports.ok() ? reports->front().outcome : PassOutcome();
}

void expect_all(const Model& before, const Expected& expected) {
  Model model = before.clone();
  const PassOutcome outcome = replace(model);
  EXPECT_EQ(outcome.applied, expected.layers);
  EXPECT_THAT(outcome.skipped, IsEmpty()) << outcome.skipped.front().reason;
  EXPECT_EQ(count_of(before, "GridSample"),
            expected.noun == kWritten ? 0 : expected.layers * expected.levels);
  EXPECT_EQ(count_of(model, "GridSample"), 0);
  EXPECT_EQ(count_of(model, "MSDeformAttn"), expected.layers);
  for (const Site& site : outcome.sites)
    EXPECT_THAT(site.what, HasSubstr(std::string(" of ") + expected.points + " points"));
  EXPECT_EQ(outcome.total,
            fmt::format("{} layers x {} levels = {} {}", expected.layers, expected.levels,
                        expected.layers * expected.levels, expected.noun));
  // Each layer loses the Transposes of its locations, weights and output.
  EXPECT_LE(count_of(model, "Transpose") + 3 * expected.layers, count_of(before, "Transpose"));
}

const Expected* expected_of(const fs::path& path) {
  for (const Expected& expected : kExpected)
    for (const char* exporter : {"_640_ts.onnx", "_640_dynamo.onnx"})
      if (path.filename() == std::string(expected.name) + exporter) return &expected;
  return nullptr;
}

std::vector<fs::path> exports() {
  std::vector<fs::path> paths = all_exports();
  std::erase_if(paths, [](const fs::path& path) { return expected_of(path) == nullptr; });
  return paths;
}

TEST(MsDeformAttnExportsSlow, AllLayersAreFoundWhateverTheForm) {
  const auto paths = exports();
  if (paths.empty()) GTEST_SKIP() << kNoExports;
  for (const fs::path& path : paths) {
    const Expected& expected = *expected_of(path);
    const auto model = Model::load(path);
    ASSERT_TRUE(model.ok()) << model.status().message();
    for (const bool optimise : {false, true}) {
      const Model form = optimise ? optimised(*model) : model->clone();
      SCOPED_TRACE(path.filename().string() + (optimise ? ", optimised" : ", raw"));
      expect_all(form, expected);
      SCOPED_TRACE("under other names");
      expect_all(scramble(form, 1).model, expected);
    }
  }
}

TEST(MsDeformAttnExportsSlow, EveryReplacementIsProved) {
  const auto paths = exports();
  if (paths.empty()) GTEST_SKIP() << kNoExports;
  const auto executor = make_cpu_executor();
  for (const fs::path& path : paths) {
    SCOPED_TRACE(path.filename().string());
    auto before = Model::load(path);
    ASSERT_TRUE(before.ok()) << before.status().message();
    // Folded: the pass is proved, not the folding of a raw export's shapes.
    const std::vector<std::string> fold = {"fold_constants"};
    ASSERT_TRUE(run_passes(*before, fold, {}).ok());
    Model after = before->clone();
    const PassOutcome outcome = replace(after);
    const TensorMap inputs = random_inputs_of(*before);
    const ProofData data = proof_data_of(inputs);
    const auto pass = find_pass(kPass);
    ASSERT_TRUE(pass.ok());
    const auto proof = PassProver(*executor, data, {}).prove(**pass, *before, after, outcome);
    ASSERT_TRUE(proof.ok()) << proof.status().message();
    EXPECT_EQ(proof->verdict, Verdict::kPass)
        << (proof->failures.empty()
                ? ""
                : proof->failures.front().input + ": " + proof->failures.front().check.name);
    // Layers that sample one value share its reading: they are one region.
    EXPECT_GE(proof->regions, 1);
    EXPECT_GT(proof->made_inputs, 0);
  }
}

}  // namespace
}  // namespace tenonnx
