// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "adapters/address.h"
#include "base/half.h"
#include "base/npy.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// [1,2,1,3]: NCHW and NHWC differ.
constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[1,2,1,3] x) => (float[1,2,1,3] y, float[1,2] s) <int64[2] axes = {2, 3}> {
    a = Add (x, x)
    y = Relu (a)
    s = ReduceMean <axes = [2, 3], keepdims = 0> (a)
  })";

Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::from<float>(DType::kFloat32, std::move(shape), values);
}

class Files : public ::testing::Test {
 protected:
  Files() : model_(model_from_text(kModel)) {}

  Tensor x(float first) const { return floats({1, 2, 1, 3}, {first, -2, 3, -4, 5, -6}); }
  TensorMap outputs_for(const Tensor& x) const { return run_on_cpu(model_, {{"x", x}}); }
  void write(const std::string& name, const TensorMap& tensors) const {
    ASSERT_TRUE(write_npz(dir_ / name, tensors).ok());
  }
  void names(const std::string& tensors) const {
    std::ofstream(dir_ / "names.json")
        << R"({"schema_version": 1, "source": "a board", "tensors": )" << tensors << "}";
  }
  std::string address() const { return "files:" + dir_.string(); }

  // Message of the first error; "" where all went well.
  std::string error(const TensorMap& inputs) {
    const auto result = run(inputs);
    return result.ok() ? "" : result.status().message();
  }
  Result<TensorMap> run(const TensorMap& inputs) {
    TENONNX_RETURN_IF_ERROR(load());
    return graph_->run(inputs);
  }
  Status load() {
    auto executor = make_executor(address());
    if (!executor.ok()) return executor.status();
    auto graph = (*executor)->load(model_, {});
    if (!graph.ok()) return graph.status();
    graph_ = std::move(*graph);
    return {};
  }

  TemporaryDirectory temporary_;
  const fs::path dir_ = temporary_.path();
  const Model model_;
  std::unique_ptr<LoadedGraph> graph_;
};

TEST_F(Files, TheInputsChooseTheCase) {
  for (const float first : {1.0F, 2.0F}) {
    TensorMap tensors = outputs_for(x(first));
    tensors["x"] = x(first);
    write(first == 1 ? "one.npz" : "two.npz", tensors);
  }
  for (const float first : {2.0F, 1.0F}) {
    const auto result = run({{"x", x(first)}});
    ASSERT_TRUE(result.ok()) << result.status().message();
    expect_identical(*result, outputs_for(x(first)));
  }
  EXPECT_THAT(graph_->description(), AllOf(HasSubstr(dir_.string()), HasSubstr("2 cases")));
}

TEST_F(Files, InputsOfTheirOwnFile) {
  write("one.npz", outputs_for(x(1)));
  write("one.inputs.npz", {{"x", x(1)}});
  EXPECT_EQ(error({{"x", x(1)}}), "");
  EXPECT_THAT(error({{"x", x(1.5F)}}),
              AllOf(HasSubstr("holds no case of these inputs"),
                    HasSubstr("'x' differs in 1 of 6 elements, by up to 0.5"),
                    HasSubstr("one.inputs.npz")));
}

TEST_F(Files, TheDirectoryOfAnExecRun) {
  write("outputs.npz", outputs_for(x(1)));
  write("inputs.npz", {{"x", x(1)}});
  EXPECT_EQ(error({{"x", x(1)}}), "");
  EXPECT_THAT(error({{"x", x(2)}}), HasSubstr("no case of these inputs"));
  fs::remove(dir_ / "outputs.npz");
  EXPECT_THAT(error({{"x", x(1)}}), HasSubstr("there is no 'outputs.npz'"));
}

// One .npz with the outputs of one image: all that there may be.
TEST_F(Files, OneCaseWithoutInputsServesOneInput) {
  write("board.npz", outputs_for(x(1)));
  ASSERT_EQ(error({{"x", x(1)}}), "");
  EXPECT_TRUE(graph_->run({{"x", x(1)}}).ok());
  const auto other = graph_->run({{"x", x(2)}});
  EXPECT_THAT(other.status().message(), AllOf(HasSubstr("these are others"), HasSubstr("'board'")));
  EXPECT_THAT(graph_->description(), HasSubstr("1 case without their inputs"));
}

// The same where its name is the first image's: the second image has no recording.
TEST_F(Files, OneCaseFoundByNameServesThatInputAlone) {
  write("a.npz", outputs_for(x(1)));
  ASSERT_EQ(error({{"x", x(1)}}), "");
  ASSERT_TRUE(graph_->select_case("a.png", 0).ok());
  ASSERT_TRUE(graph_->run({{"x", x(1)}}).ok());
  ASSERT_TRUE(graph_->select_case("b.png", 1).ok());
  EXPECT_THAT(graph_->run({{"x", x(2)}}).status().message(), HasSubstr("these are others"));
}

TEST_F(Files, OneFileOfADirectory) {
  write("a.npz", outputs_for(x(1)));
  write("b.npz", outputs_for(x(2)));
  const auto executor = make_executor("files:" + (dir_ / "b.npz").string());
  ASSERT_TRUE(executor.ok()) << executor.status().message();
  const auto graph = (*executor)->load(model_, {});
  ASSERT_TRUE(graph.ok());
  const auto result = (*graph)->run({{"x", x(1)}});
  ASSERT_TRUE(result.ok());
  expect_identical(*result, outputs_for(x(2)));
}

TEST_F(Files, CasesByNameOrPosition) {
  write("img_b.npz", outputs_for(x(1)));
  write("007.npz", outputs_for(x(2)));
  EXPECT_THAT(error({{"x", x(1)}}),
              AllOf(HasSubstr("2 cases ('007', 'img_b')"), HasSubstr("nothing says which")));
  ASSERT_TRUE(graph_->select_case("img_b.png", 3).ok());
  auto result = graph_->run({{"x", x(9)}});
  ASSERT_TRUE(result.ok());
  expect_identical(*result, outputs_for(x(1)));
  ASSERT_TRUE(graph_->select_case("other.png", 7).ok());
  result = graph_->run({{"x", x(9)}});
  ASSERT_TRUE(result.ok());
  expect_identical(*result, outputs_for(x(2)));
  const Status status = graph_->select_case("other.png", 8);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("'other.png' (position 8)"), HasSubstr("'007'")));
}

TEST_F(Files, TwoCasesForOneInput) {
  write("0.npz", outputs_for(x(1)));
  write("00.npz", outputs_for(x(2)));
  write("1.npz", outputs_for(x(3)));
  ASSERT_TRUE(load().ok());
  const Status status = graph_->select_case("street.png", 0);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("'0.npz' and '00.npz'"), HasSubstr("position 0")));
  EXPECT_TRUE(graph_->select_case("street.png", 1).ok());
  // With their inputs the bytes say which.
  write("0.inputs.npz", {{"x", x(1)}});
  write("00.inputs.npz", {{"x", x(2)}});
  ASSERT_TRUE(load().ok());
  ASSERT_TRUE(graph_->select_case("street.png", 0).ok());
  const auto result = graph_->run({{"x", x(2)}});
  ASSERT_TRUE(result.ok()) << result.status().message();
  expect_identical(*result, outputs_for(x(2)));
}

// Recorded inputs count more than a name.
TEST_F(Files, ANameDoesNotOverruleInputs) {
  TensorMap tensors = outputs_for(x(1));
  tensors["x"] = x(1);
  write("0.npz", tensors);
  ASSERT_TRUE(load().ok());
  ASSERT_TRUE(graph_->select_case("0", 0).ok());
  EXPECT_TRUE(graph_->run({{"x", x(1)}}).ok());
  EXPECT_THAT(graph_->run({{"x", x(2)}}).status().message(), HasSubstr("no case of these inputs"));
}

// What a board gives: other names, NHWC, a flat array, half precision, quantised values.
TEST_F(Files, NamesLayoutsAndDtypesOfABoard) {
  const TensorMap right = outputs_for(x(1));
  const float* y = right.at("y").data<float>();
  const float* s = right.at("s").data<float>();
  write("board.npz",
        {{"out0", floats({1, 1, 3, 2}, {y[0], y[3], y[1], y[4], y[2], y[5]})},
         {"out1", Tensor::from<std::uint16_t>(DType::kFloat16, {2},
                                              {float_to_float16(s[0]), float_to_float16(s[1])})}});
  names(R"({"y": {"key": "out0", "layout": "NHWC"},
            "s": {"key": "out1", "reshape": true, "convert": true}})");
  auto result = run({{"x", x(1)}});
  ASSERT_TRUE(result.ok()) << result.status().message();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(result->at("y").data<float>()[i], y[i]) << i;
  EXPECT_EQ(result->at("s").shape(), (Shape{1, 2}));
  EXPECT_EQ(result->at("s").data<float>()[1], float16_to_float(float_to_float16(s[1])));
  EXPECT_THAT(graph_->description(), HasSubstr("from a board"));

  write("board.npz",
        {{"out0", Tensor::from<std::int8_t>(DType::kInt8, {1, 2, 1, 3}, {-128, 0, 127, 1, 2, 3})},
         {"out1", right.at("s")}});
  names(R"({"y": {"key": "out0", "scale": 0.5, "zero_point": -128}, "s": "out1"})");
  result = run({{"x", x(1)}});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->at("y").data<float>()[0], 0);
  EXPECT_EQ(result->at("y").data<float>()[2], 127.5F);
}

TEST_F(Files, SaysWhichArraysThereAreAndWhereToNameThem) {
  TensorMap tensors = outputs_for(x(1));
  tensors["mean"] = tensors.at("s");
  tensors.erase("s");
  write("board.npz", tensors);
  auto executor = make_executor(address());
  ASSERT_TRUE(executor.ok());
  EXPECT_EQ(what_is_recorded(**executor, model_),
            fmt::format("it has 'mean', 'y'; if one of them is it, say so in {}",
                        (dir_ / "names.json").string()));
  names(R"({"s": "mean"})");
  executor = make_executor(address());
  ASSERT_TRUE(executor.ok());
  EXPECT_EQ(what_is_recorded(**executor, model_), "it has 'mean', 'y'");
  EXPECT_EQ(what_is_recorded(*make_executor("cpu").value(), model_), "");
}

TEST_F(Files, AZeroPointAloneIsAMistake) {
  write("board.npz", outputs_for(x(1)));
  names(R"({"y": {"key": "y", "zero_point": -128}})");
  EXPECT_THAT(error({{"x", x(1)}}), AllOf(HasSubstr("names.json"), HasSubstr("/tensors/y"),
                                          HasSubstr("\"zero_point\" without \"scale\"")));
}

TEST_F(Files, TransposeCountsFromTheBackToo) {
  const TensorMap right = outputs_for(x(1));
  const float* y = right.at("y").data<float>();
  write("board.npz",
        {{"y", floats({1, 1, 3, 2}, {y[0], y[3], y[1], y[4], y[2], y[5]})}, {"s", right.at("s")}});
  names(R"({"y": {"key": "y", "transpose": [0, -1, 1, -2]}})");
  const auto result = run({{"x", x(1)}});
  ASSERT_TRUE(result.ok()) << result.status().message();
  expect_identical(*result, right);
  for (const char* axes : {"[0, -1, 3, 1]", "[0, 1, 2, -5]"}) {
    names(fmt::format(R"({{"y": {{"key": "y", "transpose": {}}}}})", axes));
    EXPECT_THAT(error({{"x", x(1)}}), HasSubstr("no order of the axes 0 to 3 (-4 to -1")) << axes;
  }
}

TEST_F(Files, WhatDoesNotFitSaysHowItMay) {
  const TensorMap right = outputs_for(x(1));
  const auto with_y = [&](Tensor y) {
    write("board.npz", {{"y", std::move(y)}, {"s", right.at("s")}});
    return error({{"x", x(1)}});
  };
  EXPECT_THAT(with_y(floats({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6})),
              AllOf(HasSubstr("board.npz: 'y' has shape [1,1,3,2]"), HasSubstr("[1,2,1,3]"),
                    HasSubstr("looks like NHWC"), HasSubstr("\"layout\": \"NHWC\"")));
  EXPECT_THAT(with_y(floats({2, 1, 3}, {1, 2, 3, 4, 5, 6})), HasSubstr("\"reshape\": true"));
  EXPECT_THAT(with_y(floats({3, 2}, {1, 2, 3, 4, 5, 6})), HasSubstr("\"transpose\""));
  EXPECT_THAT(with_y(floats({1, 2, 1, 4}, {1, 2, 3, 4, 5, 6, 7, 8})),
              HasSubstr("from another model, or with another input size"));
  EXPECT_THAT(
      with_y(Tensor(DType::kFloat64, {1, 2, 1, 3})),
      AllOf(HasSubstr("is float64, the model's 'y' is float32"), HasSubstr("\"convert\": true")));
  EXPECT_THAT(with_y(Tensor(DType::kInt8, {1, 2, 1, 3})), HasSubstr("\"zero_point\""));
}

// As exporters leave it: the model does not say how many rows there are.
TEST_F(Files, ReshapeWhereTheModelLeavesDimensionsOpen) {
  const Model open = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[n,k,2] x) => (float[n,k,2] y) { y = Relu (x) })");
  const auto run_with = [&](Shape shape) -> Result<TensorMap> {
    write("a.npz", {{"y", Tensor(DType::kFloat32, std::move(shape))}});
    auto executor = make_executor(address());
    if (!executor.ok()) return executor.status();
    auto graph = (*executor)->load(open, {});
    if (!graph.ok()) return graph.status();
    return (*graph)->run({{"x", Tensor(DType::kFloat32, {1, 3, 2})}});
  };
  EXPECT_THAT(run_with({3, 2}).status().message(), HasSubstr("\"reshape\": true"));
  names(R"({"y": {"key": "y", "reshape": true}})");
  for (const Shape& shape : {Shape{3, 2}, Shape{1, 1, 3, 2}}) {
    const auto result = run_with(shape);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->at("y").shape(), (Shape{1, 3, 2}));
  }
  EXPECT_THAT(run_with({2, 3}).status().message(), HasSubstr("has shape [2,3]"));
}

TEST_F(Files, ConversionsKeepIntegers) {
  const Model labels = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (int32[2] x) => (int32[2] y) { y = Add (x, x) })");
  names(R"({"y": {"key": "y", "convert": true}})");
  const auto run_with = [&](const Tensor& y) -> Result<TensorMap> {
    write("a.npz", {{"y", y}});
    auto executor = make_executor(address());
    if (!executor.ok()) return executor.status();
    auto graph = (*executor)->load(labels, {});
    if (!graph.ok()) return graph.status();
    return (*graph)->run({{"x", Tensor::from<std::int32_t>(DType::kInt32, {2}, {0, 0})}});
  };
  const auto good = run_with(floats({2}, {7, -3}));
  ASSERT_TRUE(good.ok()) << good.status().message();
  EXPECT_EQ(good->at("y").data<std::int32_t>()[1], -3);
  EXPECT_THAT(run_with(floats({2}, {7, 2.5F})).status().message(),
              HasSubstr("element 1 of the float32 array is no value of int32"));
  EXPECT_THAT(run_with(Tensor::from<std::int64_t>(DType::kInt64, {2}, {std::int64_t{1} << 31, 0}))
                  .status()
                  .message(),
              HasSubstr("element 0"));
}

TEST_F(Files, WhatWasNotRecorded) {
  write("a.npz", {{"output_y", floats({1}, {1})}, {"s", floats({1, 2}, {1, 2})}});
  EXPECT_THAT(error({{"x", x(1)}}),
              AllOf(HasSubstr("'y' was not recorded"), HasSubstr("'output_y'"),
                    HasSubstr("names.json"), HasSubstr("{\"y\": \"its name there\"}")));
  // In one case and not in another.
  write("a.npz", outputs_for(x(1)));
  write("b.npz", {{"s", floats({1, 2}, {1, 2})}});
  ASSERT_TRUE(load().ok());
  ASSERT_TRUE(graph_->select_case("b", 1).ok());
  EXPECT_THAT(graph_->run({{"x", x(1)}}).status().message(),
              AllOf(HasSubstr("b.npz"), HasSubstr("'y' was not recorded in this case")));
}

TEST_F(Files, NamesThatAreNone) {
  write("a.npz", outputs_for(x(1)));
  names(R"({"y": "out_y"})");
  EXPECT_THAT(error({{"x", x(1)}}), AllOf(HasSubstr("names.json"), HasSubstr("'y'"),
                                          HasSubstr("'out_y'"), HasSubstr("there are 'y', 's'")));
  names(R"({"y": {"key": "y", "layuot": "NHWC"}})");
  EXPECT_THAT(error({{"x", x(1)}}), AllOf(HasSubstr("layuot"), HasSubstr("names.json")));
  names(R"({"y": {"key": "y", "layout": "CHWN"}})");
  EXPECT_THAT(error({{"x", x(1)}}), HasSubstr("\"CHWN\" is not one of \"NHWC\""));
  names(R"({"y": {"key": "y", "transpose": [0, 0, 1, 2]}})");
  EXPECT_THAT(error({{"x", x(1)}}), HasSubstr("no order of the axes"));
  names(R"({"y": 3})");
  EXPECT_THAT(error({{"x", x(1)}}), HasSubstr("the array's name"));
  // A name that the model does not have: known when the whole model is.
  names(R"({"relu": "y"})");
  const auto executor = make_executor(address());
  ASSERT_TRUE(executor.ok());
  EXPECT_THAT((*executor)->recorded_tensors(model_).status().message(),
              AllOf(HasSubstr("'relu' (recorded as 'y') is no tensor of the model")));
}

TEST_F(Files, TheTensorsThatCanBeAskedFor) {
  TensorMap tensors = outputs_for(x(1));
  tensors["Add_0"] = tensors.at("y");
  tensors["x"] = x(1);
  tensors["something"] = x(1);
  write("a.npz", tensors);
  names(R"({"a": "Add_0"})");
  auto executor = make_executor(address());
  ASSERT_TRUE(executor.ok()) << executor.status().message();
  auto recorded = (*executor)->recorded_tensors(model_);
  ASSERT_TRUE(recorded.ok()) << recorded.status().message();
  ASSERT_TRUE(recorded->has_value());
  EXPECT_THAT(**recorded, ElementsAre("a", "y", "s"));  // in the graph's order
  // Nothing of it has a name of the model's.
  fs::remove(dir_ / "names.json");
  write("a.npz", {{"out_0", x(1)}, {"out_1", x(1)}});
  executor = make_executor(address());
  EXPECT_THAT((*executor)->recorded_tensors(model_).status().message(),
              AllOf(HasSubstr("a.npz holds 'out_0', 'out_1'"), HasSubstr("outputs are 'y', 's'"),
                    HasSubstr("names.json")));
  write("a.npz", tensors);
  names(R"({"a": "Add_0"})");
  // Only what every case holds.
  tensors.erase("s");
  tensors["x"] = x(2);
  write("b.npz", tensors);
  executor = make_executor(address());
  recorded = (*executor)->recorded_tensors(model_);
  ASSERT_TRUE(recorded.ok());
  EXPECT_THAT(**recorded, ElementsAre("a", "y"));
  // Whatever computes can give anything.
  const auto cpu = make_executor("cpu");
  EXPECT_FALSE((*(*cpu)->recorded_tensors(model_)).has_value());
}

TEST_F(Files, TheRecordingIsInTheVersions) {
  write("a.npz", outputs_for(x(1)));
  const auto version = [&] { return (*make_executor(address()))->versions().at(0); };
  const auto first = version();
  EXPECT_EQ(first.first, "recording");
  EXPECT_EQ(version(), first);
  write("a.npz", outputs_for(x(2)));
  EXPECT_NE(version(), first);
}

TEST_F(Files, WherePlacementIsNotKnown) {
  write("a.npz", outputs_for(x(1)));
  const auto executor = make_executor(address());
  LoadOptions options;
  options.profile = true;
  const auto graph = (*executor)->load(model_, options);
  ASSERT_TRUE(graph.ok());
  const auto placement = (*graph)->placement();
  ASSERT_TRUE(placement.ok());
  EXPECT_TRUE(placement->nodes.empty());
  EXPECT_THAT(placement->disagreement, HasSubstr("is not known"));
}

TEST_F(Files, WhatIsNoRecording) {
  EXPECT_THAT(error({}), HasSubstr("holds no recording"));
  std::ofstream(dir_ / "a.npz") << "PK";
  EXPECT_THAT(error({}), HasSubstr("not an .npz"));
  EXPECT_THAT(make_executor("files:" + (dir_ / "none").string()).status().message(),
              HasSubstr("there is no recording"));
  std::ofstream(dir_ / "a.txt") << "x";
  EXPECT_THAT(make_executor("files:" + (dir_ / "a.txt").string()).status().message(),
              HasSubstr("a directory or an .npz"));
  EXPECT_THAT(make_executor("files").status().message(), HasSubstr("needs the directory"));
}

}  // namespace
}  // namespace tenonnx
