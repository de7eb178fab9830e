// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/name_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;
using Map = std::map<std::string, std::string>;

TEST(NameRecord, SurvivesJson) {
  const NameRecord record{{{"a", "b"}}, {{"c", "fuse_gelu"}}};
  const Json json = to_json(record);
  const auto read = name_record_from_json(JsonReader(json, "names"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->renamed, record.renamed);
  EXPECT_EQ(read->removed, record.removed);
}

TEST(NameRecord, RefusesOtherFields) {
  const Json json = {{"renamed", Json::object()}, {"gone", Json::object()}};
  const auto read = name_record_from_json(JsonReader(json, "m.passes.json"));
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.status().message(), HasSubstr("gone"));
}

TEST(NameRecord, JoinsTwoSteps) {
  const NameRecord first{{{"a", "a1"}, {"b", "b1"}, {"c", "c1"}}, {{"d", "p"}}};
  const NameRecord second{{{"a1", "a2"}, {"e", "e2"}, {"c1", "c"}}, {{"b1", "q"}, {"f", "q"}}};
  const NameRecord joined = join(first, second);
  EXPECT_EQ(joined.renamed, (Map{{"a", "a2"}, {"e", "e2"}}));  // c has its own name again
  EXPECT_EQ(joined.removed, (Map{{"b", "q"}, {"d", "p"}, {"f", "q"}}));
}

}  // namespace
}  // namespace tenonnx
