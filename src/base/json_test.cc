// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

TEST(Json, KeepsOrderAndSurvivesTheWayToTextAndBack) {
  const auto parsed = parse_json(R"({"z": 1, "a": [1.5, "x", true, null]})", "t");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->begin().key(), "z");
  const std::string text = dump_json(*parsed);
  EXPECT_EQ(text,
            "{\n  \"z\": 1,\n  \"a\": [\n    1.5,\n    \"x\",\n    true,\n    null\n  ]\n}\n");
  EXPECT_EQ(*parse_json(text, "t"), *parsed);
}

TEST(Json, ErrorsNameLineAndColumn) {
  const Status status = parse_json("{\n  \"a\": x }", "manifest.json").status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("manifest.json: "));
  EXPECT_THAT(status.message(), HasSubstr("line 2, column 8"));
}

TEST(Json, RefusesDuplicateKeysDepthAndHugeNumbers) {
  EXPECT_THAT(parse_json(R"({"file": "a", "file": "b"})", "m").status().message(),
              HasSubstr("the key \"file\" stands twice"));
  EXPECT_TRUE(parse_json(R"([{"file": "a"}, {"file": "b"}])", "m").ok());
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_json(nested(64), "m").ok());
  EXPECT_THAT(parse_json(nested(65), "m").status().message(), HasSubstr("deeper than 64"));
  EXPECT_THAT(parse_json(std::string(1000000, '['), "m").status().message(),
              HasSubstr("deeper than 64"));
  EXPECT_FALSE(parse_json("1e999", "m").ok());
  EXPECT_FALSE(parse_json("", "m").ok());
  EXPECT_FALSE(parse_json("{} x", "m").ok());
  EXPECT_FALSE(parse_json("\"\xff\"", "m").ok());
}

TEST(Json, NonFiniteNumbersAreNamed) {
  Json value;
  value["a"] = {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                std::nan(""), 0.1};
  const auto back = parse_json(dump_json(value), "t");
  ASSERT_TRUE(back.ok());
  const auto items = JsonReader((*back)["a"], "t").items();
  EXPECT_EQ(*(*items)[0].number(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(*(*items)[1].number(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(*(*items)[2].number()));
  EXPECT_EQ(*(*items)[3].number(), 0.1);
}

TEST(Json, DumpingBytesThatAreNotUtf8DoesNotThrow) {
  EXPECT_THAT(dump_json(Json("a\xff")), HasSubstr("a"));
}

TEST(JsonReader, ErrorsNameThePath) {
  const auto json = parse_json(R"({"segments": [{"file": 3.5, "n": 18446744073709551615}]})", "m");
  const JsonReader root(*json, "manifest.json");
  const auto segments = root.at("segments")->items();
  ASSERT_TRUE(segments.ok());
  const JsonReader& first = segments->front();
  EXPECT_EQ(first.string("file").status().message(),
            "manifest.json: /segments/0/file: expected a string, got a number");
  EXPECT_EQ(first.string("sha256").status().message(),
            "manifest.json: /segments/0: the field \"sha256\" is missing");
  EXPECT_EQ(root.string("file").status().message(), "manifest.json: the field \"file\" is missing");
  EXPECT_EQ(first.integer("file").status().message(),
            "manifest.json: /segments/0/file: expected an integer, got a number");
  EXPECT_THAT(first.integer("n").status().message(), HasSubstr("beyond int64"));
  EXPECT_EQ(first.only({"file", "sha256"}).message(),
            "manifest.json: /segments/0: unknown field \"n\"; allowed: file, sha256");
  EXPECT_TRUE(first.only({"file", "n"}).ok());
}

TEST(JsonReader, FallbacksStandForMissingFieldsOnly) {
  const auto json = parse_json(R"({"i": 7, "s": "x", "b": true})", "m");
  const JsonReader root(*json, "m");
  EXPECT_EQ(*root.integer_or("i", 1), 7);
  EXPECT_EQ(*root.integer_or("j", 1), 1);
  EXPECT_EQ(*root.string_or("t", "y"), "y");
  EXPECT_EQ(*root.number_or("i", 0.5), 7.0);
  EXPECT_TRUE(*root.boolean_or("b", false));
  EXPECT_FALSE(root.integer_or("s", 1).ok());
  EXPECT_FALSE(JsonReader(*parse_json("[]", "m"), "m").integer_or("s", 1).ok());
}

}  // namespace
}  // namespace tenonnx
