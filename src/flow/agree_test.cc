// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/agree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/half.h"
#include "base/status.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Agree, StepsAreThoseOfFloat16) {
  // Neighbours of float16 are one step apart, subnormal, normal and largest.
  for (const std::uint16_t bits : {0x0001, 0x03ff, 0x0400, 0x3c00, 0x7bfe})
    EXPECT_EQ(
        half_steps(float16_to_float(bits), float16_to_float(static_cast<std::uint16_t>(bits + 1))),
        1)
        << bits;
  EXPECT_EQ(half_steps(0, 0), 0);
  EXPECT_EQ(half_steps(131008, 131072 - 128), 1) << "beyond 65504 a step is 64";
  EXPECT_EQ(half_steps(-1, 1), 2048);
}

AgreeOptions options(std::vector<std::string> only) {
  AgreeOptions out;
  out.on = "sim:htp-v73";
  out.against = "sim:htp-v73";
  out.only = std::move(only);
  out.load.intra_op_threads = 1;
  return out;
}

TEST(Agree, ADeviceAgreesWithItself) {
  const auto result = agree(options({"MatMul", "Softmax"}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->not_run.empty());
  ASSERT_FALSE(result->cases.empty());
  for (const Agreement& one : result->cases) {
    EXPECT_EQ(one.share(), 1) << one.name << " " << one.range;
    EXPECT_EQ(one.worst, 0);
  }
}

// The pack can tell arithmetics apart: rounding once is half a step at most, another one is more.
TEST(Agree, FindsAnotherArithmetic) {
  AgreeOptions o = options({"Relu", "Mul"});
  o.against = "cpu";
  const auto result = agree(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const auto find = [&](const char* name, const char* range) {
    return *std::find_if(result->cases.begin(), result->cases.end(), [&](const Agreement& one) {
      return one.name == name && one.range == range;
    });
  };
  EXPECT_EQ(find("Relu", "normal").share(), 1);
  EXPECT_GT(find("Relu", "normal").worst, 0.4) << "an input rounded to float16";
  EXPECT_LT(find("Mul", "beyond 65504").share(), 0.9) << "saturation at 131008";
}

TEST(Agree, EveryGraphOfThePackRuns) {
  const auto result = agree(options({}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  for (const auto& [name, why] : result->not_run) ADD_FAILURE() << name << ": " << why;
  EXPECT_GT(result->cases.size(), 100U);
}

TEST(Agree, SaysWhatItCannotDo) {
  EXPECT_THAT(agree(options({"MatMull"})).status().message(),
              AllOf(HasSubstr("--only 'MatMull'"), HasSubstr("'MatMul'")));
  AgreeOptions o = options({"Relu"});
  o.on = "qnn:arch=73";
  EXPECT_THAT(agree(o).status().message(), HasSubstr("'soc' is missing"));
  o = options({"Relu", "Neg", "Abs"});
  o.budget_seconds = 1e-9;
  const auto none = agree(o);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->cases.empty());
  ASSERT_EQ(none->not_run.size(), 3U);
  EXPECT_EQ(none->not_run[0].second, "the budget was used up");
}

}  // namespace
}  // namespace tenonnx
