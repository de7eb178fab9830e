// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/extract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>

#include "model/check.h"
#include "model/graph.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// The part, which is also sound as a model.
Model part_of(const Model& model, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs, const ExtractOptions& options = {}) {
  auto part = extract(model, inputs, outputs, options);
  EXPECT_TRUE(part.ok()) << part.status().message();
  if (!part.ok()) return {};
  const Status sound = check_model(*part, "part");
  EXPECT_TRUE(sound.ok()) << sound.message();
  return std::move(*part);
}

std::vector<std::string> nodes_of(const Model& model) {
  std::vector<std::string> names;
  for (const auto& node : model.proto().graph().node()) names.push_back(node.name());
  return names;
}

std::vector<std::string> names_of(const std::vector<TensorInfo>& infos) {
  std::vector<std::string> names;
  for (const auto& info : infos) names.push_back(info.name);
  return names;
}

std::vector<std::string> initializers_of(const Model& model) {
  std::vector<std::string> names;
  for (const auto& t : model.proto().graph().initializer()) names.push_back(t.name());
  return names;
}

constexpr const char* kChain = R"(<ir_version: 10, opset_import: ["" : 20]>
  g (float[batch,4] x, float[4] s) => (float[batch,4] y, float[batch,4] z)
  <float[4] w = {1, 2, 3, 4}, float[4] v = {5, 6, 7, 8}, float[4] unused = {0, 0, 0, 0}> {
    [n1] a = Add (x, w)
    [n2] b = Mul (a, s)
    [n3] c = Relu (b)
    [n4] y = Mul (c, v)
    [n5] z = Add (y, w)
  })";

TEST(Extract, TakesWhatIsBetween) {
  const Model model = parse_model(kChain);
  const Model part = part_of(model, {"a", "s"}, {"c"});
  EXPECT_THAT(nodes_of(part), ElementsAre("n2", "n3"));
  EXPECT_THAT(initializers_of(part), IsEmpty());
  EXPECT_EQ(part.inputs()[0].shape, (Shape{-1, 4}));
  EXPECT_EQ(part.proto().graph().input(1).name(), "s");
  EXPECT_EQ(part.outputs()[0].dtype, DType::kFloat32);
  EXPECT_THAT(initializers_of(part_of(model, {"x", "s"}, {"z"})), ElementsAre("w", "v"));
}

TEST(Extract, MissingInputsAreAllListedWithWhoNeedsThem) {
  const Status status = extract(parse_model(kChain), {}, {"c"}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "the part from [] to ['c'] needs 2 more inputs: 'x' (needed by Add 'n1'); 's' (needed "
            "by Mul 'n2')");
  EXPECT_THAT(extract(parse_model(kChain), {"s"}, {"x"}).status().message(),
              HasSubstr("'x' (needed by the outputs themselves)"));
}

TEST(Extract, NamesThatAreWrong) {
  const Model model = parse_model(kChain);
  EXPECT_EQ(extract(model, {"nothing"}, {"c"}).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(extract(model, {"x"}, {"nothing"}).status().message(),
              HasSubstr("the output 'nothing' is no tensor"));
  EXPECT_THAT(extract(model, {"x", "x", "s"}, {"c"}).status().message(), HasSubstr("named twice"));
  EXPECT_FALSE(extract(model, {"x"}, {}).ok());
}

TEST(Extract, AnInitializerAsInput) {
  const Model part = part_of(parse_model(kChain), {"x", "s", "v"}, {"y"});
  EXPECT_THAT(names_of(part.inputs()), ElementsAre("x", "s", "v"));
  EXPECT_EQ(part.inputs()[2].shape, (Shape{4}));
  EXPECT_THAT(initializers_of(part), ElementsAre("w"));
}

TEST(Extract, AGraphOutputAsInput) {
  const Model part = part_of(parse_model(kChain), {"y"}, {"z"});
  EXPECT_THAT(nodes_of(part), ElementsAre("n5"));
  EXPECT_EQ(part.inputs()[0].shape, (Shape{-1, 4}));
}

TEST(Extract, AGraphOutputInsideKeepsItsShape) {
  const Model part = part_of(parse_model(kChain), {"c"}, {"z"});
  ASSERT_EQ(part.proto().graph().value_info_size(), 1);
  EXPECT_EQ(part.proto().graph().value_info(0).name(), "y");
  EXPECT_THAT(names_of(part.outputs()), ElementsAre("z"));
}

TEST(Extract, PassThrough) {
  const Model model = parse_model(kChain);
  Model part = part_of(model, {"y", "c"}, {"y", "z"});
  EXPECT_THAT(names_of(part.inputs()), ElementsAre("y", "c"));
  EXPECT_THAT(names_of(part.outputs()), ElementsAre("y_output", "z"));
  EXPECT_EQ(part.proto().graph().node(1).op_type(), "Identity");
  // Renamed, the input has the new name and the output keeps its own.
  part = part_of(model, {"y"}, {"y", "z"}, {.renames = {{"y", "feature"}}});
  EXPECT_THAT(names_of(part.inputs()), ElementsAre("feature"));
  EXPECT_THAT(names_of(part.outputs()), ElementsAre("y", "z"));
  EXPECT_EQ(part.proto().graph().node(0).input(0), "feature");
}

TEST(Extract, Renames) {
  const Model model = parse_model(kChain);
  const Model part =
      part_of(model, {"a", "s"}, {"c", "b"}, {.renames = {{"a", "in"}, {"c", "b"}, {"b", "c"}}});
  EXPECT_THAT(names_of(part.inputs()), ElementsAre("in", "s"));
  EXPECT_THAT(names_of(part.outputs()), ElementsAre("b", "c")) << "swapped";
  EXPECT_EQ(part.proto().graph().node(1).op_type(), "Relu");
  EXPECT_EQ(part.proto().graph().node(1).output(0), "b");
  // A node may have the name of a tensor.
  EXPECT_EQ(part_of(model, {"a", "s"}, {"c"}, {.renames = {{"a", "n2"}}}).inputs()[0].name, "n2");
  const auto message = [&](std::map<std::string, std::string> renames) {
    return extract(model, {"a", "s"}, {"c"}, {.renames = std::move(renames)}).status().message();
  };
  EXPECT_THAT(message({{"a", "b"}}), HasSubstr("cannot rename 'a' to 'b': that name is taken"));
  EXPECT_THAT(message({{"b", "new"}}), HasSubstr("neither input nor output"));
  EXPECT_THAT(message({{"a", "f"}, {"c", "f"}}), HasSubstr("two boundary tensors"));
  EXPECT_THAT(message({{"a", ""}}), HasSubstr("to nothing"));
}

// The bodies use x, p and w of the main graph. onnx's own extraction loses all three.
constexpr const char* kBranches = R"(<ir_version: 10, opset_import: ["" : 20]>
  g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
    [pre] p = Relu (x)
    [branch] h = If (c) <
      then_branch = t () => (float[2] a) {
        a = If (c) <then_branch = t2 () => (float[2] a2) { a2 = Add (p, w) },
                    else_branch = e2 () => (float[2] b2) { b2 = Neg (x) }> },
      else_branch = e () => (float[2] b) { b = Neg (p) }>
    [post] y = Abs (h)
  })";

TEST(Extract, TensorsCapturedByBodies) {
  const Model model = parse_model(kBranches);
  const Model whole = part_of(model, {"c", "x"}, {"h"});
  EXPECT_THAT(nodes_of(whole), ElementsAre("pre", "branch"));
  EXPECT_THAT(initializers_of(whole), ElementsAre("w"));
  const Model part =
      part_of(model, {"c", "p", "x"}, {"y"}, {.renames = {{"p", "feature"}, {"x", "image"}}});
  EXPECT_THAT(nodes_of(part), ElementsAre("branch", "post"));
  EXPECT_THAT(captured_names(part.proto().graph().node(0)),
              UnorderedElementsAre("c", "feature", "w", "image"));
  EXPECT_THAT(extract(model, {"c", "p"}, {"y"}).status().message(),
              HasSubstr("'x' (needed by If 'branch')"));
}

TEST(Extract, ABoundaryBehindACustomOperator) {
  const char* kText = R"(<ir_version: 10, opset_import: ["" : 20, "com.acme" : 1]>
    g (float[2] x) => (float[2] y) { [warp] a = com.acme.Warp (x) [last] y = Relu (a) })";
  const Model model = parse_model(kText);
  const Status status = extract(model, {"x"}, {"a"}).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("the type of the boundary tensor 'a' is unknown: "
                                          "com.acme.Warp 'warp' does not say it"));
  const ExtractOptions options{.types = {{"a", DType::kFloat32, {-1, 2}}}};
  EXPECT_EQ(part_of(model, {"x"}, {"a"}, options).outputs()[0].shape, (Shape{-1, 2}));
  const Model second = part_of(model, {"a"}, {"y"}, options);
  EXPECT_EQ(second.inputs()[0].dtype, DType::kFloat32);
  EXPECT_EQ(second.opset("com.acme"), 0) << "no longer used";
  // A recorded type serves.
  onnx::ModelProto proto = parse_proto(kText);
  *proto.mutable_graph()->add_value_info() = proto.graph().output(0);
  proto.mutable_graph()->mutable_value_info(0)->set_name("a");
  EXPECT_EQ(part_of(*Model::from_proto(proto), {"a"}, {"y"}).inputs()[0].shape, (Shape{2}));
}

TEST(Extract, TypesThatAreNotRecordedAreInferred) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[3,2] y) { a = Cast <to = 10> (x) y = Transpose (x) })");
  const Model part = part_of(model, {"x"}, {"a"});
  EXPECT_EQ(part.outputs()[0].dtype, DType::kFloat16);
  EXPECT_EQ(part.outputs()[0].shape, (Shape{2, 3}));
}

TEST(Extract, OneOfSeveralOutputsAsInput) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[4] x) => (float[2] y) {
      [split] l, r = Split <num_outputs = 2> (x)
      [add] y = Add (l, r) })");
  const Model part = part_of(model, {"x", "l"}, {"y"});
  EXPECT_THAT(nodes_of(part), ElementsAre("split", "add"));
  EXPECT_EQ(part.proto().graph().node(0).output(0), "l_unused");
  EXPECT_EQ(part.proto().graph().node(1).input(0), "l");
}

TEST(Extract, FunctionsAndDomains) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20, "f" : 1, "h" : 1]>
    g (float[2] x) => (float[2] y) { [a] p = f.outer (x) [b] y = h.other (p) }
    <domain: "f", opset_import: ["" : 20, "f" : 1]> outer (a) => (c) { c = f.inner (a) }
    <domain: "f", opset_import: ["" : 20]> inner (a) => (c) { c = Neg (a) }
    <domain: "h", opset_import: ["" : 20]> other (a) => (c) { c = Abs (a) })");
  const Model first = part_of(model, {"x"}, {"p"}, {.types = {{"p", DType::kFloat32, {2}}}});
  EXPECT_EQ(first.proto().functions_size(), 2);
  EXPECT_EQ(first.opset("f"), 1);
  EXPECT_EQ(first.opset("h"), 0);
  const Model second = part_of(model, {"p"}, {"y"}, {.types = {{"p", DType::kFloat32, {2}}}});
  ASSERT_EQ(second.proto().functions_size(), 1);
  EXPECT_EQ(second.proto().functions(0).name(), "other");
}

TEST(Extract, ConstantsSharedByBothSidesAreInBoth) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x) => (float[2] y) {
      [k] k = Constant <value = float[2] {1, 2}> ()
      [one] a = Add (x, k)
      [two] y = Mul (a, k) })");
  EXPECT_THAT(nodes_of(part_of(model, {"x"}, {"a"})), ElementsAre("k", "one"));
  EXPECT_THAT(nodes_of(part_of(model, {"a"}, {"y"})), ElementsAre("k", "two"));
}

TEST(Extract, BeforeIr4InitializersAreNoInputsOfThePart) {
  onnx::ModelProto proto = parse_proto(kChain);
  proto.set_ir_version(3);
  for (const auto& t : proto.graph().initializer()) {
    auto* input = proto.mutable_graph()->add_input();
    input->set_name(t.name());
    input->mutable_type()->mutable_tensor_type()->set_elem_type(1);
  }
  const auto model = Model::from_proto(proto);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_THAT(names_of(model->inputs()), ElementsAre("x", "s"));
  const Model part = part_of(*model, {"a", "s"}, {"y"});
  EXPECT_EQ(part.proto().graph().input_size(), 2);
  EXPECT_THAT(initializers_of(part), ElementsAre("v"));
  EXPECT_GE(part.ir_version(), 4);
}

TEST(ResolveTensor, NamesAndSuffixes) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[2] images) => (float[2] y) {
      enc_conv_out = Relu (images)
      dec_conv_out = Relu (enc_conv_out)
      conv_out = Relu (dec_conv_out)
      y = Relu (conv_out) })");
  EXPECT_EQ(*resolve_tensor(model, "conv_out"), "conv_out") << "exact wins over suffix";
  EXPECT_EQ(*resolve_tensor(model, "ges"), "images");
  EXPECT_EQ(resolve_tensor(model, "c_conv_out").status().message(),
            "'c_conv_out' is the end of 2 tensor names: 'enc_conv_out', 'dec_conv_out'; give a "
            "longer one");
  EXPECT_EQ(resolve_tensor(model, "none").status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(resolve_tensor(model, "").ok());
}

TEST(ResolveTensor, ListsAtMostTen) {
  const auto model = Model::load(std::filesystem::path(TENONNX_TEST_SOURCE_DIR) /
                                 "examples/models/shapes_deimv2.onnx");
  const std::string message = resolve_tensor(*model, "_output_0").status().message();
  const auto quotes = std::count(message.begin(), message.end(), '\'');
  EXPECT_EQ(quotes, 2 * 11);  // the suffix and ten candidates
  EXPECT_THAT(message, HasSubstr(", ...; give a longer one"));
}

}  // namespace
}  // namespace tenonnx
