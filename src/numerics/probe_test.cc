// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/probe.h"

#include <onnx/onnx_pb.h>

#include <cmath>

#include "flow/compare_for_test.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

// A product that float16 cannot hold (1e5), behind it a Relu that inherits the loss, and a Softmax
// that has nothing to do with either.
constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 8] x) => (float[2, 8] y, float[2, 8] s) <float k = {1000}> {
  m = Mul(x, k)
  y = Relu(m)
  s = Softmax <axis = -1>(x)
})";

class Probe : public CompareFixture {
 protected:
  ProbeOptions asking(PieceSelection selection) {
    make_device();
    ProbeOptions made;
    Model model = parse_model(kModel);
    const std::vector<std::string> names = {"/a/scale", "/a/relu", "/b/softmax"};
    for (int i = 0; i < 3; ++i)
      model.mutable_proto().mutable_graph()->mutable_node(i)->set_name(
          names[static_cast<std::size_t>(i)]);
    const std::filesystem::path path = temporary_.path() / "a.onnx";
    EXPECT_TRUE(model.save(path).ok());
    made.common = options(path, {{"x", uniform({2, 8}, 90, 100, 1)}});
    made.common.on = "sim:toy16";
    made.selection = std::move(selection);
    return made;
  }
};

TEST_F(Probe, AnErrorIsThatOfTheNodeAlone) {
  const auto mul = probe(asking({.node = "/a/scale"}));
  ASSERT_TRUE(mul.ok()) << mul.status().message();
  ASSERT_EQ(mul->pieces.size(), 1U);
  EXPECT_EQ(mul->pieces[0].outputs[0].profile.lost(), 16);  // all of them beyond 65504
  EXPECT_TRUE(std::isinf(mul->pieces[0].ratio()));
  const auto relu = probe(asking({.op = "Relu"}));
  ASSERT_TRUE(relu.ok()) << relu.status().message();
  // Fed with the reference's 1e5 it loses them too: its input cannot be stored. Said by its label.
  EXPECT_EQ(relu->pieces[0].piece.label, "Relu '/a/relu'");
  EXPECT_EQ(relu->pieces[0].piece.inputs, std::vector<std::string>{"m"});
}

TEST_F(Probe, TheSumOfASoftmaxBesideItsOwnRounding) {
  const auto result = probe(asking({.op = "Softmax"}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  const ProbedOutput& output = result->pieces.at(0).outputs.at(0);
  ASSERT_TRUE(output.softmax_sum.has_value());
  EXPECT_LT(*output.softmax_sum, 0.01);
  EXPECT_GT(*output.softmax_baseline, 0);
  EXPECT_THAT(describe(*result), HasSubstr("largest |sum - 1| along its axis"));
  EXPECT_EQ(to_json(*result)["pieces"][0]["outputs"][0]["tensor"], "s");
}

// Roots of negative numbers are NaN on both sides, and integers are not rounded: no error of 0.
TEST_F(Probe, WhereNothingCanBeComparedItSaysSo) {
  ProbeOptions options = asking({.op = "Sqrt"});
  options.common.reference = save("nan.onnx", R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2, 8] x) => (float[2, 8] y, int64[2, 1] i) {
      m = Neg(x)
      y = Sqrt(m)
      i = ArgMax <axis = 1>(x)
    })");
  const auto root = probe(options);
  ASSERT_TRUE(root.ok()) << root.status().message();
  EXPECT_FALSE(root->compared());
  EXPECT_EQ(root->pieces.at(0).outputs.at(0).profile.not_finite(), 16);
  EXPECT_THAT(describe(*root), HasSubstr("INCONCLUSIVE: nothing was compared"));
  EXPECT_THAT(describe(*root),
              HasSubstr("'y': 16 of 16 elements are Inf or NaN in the reference and left out"));
  const Json json = to_json(*root);
  EXPECT_EQ(json["compared"], false);
  EXPECT_TRUE(json["pieces"][0]["ratio"].is_null());
  EXPECT_TRUE(json["pieces"][0]["outputs"][0]["rms"].is_null());
  options.selection = {.op = "ArgMax"};
  const auto index = probe(options);
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_FALSE(index->compared());
  EXPECT_THAT(describe(*index), HasSubstr("not compared"));
  options.selection = {.op = "Neg"};
  const auto negated = probe(options);
  ASSERT_TRUE(negated.ok()) << negated.status().message();
  EXPECT_TRUE(negated->compared());
  EXPECT_EQ(to_json(*negated)["pieces"][0]["outputs"][0]["not_finite"], 0);
}

TEST_F(Probe, ABlockIsOnePiece) {
  const auto result = probe(asking({.block = "/a"}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->pieces.size(), 1U);
  EXPECT_EQ(result->pieces[0].piece.nodes.size(), 2U);
  EXPECT_EQ(result->pieces[0].piece.inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(result->pieces[0].piece.outputs, std::vector<std::string>{"y"});
}

// As `inject --at` takes a tensor.
TEST_F(Probe, ANodeByWhatItMakesOrByTheEndOfAName) {
  const auto label = [&](const std::string& node) {
    const auto result = probe(asking({.node = node}));
    return result.ok() ? result->pieces.at(0).piece.label : result.status().message();
  };
  EXPECT_EQ(label("m"), "Mul '/a/scale'");
  EXPECT_EQ(label("relu"), "Relu '/a/relu'");
  EXPECT_EQ(label("b/softmax"), "Softmax '/b/softmax'");
  EXPECT_THAT(label("x"), HasSubstr("'x' is an input or a constant of the model"));
}

TEST_F(Probe, Errors) {
  const auto message = [&](PieceSelection selection) {
    const auto result = probe(asking(std::move(selection)));
    return result.ok() ? std::string("no error") : result.status().message();
  };
  EXPECT_THAT(message({}), HasSubstr("give one of --node NAME, --op TYPE and --block NAME"));
  EXPECT_THAT(message({.node = "/a/relu", .op = "Relu"}), HasSubstr("(2 are given)"));
  EXPECT_THAT(message({.node = "/a/rulu"}),
              HasSubstr("the model has no node '/a/rulu'; near it: '/a/relu'"));
  EXPECT_THAT(message({.op = "Erf"}), HasSubstr("the model has no operator 'Erf'"));
  EXPECT_THAT(message({.block = "/c"}), HasSubstr("the model has no block '/c'"));
  ProbeOptions recorded = asking({.op = "Relu"});
  recorded.common.on =
      "files:" + save("r.npz", {{"y", floats({2, 8}, std::vector<float>(16))}}).string();
  const auto result = probe(recorded);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), HasSubstr("cannot run a node on its own"));
}

}  // namespace
}  // namespace tenonnx
