// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/agree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/half.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "model/text.h"

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

// Sin on a device of another arithmetic is below 99 %, and htp-v73.json says why HTP's would be.
TEST(Agree, GivesTheReasonOfTheDeviceFile) {
  AgreeOptions o = options({"Sin", "Add"});
  o.on = "cpu";
  const auto result = agree(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  int reasons = 0;
  for (const Agreement& one : result->cases) {
    EXPECT_TRUE(one.reason.empty() || (one.op_type == "Sin" && one.share() < 0.99)) << one.name;
    reasons += one.reason.empty() ? 0 : 1;
  }
  EXPECT_GT(reasons, 0);
  EXPECT_THAT(describe(*result), AllOf(HasSubstr("why not more"), HasSubstr("range reduction")));
}

TEST(Agree, PutsTheCasesOfAnOperatorTogether) {
  AgreeResult result;
  result.on = "exec:toy";
  result.date = "2026-11-30";
  result.versions = {{"tool", "1"}, {"device file", "toy.json sha256 00"}};
  Agreement a{"MatMul", "MatMul, K = 16", "normal"}, b{"MatMul", "MatMul, K = 64", "normal"};
  a.elements = 100, a.within = 100, a.bias = 0.1, a.worst = 1;
  b.elements = 300, b.within = 150, b.bias = -0.1, b.worst = 7;
  result.cases = {a, b, {"Relu", "Relu", "normal", 10, 10}};
  const MeasuredAgreement measured = measured_agreement(result);
  ASSERT_EQ(measured.operators.size(), 2U);
  const OperatorAgreement& one = measured.operators[0];
  EXPECT_EQ(one.op_type, "MatMul");
  EXPECT_EQ(one.cases, 2);
  EXPECT_EQ(one.good, 1);
  EXPECT_EQ(one.elements, 400);
  EXPECT_EQ(one.within, 250);
  EXPECT_NEAR(one.bias, -0.05, 1e-12);
  EXPECT_EQ(one.worst, 7);
  EXPECT_EQ(measured.versions.size(), 1U) << "the file's own hash changes by being written";
}

// Every tensor of a model, a GELU's inside left out; the cpu differs by the rounding alone.
TEST(Agree, TensorByTensor) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "toy.onnx";
  const auto model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,64] x) => (float[1,64] z) <float r = {1.4142135}, float one = {1}, float half = {0.5}> {
      t = Tanh (x) d = Div (t, r) e = Erf (d) a = Add (e, one) m = Mul (t, a) y = Mul (m, half)
      z = Relu (y)
    })");
  ASSERT_TRUE(model.ok() && model->save(file).ok());
  CompareOptions feed;
  feed.reference = file;
  AgreeOptions o = options({});
  const auto same = agree_on_model(o, feed);
  ASSERT_TRUE(same.ok()) << same.status().message();
  EXPECT_TRUE(same->not_run.empty());
  ASSERT_EQ(same->cases.size(), 3U) << describe(*same);
  for (const Agreement& one : same->cases) EXPECT_EQ(one.worst, 0) << one.name;
  EXPECT_EQ(same->cases[1].name, "y");
  EXPECT_EQ(same->cases[1].elements, 2 * 64) << "two random inputs";
  o.on = "cpu";
  const auto other = agree_on_model(o, feed);
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_GT(other->cases[0].worst, 0.2) << "a rounding is up to half a step";
  EXPECT_EQ(other->model, "toy.onnx");
  EXPECT_THAT(to_json(*other)["inputs"].get<std::string>(), HasSubstr("2 random inputs"));

  // Alone, and from the same inputs, Relu of the device changes nothing; it only moves values.
  o.own = true;
  const auto own = agree_on_model(o, feed);
  ASSERT_TRUE(own.ok()) << own.status().message();
  EXPECT_TRUE(own->not_run.empty());
  ASSERT_EQ(own->cases.size(), 2U) << describe(*own);
  EXPECT_EQ(own->cases[1].op_type, "Gelu");
  EXPECT_EQ(own->cases[1].elements, 2 * 64);

  o.only = {"Relu"};
  EXPECT_THAT(agree_on_model(o, feed).status().message(), HasSubstr("--only and --write"));
}

TEST(Agree, WritesTheWholePackOnly) {
  AgreeOptions o = options({"Relu"});
  o.write = "nowhere.json";
  EXPECT_THAT(agree(o).status().message(),
              AllOf(HasSubstr("the whole pack"), HasSubstr("'nowhere.json'")));
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
