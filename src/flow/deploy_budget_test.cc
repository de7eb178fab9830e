// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What deploy does where its runs on the device are limited: on the simulator, which keeps nothing
// of what it has computed. With the vendor's emulator, which does: tests/vendor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_directory.h"
#include "eval/shapes.h"
#include "flow/deploy.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DeployBudget : public ::testing::Test {
 protected:
  DeployBudget() {
    // Without its contract: the whole graph first, then the automatic cut.
    const fs::path models = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples" / "models";
    fs::copy_file(models / "shapes_deimv2_fragile.onnx", dir_.path() / "m.onnx");
    fs::create_directory(dir_.path() / "images");
    for (const std::uint64_t seed : {1'000'000, 1'000'001}) {
      const ShapesImage image = make_shapes_image(seed);
      std::ofstream(dir_.path() / "images" / (std::to_string(seed) + ".ppm"), std::ios::binary)
          << "P6 160 160 255\n"
          << std::string(image.rgb.begin(), image.rgb.end());
    }
  }
  DeployResult deployed(std::size_t budget, const std::string& cut = "") {
    DeployOptions options;
    options.model = dir_.path() / "m.onnx";
    options.target = "sim-htp";
    options.images = dir_.path() / "images";
    options.out = dir_.path() / "package";
    options.force = true;
    options.cut = cut;
    options.budget = budget;
    auto result = deploy(options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(*result) : DeployResult();
  }
  static const Check* budget_check(const DeployResult& result) {
    const auto& checks = result.proof.checks;
    const auto found = std::find_if(checks.begin(), checks.end(),
                                    [](const Check& check) { return check.name == kBudgetCheck; });
    return found == checks.end() ? nullptr : &*found;
  }
  TemporaryDirectory dir_;
};

// The first image fails the whole graph, which is decided by it; of the cut nothing could be run.
TEST_F(DeployBudget, SaysWhatIsDecidedAndWhatItTakes) {
  const DeployResult result = deployed(1);
  EXPECT_EQ(result.manifest.verdict, "INCONCLUSIVE") << describe(result);
  ASSERT_EQ(result.tried.size(), 2U) << describe(result);
  EXPECT_EQ(result.tried[0].verdict, "FAIL");
  EXPECT_THAT(result.tried[0].stopped, HasSubstr("when 1 of 2 inputs had been compared"));
  EXPECT_EQ(result.tried[1].verdict, "INCONCLUSIVE");
  EXPECT_THAT(result.tried[1].stopped, HasSubstr("when 0 of 2 inputs had been compared"));
  ASSERT_NE(budget_check(result), nullptr);
  EXPECT_EQ(budget_check(result)->verdict, Verdict::kInconclusive);
  EXPECT_EQ(result.runs.used(), 1U);
  EXPECT_THAT(describe(result),
              AllOf(HasSubstr("1 run on the device; budget 1"), HasSubstr("THE BUDGET WAS USED UP"),
                    HasSubstr("decided:   FAIL: whole graph (nothing names a cut)"),
                    HasSubstr("undecided: automatic cut (features)"),
                    HasSubstr("deploy again with --budget 6 or more")));
  const Json json = to_json(result);
  EXPECT_EQ(json["device_runs"]["used_up"], true);
  EXPECT_EQ(json["device_runs"]["needed"], 6);
  EXPECT_EQ(json["manifest"]["settings"]["budget"], 1);
  // Whole, and no better than what was proved.
  const auto package = read_package(dir_.path() / "package");
  ASSERT_TRUE(package.ok()) << package.status().message();
  EXPECT_EQ(package->verdict, "INCONCLUSIVE");
  EXPECT_EQ(package->segments.size(), 2U);
  EXPECT_EQ(package->stages[3].status, "not run");

  // What it asked for is enough, and no more than what it takes without a limit.
  const DeployResult enough = deployed(result.budget_needed);
  EXPECT_EQ(budget_check(enough), nullptr) << describe(enough);
  EXPECT_NE(enough.manifest.verdict, "FAIL") << describe(enough);
  EXPECT_EQ(enough.budget_needed, 0U);
  EXPECT_THAT(describe(enough), Not(HasSubstr("USED UP")));
  const DeployResult unlimited = deployed(0);
  EXPECT_EQ(unlimited.runs.used(), result.budget_needed);
  EXPECT_EQ(unlimited.manifest.verdict, enough.manifest.verdict);
}

// All images pass, and the run that shows where the nodes ran is left.
TEST_F(DeployBudget, PlacementIsARunToo) {
  const DeployResult result = deployed(2, "auto");
  EXPECT_EQ(result.manifest.verdict, "INCONCLUSIVE") << describe(result);
  EXPECT_TRUE(result.proof.placement.empty());
  ASSERT_NE(budget_check(result), nullptr);
  EXPECT_THAT(budget_check(result)->note, HasSubstr("before the run that shows where"));
  EXPECT_EQ(result.budget_needed, 3U);
  const auto package = read_package(dir_.path() / "package");
  ASSERT_TRUE(package.ok()) << package.status().message();
  EXPECT_EQ(deployed(3, "auto").budget_needed, 0U);
}

// A gate that an image fails stays failed, however many were not compared.
TEST_F(DeployBudget, AFailureIsFinal) {
  const DeployResult result = deployed(1, "none");
  EXPECT_EQ(result.manifest.verdict, "FAIL") << describe(result);
  EXPECT_EQ(result.budget_needed, 0U);
  EXPECT_THAT(describe(result), HasSubstr("FAIL by 1 of 2 inputs"));
}

TEST_F(DeployBudget, OnTheCpuThereIsNothingToCount) {
  DeployOptions options;
  options.model = dir_.path() / "m.onnx";
  options.out = dir_.path() / "package";
  options.images = dir_.path() / "images";
  options.budget = 1;
  const auto result = deploy(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->manifest.verdict, "PASS") << describe(*result);
  EXPECT_EQ(result->runs.used(), 0U);
}

}  // namespace
}  // namespace tenonnx
