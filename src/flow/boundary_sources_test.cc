// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/boundary_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "flow/deploy.h"
#include "flow/verify.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// u and v have one shape and other values; w has another shape.
constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[2,2] x) => (float[2,2] y) {
    u = Relu (x)
    v = Neg (x)
    w = Flatten <axis = 0> (u)
    s = Add (u, v)
    y = Sigmoid (s) })";

Tensor values(std::vector<std::int64_t> shape, const std::vector<float>& numbers) {
  return Tensor::from<float>(DType::kFloat32, std::move(shape), numbers);
}

Check check(const BoundarySources::Names& names, const TensorMap& crossed,
            const std::set<std::string>& selected = {}, bool by_value = true) {
  const Model model = parse_model(kModel);
  auto sources = BoundarySources::load(model, names, {});
  EXPECT_TRUE(sources.ok()) << sources.status().message();
  const auto own = sources->run({{"x", values({2, 2}, {1, -2, 3, -4})}});
  EXPECT_TRUE(own.ok()) << own.status().message();
  EXPECT_TRUE(sources->compare(*own, crossed, selected, by_value).ok());
  return sources->check();
}

const Tensor kU = values({2, 2}, {1, 0, 3, 0}), kV = values({2, 2}, {-1, 2, -3, 4});

TEST(BoundarySources, RightNamesPass) {
  const Check right = check({{"a", "u"}, {"b", "v"}}, {{"a", kU}, {"b", kV}});
  EXPECT_EQ(right.verdict, Verdict::kPass);
  EXPECT_EQ(right.value, 0);
}

TEST(BoundarySources, ExchangedNamesFail) {
  const Check wrong = check({{"a", "v"}, {"b", "u"}}, {{"a", kU}, {"b", kV}});
  EXPECT_EQ(wrong.verdict, Verdict::kFail);
  EXPECT_EQ(wrong.value, 2);
  EXPECT_THAT(wrong.note, AllOf(HasSubstr("'a' is not 'v': the cosine with the model's tensor is"),
                                HasSubstr("'b' is not 'u'")));
  // What a selection has ordered is not compared by element, and a device rounds.
  EXPECT_EQ(check({{"a", "v"}}, {{"a", kU}}, {"a"}).verdict, Verdict::kPass);
  EXPECT_EQ(check({{"a", "v"}}, {{"a", kU}}, {}, false).verdict, Verdict::kPass);
}

TEST(BoundarySources, AnotherShapeFails) {
  const Check wrong = check({{"a", "w"}}, {{"a", kU}}, {}, false);
  EXPECT_EQ(wrong.verdict, Verdict::kFail);
  EXPECT_THAT(wrong.note, HasSubstr("it is float32 [2,2], the model's tensor float32 [1,4]"));
}

TEST(BoundarySources, ATensorThatTheModelHasNotIsInconclusive) {
  const Check missing = check({{"a", "/no/such/tensor"}}, {{"a", kU}});
  EXPECT_EQ(missing.verdict, Verdict::kInconclusive);
  EXPECT_THAT(missing.note,
              HasSubstr("'a' is said to be '/no/such/tensor', which the source model has not"));
  const Check both = check({{"a", "/no/such/tensor"}, {"b", "u"}}, {{"a", kU}, {"b", kV}});
  EXPECT_EQ(both.verdict, Verdict::kFail) << "a wrong one weighs more than one that is missing";
}

// The example's three features have three shapes; its two deepest are exchanged for others of one.
TEST(BoundarySources, VerifyProvesWhatAManifestSays) {
  const TemporaryDirectory dir;
  const fs::path package = dir.path() / "p";
  const fs::path examples = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples" / "models";
  DeployOptions options;
  options.model = examples / "shapes_deimv2.onnx";
  options.out = package;
  options.random_inputs = 1;
  const auto deployed = deploy(options);
  ASSERT_TRUE(deployed.ok()) << deployed.status().message();
  const auto named = [](const std::vector<Check>& checks) {
    for (const Check& check : checks)
      if (check.name == "boundaries that are not their source tensors") return check;
    return Check();
  };
  EXPECT_EQ(named(deployed->proof.checks).verdict, Verdict::kPass);
  const Json original = *read_json_file(package / "manifest.json");
  const auto verify_with = [&](std::size_t boundary, const std::string& source) {
    Json json = original;
    json["boundaries"][boundary]["source"] = source;
    json["contract"]["cut"][boundary] = source;
    EXPECT_TRUE(write_json_file(package / "manifest.json", json).ok());
    VerifyOptions verify_options;
    verify_options.package = package;
    return verify(verify_options);
  };
  ASSERT_TRUE(verify_with(0, original["boundaries"][0]["source"]).ok());
  // The contract's cut has them too: a manifest must not contradict itself.
  Json json = original;
  json["boundaries"][1]["source"] = original["boundaries"][2]["source"];
  ASSERT_TRUE(write_json_file(package / "manifest.json", json).ok());
  VerifyOptions verify_options;
  verify_options.package = package;
  const auto refused = verify(verify_options);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), AllOf(HasSubstr("the boundaries' source tensors are"),
                                                HasSubstr("but the contract's cut is")));
}

}  // namespace
}  // namespace tenonnx
