// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

TEST(Check, BoundBelongsToThePassingSide) {
  EXPECT_EQ(make_check("c", 0.99, Comparison::kAtLeast, {0.99, "g"}).verdict, Verdict::kPass);
  EXPECT_EQ(make_check("c", std::nextafter(0.99, 0), Comparison::kAtLeast, {0.99, "g"}).verdict,
            Verdict::kFail);
  EXPECT_EQ(make_check("c", 0.05, Comparison::kAtMost, {0.05, "g"}).verdict, Verdict::kPass);
  EXPECT_EQ(make_check("c", std::nextafter(0.05, 1), Comparison::kAtMost, {0.05, "g"}).verdict,
            Verdict::kFail);
}

TEST(Check, InfiniteErrorFails) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(make_check("c", inf, Comparison::kAtMost, {1, "g"}).verdict, Verdict::kFail);
}

TEST(Check, NaNIsNeverAPass) {
  const double nan = std::nan("");
  for (Comparison comparison : {Comparison::kAtLeast, Comparison::kAtMost}) {
    EXPECT_EQ(make_check("c", nan, comparison, {0, "g"}).verdict, Verdict::kInconclusive);
    EXPECT_EQ(make_check("c", 0, comparison, {nan, "g"}).verdict, Verdict::kInconclusive);
  }
  EXPECT_THAT(make_check("c", nan, Comparison::kAtMost, {0, "g"}).note, HasSubstr("measured"));
  EXPECT_EQ(inconclusive_check("c", "why").verdict, Verdict::kInconclusive);
}

TEST(Verdict, FailureOutweighsIgnoranceOutweighsPass) {
  const Check pass = make_check("p", 0, Comparison::kAtMost, {1, "g"});
  const Check fail = make_check("f", 2, Comparison::kAtMost, {1, "g"});
  const Check open = inconclusive_check("i", "missing");
  using List = std::vector<Check>;
  EXPECT_EQ(overall_verdict(List{pass, pass}), Verdict::kPass);
  EXPECT_EQ(overall_verdict(List{pass, open}), Verdict::kInconclusive);
  EXPECT_EQ(overall_verdict(List{open, fail, pass}), Verdict::kFail);
  EXPECT_EQ(overall_verdict(List{}), Verdict::kInconclusive);
}

TEST(Check, TextHasValueLimitAndOrigin) {
  const Check check = make_check("scores cosine", 0.98, Comparison::kAtLeast,
                                 {0.99, "gate of a heterogeneous chain"}, "worst in 'a.png'");
  EXPECT_EQ(to_text(check),
            "scores cosine 0.98 >= 0.99 (gate of a heterogeneous chain): FAIL; worst in 'a.png'");
  EXPECT_EQ(to_text(inconclusive_check("x", "no images")), "x: INCONCLUSIVE; no images");
}

TEST(Check, JsonRoundTripKeepsInfAndNaN) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<Check> checks = {
      make_check("a", inf, Comparison::kAtMost, {1e-7, "floor"}, "note"),
      make_check("b", 0.5, Comparison::kAtLeast, {0.1, "gate"}), inconclusive_check("c", "why")};
  const auto parsed = parse_json(dump_json(to_json(std::span<const Check>(checks))), "text");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const auto back = checks_from_json(JsonReader(*parsed, "checks"));
  ASSERT_TRUE(back.ok()) << back.status().message();
  ASSERT_EQ(back->size(), checks.size());
  for (std::size_t i = 0; i < checks.size(); ++i) {
    EXPECT_EQ(to_text((*back)[i]), to_text(checks[i]));
    EXPECT_EQ((*back)[i].verdict, checks[i].verdict);
  }
  EXPECT_TRUE(std::isnan((*back)[2].value));
}

TEST(Check, JsonErrorsNameFieldAndChoices) {
  Json json = to_json(make_check("a", 1, Comparison::kAtMost, {1, "g"}));
  json["verdict"] = "MAYBE";
  const auto verdict = check_from_json(JsonReader(json, "m.json: /checks/0"));
  ASSERT_FALSE(verdict.ok());
  EXPECT_THAT(verdict.status().message(), HasSubstr("m.json: /checks/0"));
  EXPECT_THAT(verdict.status().message(), HasSubstr("'MAYBE' is none of PASS, FAIL, INCONCLUSIVE"));
  json["verdict"] = "PASS";
  json["comparison"] = "<";
  EXPECT_FALSE(check_from_json(JsonReader(json, "m")).ok());
  json["comparison"] = "<=";
  json["limt"] = 3;
  EXPECT_FALSE(check_from_json(JsonReader(json, "m")).ok());
}

}  // namespace
}  // namespace tenonnx
