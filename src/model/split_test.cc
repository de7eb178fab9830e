// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "base/json.h"
#include "model/check.h"
#include "model/extract.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names_of(const std::vector<TensorInfo>& infos) {
  std::vector<std::string> names;
  for (const auto& info : infos) names.push_back(info.name);
  return names;
}

constexpr const char* kDetector = R"(<ir_version: 10, opset_import: ["" : 20]>
  g (float[1,4] images, float[1,4] sizes) => (float[1,4] y) {
    [e1] a = Relu (images)
    [e2] f0 = Neg (a)
    [e3] f1 = Abs (a)
    [d1] s = Add (f0, f1)
    [d2] y = Mul (s, sizes) })";

TEST(Split, EachPartHasTheInputsThatItNeeds) {
  auto parts = split(parse_model(kDetector), {"f0", "f1"},
                     {.renames = {{"f0", "feature_0"}, {"f1", "feature_1"}}});
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  EXPECT_THAT(names_of(parts->first.inputs()), ElementsAre("images"));
  EXPECT_THAT(names_of(parts->first.outputs()), ElementsAre("feature_0", "feature_1"));
  EXPECT_THAT(names_of(parts->second.inputs()), ElementsAre("feature_0", "feature_1", "sizes"));
  EXPECT_THAT(names_of(parts->second.outputs()), ElementsAre("y"));
  EXPECT_TRUE(check_model(parts->first, "first").ok());
  EXPECT_TRUE(check_model(parts->second, "second").ok());
}

TEST(Split, ACutThatIsNoSeparatorNamesAWayAround) {
  const Status status = split(parse_model(kDetector), {"f0"}).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              HasSubstr("needs the input 'images' as well, by 'images' -> Relu 'e1' -> Abs 'e3' -> "
                        "Add 'd1' -> Mul 'd2' -> 'y'"));
  const auto parts = split(parse_model(kDetector), {"f0"}, {.allow_shared_inputs = true});
  ASSERT_TRUE(parts.ok());
  EXPECT_THAT(names_of(parts->second.inputs()), ElementsAre("f0", "images", "sizes"));
}

// As exporters leave it where the batch is dynamic: the decoder asks the image for its batch.
TEST(Split, ShapeChainsAroundTheCut) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[n,4] images) => (float[n,2,2] y) <int64[1] zero = {0}, int64[2] two = {2, 2}> {
      [conv] f = Relu (images)
      [shape] s = Shape (images)
      [batch] b = Gather <axis = 0> (s, zero)
      [target] t = Concat <axis = 0> (b, two)
      [reshape] y = Reshape (f, t) })");
  EXPECT_THAT(split(model, {"f"}).status().message(),
              HasSubstr("'images' -> Shape 'shape' -> Gather 'batch' -> Concat 'target' -> Reshape "
                        "'reshape' -> 'y'"));
  EXPECT_TRUE(split(model, {"f", "b"}).ok()) << "with the batch in the cut it is a separator";
}

TEST(Split, TensorsThatCannotBeCut) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
      k = Constant <value = float[2] {1, 2}> ()
      a = Add (x, w)
      b = Mul (a, k)
      dead = Neg (b)
      y = Relu (b) })");
  const auto message = [&](const std::vector<std::string>& cut) {
    return split(model, cut).status().message();
  };
  EXPECT_THAT(message({}), HasSubstr("at least one"));
  EXPECT_THAT(message({"none"}), HasSubstr("'none' is no tensor"));
  EXPECT_THAT(message({"w"}), HasSubstr("'w' is a constant"));
  EXPECT_THAT(message({"k"}), HasSubstr("'k' is a constant"));
  EXPECT_THAT(message({"x"}), HasSubstr("'x' is an input of the model"));
  EXPECT_THAT(message({"b", "dead"}), HasSubstr("nothing behind the cut uses the cut tensor"));
  EXPECT_THAT(message({"a", "b"}), HasSubstr("nothing behind the cut uses the cut tensor 'a'"));
  EXPECT_EQ(message({"b"}), "");
}

TEST(Split, TheExampleAtItsFeatures) {
  const std::filesystem::path models =
      std::filesystem::path(TENONNX_TEST_SOURCE_DIR) / "examples/models";
  const auto contract = read_json_file(models / "shapes_deimv2.contract.json");
  ASSERT_TRUE(contract.ok());
  const auto cut = contract->at("cut").get<std::vector<std::string>>();
  const auto model = Model::load(models / "shapes_deimv2.onnx");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto parts = split(*model, cut);
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  EXPECT_THAT(names_of(parts->first.inputs()), ElementsAre("images"));
  EXPECT_EQ(names_of(parts->first.outputs()), cut);
  EXPECT_EQ(names_of(parts->second.outputs()), names_of(model->outputs()));
  EXPECT_EQ(parts->second.inputs().back().name, "orig_target_sizes");
  // Every node is in one part, or is a constant that both sides share.
  const int whole = model->proto().graph().node_size();
  const int sum =
      parts->first.proto().graph().node_size() + parts->second.proto().graph().node_size();
  EXPECT_GE(sum, whole - 50);
  EXPECT_LE(sum, whole + 200);
  for (const auto& info : parts->first.outputs()) {
    EXPECT_EQ(info.dtype, DType::kFloat32);
    EXPECT_EQ(info.shape.size(), 4u) << info.name;
  }
}

}  // namespace
}  // namespace tenonnx
