// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// On ONNX Runtime's real errors, one of each kind: its wording changes between versions.
#include "ort/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ort/executor.h"
#include "ort/session.h"
#include "ort/test_models.h"

namespace tenonnx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Status load_error(const Model& model) {
  const auto graph = make_cpu_executor()->load(model, {});
  EXPECT_FALSE(graph.ok()) << "ONNX Runtime took the model";
  return graph.status();
}

// Parameters: name, model, code, parts of the message.
struct LoadCase {
  const char* name;
  const char* model;
  StatusCode code;
  std::vector<const char*> parts;
};

class LoadErrorTest : public testing::TestWithParam<LoadCase> {};

TEST_P(LoadErrorTest, SaysWhatWhereAndWhatToDo) {
  const Status status = load_error(unchecked_model_from_text(GetParam().model));
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  for (const char* part : GetParam().parts) EXPECT_THAT(status.message(), HasSubstr(part));
  EXPECT_THAT(status.message(), HasSubstr(" (ONNX Runtime: "));  // the original text, for a search
  EXPECT_THAT(status.message(), testing::EndsWith(")"));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, LoadErrorTest,
    testing::Values(
        LoadCase{"NewerOpset",
                 R"(<ir_version: 8, opset_import: ["" : 27]> g (float[1] x) => (float[1] y) {
                   y = Relu (x) })",
                 StatusCode::kUnsupported,
                 {"the model has opset 27; ONNX Runtime 1.", "takes up to 26"}},
        LoadCase{"NewerIr",
                 R"(<ir_version: 14, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) {
                   y = Relu (x) })",
                 StatusCode::kUnsupported,
                 {"the model has IR version 14; ONNX Runtime 1.", "takes up to 13."}},
        LoadCase{"ModeOfAnotherOpset",
                 R"(<ir_version: 8, opset_import: ["" : 17]>
                   g (float[1,1,4,4] x, float[1,2,2,2] p) => (float[1,1,2,2] y) {
                   y = GridSample <mode = "linear"> (x, p) })",
                 StatusCode::kInvalidArgument,
                 {"GridSample 'node_0' has the mode 'linear', which opset 17 spells 'bilinear'",
                  "rewrite MODEL --pass normalize_grid_sample` first"}},
        LoadCase{"ModeThatNoOpsetHas",
                 R"(<ir_version: 8, opset_import: ["" : 20]>
                   g (float[1,1,4,4] x, float[1,2,2,2] p) => (float[1,1,2,2] y) {
                   y = GridSample <mode = "lanczos"> (x, p) })",
                 StatusCode::kInvalidArgument,
                 {"GridSample 'node_0' has the mode 'lanczos', which no opset has"}},
        LoadCase{"OperatorOfALaterOpset",
                 R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) {
                   y = Gelu (x) })",
                 StatusCode::kUnsupported,
                 {"operator 'Gelu' (node 'node_0') does not exist in opset 17",
                  "it exists from opset 20 on"}},
        LoadCase{"OperatorThatDoesNotExist",
                 R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) {
                   y = NoSuchOp (x) })",
                 StatusCode::kUnsupported,
                 {"operator 'NoSuchOp' (node 'node_0') does not exist in opset 17", "its domain"}},
        LoadCase{"CustomDomain",
                 R"(<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]>
                 g (float[1] x) => (float[1] y) {
                   a = com.acme.Warp (x) b = com.acme.Warp (a) c = com.acme.Warp (b)
                   y = com.acme.Warp (c) })",
                 StatusCode::kUnsupported,
                 {"operator 'Warp' of domain 'com.acme'", "'node_0', 'node_1', 'node_2' and 1 more",
                  "cut before it"}},
        LoadCase{"DomainNotImported",
                 R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) {
                   y = com.acme.Warp (x) })",
                 StatusCode::kInvalidArgument,
                 {"node 'node_0' uses domain 'com.acme'", "opset_import"}},
        LoadCase{"NoKernelForTheDtype",
                 R"(<ir_version: 8, opset_import: ["" : 16]>
                 g (double[1,1,4,4] x, double[1,2,2,2] grid) => (double[1,1,2,2] y) {
                   y = GridSample (x, grid) })",
                 StatusCode::kUnsupported,
                 {"GridSample 'node_0' (version 16) has no kernel",
                  "'x' float64 [1,1,4,4]; 'grid' float64 [1,2,2,2]", "Cast"}},
        LoadCase{"DtypeThatOnnxDoesNotAllow",
                 R"(<ir_version: 8, opset_import: ["" : 20]>
                 g (bfloat16[1,1,4,4] x, bfloat16[1,1,2,2] w) => (bfloat16[1,1,3,3] y) {
                   y = Conv (x, w) })",
                 StatusCode::kInvalidArgument,
                 {"Conv 'node_0' does not take bfloat16 (tensor 'x')", "Cast"}},
        LoadCase{"MixedDtypes",
                 R"(<ir_version: 8, opset_import: ["" : 17]>
                 g (float[4] x, double[4] w) => (float[4] y) { y = Add (x, w) })",
                 StatusCode::kInvalidArgument,
                 {"Add 'node_0' mixes float and double"}},
        LoadCase{"ShapesOnLoad",
                 R"(<ir_version: 8, opset_import: ["" : 17]>
                 g (float[1,4] x, float[5,2] w) => (float[1,2] y) { y = MatMul (x, w) })",
                 StatusCode::kInvalidArgument,
                 {"the shapes at MatMul 'node_0' do not fit together: 'x' float32 [1,4]; 'w' "
                  "float32 [5,2]"}},
        LoadCase{"DanglingInput",
                 R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) {
                   y = Add (x, nobody) })",
                 StatusCode::kInvalidArgument,
                 {"tensor 'nobody' is read by a node, but nothing makes it"}},
        LoadCase{"Cycle",
                 R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) {
                   a = Add (x, y) y = Relu (a) })",
                 StatusCode::kInvalidArgument,
                 {"the graph has a cycle"}},
        LoadCase{"TwoOfOneName",
                 R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) {
                   y = Relu (x) y = Neg (x) })",
                 StatusCode::kInvalidArgument,
                 {"the name 'y' is defined twice"}},
        LoadCase{"UnknownAttribute",
                 R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) {
                   y = Relu <speed = 1> (x) })",
                 StatusCode::kInvalidArgument,
                 {"node 'node_0' is not valid: Unrecognized attribute: speed"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(LoadErrorTest, NoModelAtAll) {
  Model empty;
  const Status status = load_error(empty);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("not an ONNX model"));
}

TEST(LoadErrorTest, FallbackForbidden) {
  SessionSetup setup;
  setup.appends_provider = true;  // as if one had been appended that takes no node
  LoadOptions options;
  options.disable_fallback = true;
  const auto graph = load_session(
      model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) {
        y = Relu (x) })"),
      options, setup);
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(graph.status().message(), HasSubstr("falling back to it was forbidden"));
}

// Of a model that loads, on inputs that its declared shapes allow.
Status run_error(const char* text) {
  const auto graph = make_cpu_executor()->load(model_from_text(text), {});
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return {};
  TensorMap inputs;
  inputs["x"] = Tensor(DType::kFloat32, {2, 5});
  const auto outputs = (*graph)->run(inputs);
  EXPECT_FALSE(outputs.ok());
  return outputs.status();
}

TEST(RunErrorTest, ShapesThatTheExportBakedIn) {
  for (const char* node : {"MatMul (x, w)", "Add (x, w)", "Concat <axis = 0> (x, w)"}) {
    const std::string text = std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
          g (float[N,M] x) => (float[A,B] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> {
            y = )") + node + " }";
    const Status status = run_error(text.c_str());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.message();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("'node_0' do not fit together"),
                                        HasSubstr("Given: x float32 [2,5]."),
                                        HasSubstr("(ONNX Runtime: Non-zero status")));
  }
}

TEST(RunErrorTest, Reshape) {
  const Status status = run_error(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,M] x) => (float[A,B] y) <int64[2] shape = {2, 3}> { y = Reshape (x, shape) })");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("the shapes at Reshape 'node_0' do not fit together"));
}

TEST(RunErrorTest, IndexOutsideOfTheData) {
  const Status status = run_error(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,M] x) => (float[A,B] y) <int64[1] i = {77}> { y = Gather (x, i) })");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("Gather 'node_0' failed: an index lies outside"));
  EXPECT_THAT(status.message(), HasSubstr("idx=77"));
}

TEST(ExplainTest, UnknownTextKeepsItsWords) {
  const Status status =
      explain_ort_error(OrtStage::kRun, 1, "the moon is full\n", nullptr, "x int8 [1]");
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(),
              HasSubstr("failed to run. Given: x int8 [1]. (ONNX Runtime: the moon "
                        "is full)"));
}

}  // namespace
}  // namespace tenonnx
