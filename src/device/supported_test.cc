// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "device/supported.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

Json whole_rule() {
  return {{"operators", {"GridSample", "Resize"}},
          {"dtypes", {"float32"}},
          {"min_opset", 16},
          {"max_opset", 20},
          {"max_rank", 4},
          {"max_elements", 1000},
          {"constant_inputs", {1}},
          {"attributes", {{"mode", {"bilinear", "nearest"}}, {"align_corners", {"0"}}}},
          {"source", "a measurement"},
          {"checked", "2026-11"}};
}

std::vector<SupportRule> rules_of(const Json& json) {
  const auto rules = supported_from_json(JsonReader(json, "toy.json: /supported"));
  EXPECT_TRUE(rules.ok()) << rules.status().message();
  return rules.ok() ? *rules : std::vector<SupportRule>();
}

NodeFacts whole_node() {
  NodeFacts node;
  node.op_type = "GridSample";
  node.opset = 17;
  node.inputs = {{"x", false, true, DType::kFloat32, {1, 2, 8, 8}},
                 {"grid", true, true, DType::kFloat32, {1, 4, 4, 2}}};
  node.outputs = {{"y", false, true, DType::kFloat32, {1, 2, 4, 4}}};
  node.attribute = [](std::string_view) { return std::nullopt; };
  return node;
}

TEST(FindSupport, TakesWhatFits) {
  const auto rules = rules_of(Json::array({whole_rule()}));
  const Support support = find_support(rules, whole_node());
  EXPECT_EQ(support.rule, rules.data()) << support.why_not;
  EXPECT_FALSE(rules[0].on_host);
}

struct Misfit {
  const char* why;
  void (*change)(NodeFacts&);
};

TEST(FindSupport, SaysWhatDoesNotFit) {
  const auto rules = rules_of(Json::array({whole_rule()}));
  const std::vector<Misfit> misfits = {
      {"Det is not among the device's operators", [](NodeFacts& n) { n.op_type = "Det"; }},
      {"com.acme.GridSample is not among", [](NodeFacts& n) { n.domain = "com.acme"; }},
      {"opset 15 is outside of 16 to 20", [](NodeFacts& n) { n.opset = 15; }},
      {"opset 21 is outside of 16 to 20", [](NodeFacts& n) { n.opset = 21; }},
      {"it holds other graphs", [](NodeFacts& n) { n.has_bodies = true; }},
      {"input 1 ('grid') is computed", [](NodeFacts& n) { n.inputs[1].constant = false; }},
      {"'x' is float64", [](NodeFacts& n) { n.inputs[0].dtype = DType::kFloat64; }},
      {"'y' is int64", [](NodeFacts& n) { n.outputs[0].dtype = DType::kInt64; }},
      {"'x' has rank 5, above 4",
       [](NodeFacts& n) {
         n.inputs[0].shape = {1, 1, 1, 1, 1};
       }},
      {"'x' has 1001 elements, above 1000",
       [](NodeFacts& n) {
         n.inputs[0].shape = {7, 143};
       }},
      {"'x' has no static shape", [](NodeFacts& n) { n.inputs[0].shape[0] = -1; }},
      {"'x' has no static shape: unknown", [](NodeFacts& n) { n.inputs[0].has_rank = false; }},
      {"mode is 'bicubic', not 'bilinear', 'nearest'",
       [](NodeFacts& n) {
         n.attribute = [](std::string_view name) {
           return name == "mode" ? std::optional<std::string>("bicubic") : std::nullopt;
         };
       }},
      {"align_corners is '1', not '0'", [](NodeFacts& n) {
         n.attribute = [](std::string_view name) {
           return name == "align_corners" ? std::optional<std::string>("1") : std::nullopt;
         };
       }}};
  for (const Misfit& misfit : misfits) {
    NodeFacts node = whole_node();
    misfit.change(node);
    const Support support = find_support(rules, node);
    EXPECT_EQ(support.rule, nullptr) << misfit.why;
    EXPECT_THAT(support.why_not, HasSubstr(misfit.why));
  }
}

TEST(FindSupport, ASecondRuleMayTakeIt) {
  Json host = whole_rule();
  host["backend"] = "host";
  host["max_rank"] = 6;
  const auto rules = rules_of(Json::array({whole_rule(), host}));
  NodeFacts node = whole_node();
  node.inputs[0].shape = {1, 1, 2, 8, 8};
  const Support support = find_support(rules, node);
  ASSERT_NE(support.rule, nullptr) << support.why_not;
  EXPECT_TRUE(support.rule->on_host);
}

struct BadField {
  const char* key;
  Json value;
  const char* message;
};

TEST(SupportedFromJson, BadFieldsAreNamed) {
  const std::vector<BadField> cases = {
      {"operators", Json::array(), "/0/operators: expected at least one entry"},
      {"operators", {""}, "/0/operators/0: expected text"},
      {"dtypes", {"float17"}, "float17"},
      {"backend", "gpu", "/0/backend: expected 'device' or 'host', got 'gpu'"},
      {"max_rank", 0, "/0/max_rank: expected 1 or more, got 0"},
      {"max_opset", 12, "/0/max_opset: expected at least 16"},
      {"constant_inputs", {-1}, "position of an input"},
      {"attributes", {{"mode", Json::array()}}, "/0/attributes/mode"},
      {"checked", "yesterday", "/0/checked"},
      {"max_ranks", 4, "max_ranks"}};
  for (const BadField& bad : cases) {
    Json rule = whole_rule();
    rule[bad.key] = bad.value;
    const Json json = Json::array({rule});
    const auto rules = supported_from_json(JsonReader(json, "toy.json: /supported"));
    EXPECT_THAT(rules.status().message(), HasSubstr(bad.message));
  }
  const Json none = Json::array();
  EXPECT_THAT(supported_from_json(JsonReader(none, "toy.json: /supported")).status().message(),
              HasSubstr("at least one rule"));
}

}  // namespace
}  // namespace tenonnx
