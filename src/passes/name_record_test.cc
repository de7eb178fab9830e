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
  const NameRecord record{{{"a", "b"}}, {{"c", "fuse_gelu"}}, {{"d", {"d_moved", {0, 2, 1}}}}};
  const Json json = to_json(record);
  const auto read = name_record_from_json(JsonReader(json, "names"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->renamed, record.renamed);
  EXPECT_EQ(read->removed, record.removed);
  EXPECT_EQ(read->moved, record.moved);
}

TEST(NameRecord, ReadsFilesWithoutMovedTensors) {
  const Json json = {{"renamed", Json::object()}, {"removed", Json::object()}};
  const auto read = name_record_from_json(JsonReader(json, "names"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read->moved.empty());
}

TEST(NameRecord, RefusesWhatIsNoPermutation) {
  for (const Json& perm : {Json::array(), Json({0, 2}), Json({0, 0, 1}), Json({-1, 0})}) {
    const Json json = {{"renamed", Json::object()},
                       {"removed", Json::object()},
                       {"moved", {{"d", {{"name", "e"}, {"perm", perm}}}}}};
    const auto read = name_record_from_json(JsonReader(json, "m.passes.json"));
    ASSERT_FALSE(read.ok()) << perm;
    EXPECT_THAT(read.status().message(), HasSubstr("not every axis from 0 once")) << perm;
  }
}

TEST(NameRecord, RefusesOtherFields) {
  const Json json = {{"renamed", Json::object()}, {"gone", Json::object()}};
  const auto read = name_record_from_json(JsonReader(json, "m.passes.json"));
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.status().message(), HasSubstr("gone"));
}

TEST(NameRecord, JoinsTwoSteps) {
  const NameRecord first{{{"a", "a1"}, {"b", "b1"}, {"c", "c1"}}, {{"d", "p"}}, {}};
  const NameRecord second{{{"a1", "a2"}, {"e", "e2"}, {"c1", "c"}}, {{"b1", "q"}, {"f", "q"}}, {}};
  const NameRecord joined = join(first, second);
  EXPECT_EQ(joined.renamed, (Map{{"a", "a2"}, {"e", "e2"}}));  // c has its own name again
  EXPECT_EQ(joined.removed, (Map{{"b", "q"}, {"d", "p"}, {"f", "q"}}));
}

TEST(NameRecord, JoinsLayouts) {
  using Moved = std::map<std::string, MovedTensor>;
  // a = Transpose(a1, {0,2,1}), a1 = Transpose(a2, {1,2,0}): axis k of a is axis p of a2 with
  // p = {1,2,0}[{0,2,1}[k]] = {1,0,2}.
  const NameRecord first{{{"r", "r1"}},
                         {},
                         {{"a", {"a1", {0, 2, 1}}},
                          {"b", {"b1", {1, 0}}},
                          {"c", {"c1", {1, 0}}},
                          {"d", {"d1", {1, 0}}}}};
  const NameRecord second{{{"b1", "b2"}},
                          {{"c1", "q"}},
                          {{"a1", {"a2", {1, 2, 0}}},
                           {"d1", {"d2", {1, 0}}},
                           {"r1", {"r2", {1, 0}}},
                           {"e", {"e2", {1, 0}}}}};
  const NameRecord joined = join(first, second);
  EXPECT_EQ(joined.moved, (Moved{{"a", {"a2", {1, 0, 2}}},
                                 {"b", {"b2", {1, 0}}},
                                 {"e", {"e2", {1, 0}}},
                                 {"r", {"r2", {1, 0}}}}));
  EXPECT_EQ(joined.renamed, (Map{{"d", "d2"}}));  // moved there and back
  EXPECT_EQ(joined.removed, (Map{{"c", "q"}}));
}

TEST(NameRecord, OfAPassHasWhatItMoved) {
  const NameRecord record = record_of({"a", "b", "c"}, {"c", "a_moved"}, {}, "sink",
                                      {{"a", {"a_moved", {1, 0}}}, {"c", {"c_moved", {1, 0}}}});
  EXPECT_EQ(record.moved.size(), 1u);  // c is still there
  EXPECT_EQ(record.removed, (Map{{"b", "sink"}}));
}

}  // namespace
}  // namespace tenonnx
