// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/temporary_directory.h"
#include "ort/test_models.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kAffine = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[2,3] x) => (float[2,3] y, float[2,3] z) <float[3] w = {1, 2, 3}> {
    y = Mul (x, w)
    z = Relu (y)
  })";

std::unique_ptr<LoadedGraph> load(const Model& model, const LoadOptions& options = {}) {
  auto graph = make_cpu_executor()->load(model, options);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(graph).value() : nullptr;
}

std::vector<float> values(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.size()};
}

const std::vector<float> kX = {1, -1, 2, 0.5F, 3, -2};

TEST(SessionTest, RunsAndDescribes) {
  LoadOptions options;
  options.intra_op_threads = 2;
  const auto graph = load(model_from_text(kAffine), options);
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->inputs().size(), 1u);
  EXPECT_EQ(graph->inputs()[0].name, "x");
  EXPECT_EQ(graph->outputs()[1].shape, (Shape{2, 3}));
  std::vector<Tensor> outputs;
  const std::vector<Tensor> inputs = {Tensor::from(DType::kFloat32, {2, 3}, kX)};
  const Status status = graph->run(inputs, outputs);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, -2, 6, 0.5F, 6, -6));
  EXPECT_THAT(values(outputs[1]), ElementsAre(1, 0, 6, 0.5F, 6, 0));
  for (const char* part : {"onnxruntime 1.", "CPUExecutionProvider", "2 intra-op", "spinning off",
                           "sequential", "optimisation all"})
    EXPECT_THAT(graph->description(), HasSubstr(part));
}

TEST(SessionTest, FittingOutputsAreWrittenIntoAndOthersReplaced) {
  const auto graph = load(model_from_text(kAffine));
  ASSERT_TRUE(graph);
  const std::vector<Tensor> inputs = {Tensor::from(DType::kFloat32, {2, 3}, kX)};
  std::vector<Tensor> outputs = {Tensor(DType::kFloat32, {2, 3}), Tensor(DType::kFloat32, {3, 2})};
  const Tensor first = outputs[0];
  const Tensor second = outputs[1];
  ASSERT_TRUE(graph->run(inputs, outputs).ok());
  EXPECT_EQ(outputs[0].raw(), first.raw());
  EXPECT_THAT(values(first), ElementsAre(1, -2, 6, 0.5F, 6, -6));
  EXPECT_NE(outputs[1].raw(), second.raw());
  EXPECT_EQ(outputs[1].shape(), (Shape{2, 3}));
  EXPECT_THAT(values(second), ElementsAre(0, 0, 0, 0, 0, 0));  // left alone
}

TEST(SessionTest, OutputInTheMemoryOfAnInputIsNotWrittenInto) {
  const auto graph = load(model_from_text(kAffine));
  ASSERT_TRUE(graph);
  const std::vector<Tensor> inputs = {Tensor::from(DType::kFloat32, {2, 3}, kX)};
  std::vector<Tensor> outputs = {inputs[0], inputs[0]};
  ASSERT_TRUE(graph->run(inputs, outputs).ok());
  EXPECT_EQ(values(inputs[0]), kX);
  EXPECT_THAT(values(outputs[1]), ElementsAre(1, 0, 6, 0.5F, 6, 0));
}

TEST(SessionTest, OutputThatIsAnInputOwnsItsMemory) {
  const auto graph = load(model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[2,3] y) { y = Identity (x) })"));
  ASSERT_TRUE(graph);
  std::vector<Tensor> outputs;
  {
    std::vector<Tensor> inputs = {Tensor::from(DType::kFloat32, {2, 3}, kX)};
    ASSERT_TRUE(graph->run(inputs, outputs).ok());
    EXPECT_NE(outputs[0].raw(), inputs[0].raw());
  }
  EXPECT_EQ(values(outputs[0]), kX);
}

// ONNX Runtime hands such an output back as the value that was given.
TEST(SessionTest, OutputOfTheSameNameAsAnInputOwnsItsMemory) {
  const auto graph = load(unchecked_model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[2,3] x, float[2,3] y) { y = Relu (x) })"));
  ASSERT_TRUE(graph);
  const std::vector<Tensor> inputs = {Tensor::from(DType::kFloat32, {2, 3}, kX)};
  std::vector<Tensor> outputs;
  ASSERT_TRUE(graph->run(inputs, outputs).ok());
  EXPECT_EQ(values(outputs[0]), kX);
  EXPECT_NE(outputs[0].raw(), inputs[0].raw());
}

TEST(SessionTest, DynamicShapes) {
  const auto graph = load(model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,3] x) => (float[N,3] y) { y = Relu (x) })"));
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->inputs()[0].shape, (Shape{-1, 3}));
  std::vector<Tensor> outputs;
  for (std::int64_t n : {1, 5, 0}) {
    const std::vector<Tensor> inputs = {Tensor(DType::kFloat32, {n, 3})};
    const Status status = graph->run(inputs, outputs);  // outputs of the run before are offered
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(outputs[0].shape(), (Shape{n, 3}));
  }
}

TEST(SessionTest, RunByName) {
  const auto graph = load(model_from_text(kAffine));
  ASSERT_TRUE(graph);
  TensorMap inputs;
  inputs["x"] = Tensor::from(DType::kFloat32, {2, 3}, kX);
  const auto outputs = graph->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_EQ(outputs->size(), 2u);
  EXPECT_THAT(values(outputs->at("z")), ElementsAre(1, 0, 6, 0.5F, 6, 0));
  inputs["extra"] = inputs["x"];
  EXPECT_THAT(graph->run(inputs).status().message(), HasSubstr("unknown input 'extra'"));
}

TEST(SessionTest, HalfPrecisionAndBool) {
  const auto graph = load(model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float16[2] x, bool[2] c) => (float16[2] y, bool[2] d, bfloat16[2] b) {
      zero = Constant <value = float16[1] {0}> ()
      y = Where (c, x, zero)
      d = Not (c)
      b = Cast <to = 16> (x)
    })"));
  ASSERT_TRUE(graph);
  TensorMap inputs;
  inputs["x"] = Tensor::from<std::uint16_t>(DType::kFloat16, {2}, {0x3C00, 0x4000});  // 1, 2
  inputs["c"] = Tensor::from<std::uint8_t>(DType::kBool, {2}, {0, 1});
  const auto outputs = graph->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_EQ(outputs->at("y").data<std::uint16_t>()[0], 0);
  EXPECT_EQ(outputs->at("y").data<std::uint16_t>()[1], 0x4000);
  EXPECT_EQ(outputs->at("d").data<std::uint8_t>()[0], 1);
  EXPECT_EQ(outputs->at("b").dtype(), DType::kBFloat16);
  EXPECT_EQ(outputs->at("b").data<std::uint16_t>()[1], 0x4000);  // 2 in bfloat16
}

TEST(SessionTest, StringsAndSequencesAreRefusedOnLoad) {
  const auto strings = make_cpu_executor()->load(
      model_from_text(
          R"(<ir_version: 8, opset_import: ["" : 17]> g (string[2] x) => (string[2] y) {
        y = Identity (x) })"),
      {});
  ASSERT_FALSE(strings.ok());
  EXPECT_EQ(strings.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(strings.status().message(), HasSubstr("input 'x' holds strings"));
}

TEST(SessionTest, WrongInputsAreNamed) {
  const auto graph = load(model_from_text(kAffine));
  ASSERT_TRUE(graph);
  std::vector<Tensor> outputs;
  const std::vector<Tensor> wrong = {Tensor(DType::kFloat32, {2, 4})};
  EXPECT_THAT(graph->run(wrong, outputs).message(),
              HasSubstr("input 'x' has shape [2,4], the model takes [2,3]"));
}

TEST(SessionTest, ThreadsShareOneGraph) {
  const auto graph = load(model_from_text(kAffine));
  ASSERT_TRUE(graph);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto v = static_cast<float>(t * 100 + i);
        const std::vector<Tensor> inputs = {
            Tensor::from<float>(DType::kFloat32, {2, 3}, {v, v, v, v, v, v})};
        std::vector<Tensor> outputs;
        if (!graph->run(inputs, outputs).ok() || outputs[0].data<float>()[2] != 3 * v) ++wrong[t];
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));
}

TEST(SessionTest, ExternalDataAreReadFromTheirMapping) {
  const TemporaryDirectory directory;
  const fs::path& root = directory.path();
  fs::create_directories(root / "weights");
  const std::vector<float> w = {1, 2, 3};
  std::ofstream(root / "weights/w.bin", std::ios::binary)
      .write("padding.", 8)
      .write(reinterpret_cast<const char*>(w.data()), 12);
  onnx::ModelProto proto = proto_from_text(kAffine);
  auto& tensor = *proto.mutable_graph()->mutable_initializer(0);
  tensor.clear_float_data();
  tensor.clear_raw_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const char* value) {
    auto* entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("location", "weights/w.bin");
  add("offset", "8");
  add("length", "12");
  auto model = Model::from_proto(std::move(proto), root);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_LT(model->serialize()->size(), 400u);
  const auto graph = load(*model);
  ASSERT_TRUE(graph);
  TensorMap inputs;
  inputs["x"] = Tensor::from(DType::kFloat32, {2, 3}, kX);
  const auto outputs = graph->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_THAT(values(outputs->at("y")), ElementsAre(1, -2, 6, 0.5F, 6, -6));
}

TEST(SessionTest, PlacementComesFromTheProfileAndLeavesNoFile) {
  const TemporaryDirectory directory;
  const fs::path& root = directory.path();
  const char* before = std::getenv("TMPDIR");
  const std::string saved = before ? before : "";
  setenv("TMPDIR", root.c_str(), 1);
  LoadOptions options;
  options.profile = true;
  options.optimization = Optimization::kDisabled;
  {
    const auto graph = load(model_from_text(kAffine), options);
    ASSERT_TRUE(graph);
    TensorMap inputs;
    inputs["x"] = Tensor::from(DType::kFloat32, {2, 3}, kX);
    ASSERT_TRUE(graph->run(inputs).ok());
    ASSERT_TRUE(graph->run(inputs).ok());
    const auto placement = graph->placement();
    ASSERT_TRUE(placement.ok()) << placement.status().message();
    ASSERT_EQ(placement->nodes.size(), 2u);
    EXPECT_EQ(placement->nodes[0].node, "node_0");
    EXPECT_EQ(placement->nodes[0].op_type, "Mul");
    EXPECT_EQ(placement->nodes[1].op_type, "Relu");
    EXPECT_EQ(placement->nodes[1].provider, "CPUExecutionProvider");
    EXPECT_EQ(placement->disagreement, "");
    ASSERT_EQ(placement->providers.size(), 1u);
    EXPECT_EQ(placement->providers[0].second, 2);
    EXPECT_TRUE(graph->placement().ok());                         // repeatable
    EXPECT_TRUE(graph->run(inputs).ok());                         // and the graph still runs
    const auto unread = load(model_from_text(kAffine), options);  // never asked for its placement
  }
  EXPECT_TRUE(fs::is_empty(root));
  if (before)
    setenv("TMPDIR", saved.c_str(), 1);
  else
    unsetenv("TMPDIR");
}

// Fusions, threads with their statistics in the profile, and branches: a real export at the default
// optimisation level.
TEST(SessionTest, PlacementOfAWholeDetectorAgrees) {
  const auto model =
      Model::load(fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx");
  ASSERT_TRUE(model.ok()) << model.status().message();
  LoadOptions options;
  options.profile = true;
  options.intra_op_threads = 2;
  const auto graph = load(*model, options);
  ASSERT_TRUE(graph);
  TensorMap inputs;
  for (const TensorInfo& info : graph->inputs()) inputs[info.name] = Tensor(info.dtype, info.shape);
  ASSERT_TRUE(graph->run(inputs).ok());
  const auto placement = graph->placement();
  ASSERT_TRUE(placement.ok()) << placement.status().message();
  EXPECT_EQ(placement->disagreement, "");
  ASSERT_EQ(placement->providers.size(), 1u);
  EXPECT_EQ(placement->providers[0].first, "CPUExecutionProvider");
  EXPECT_GT(placement->providers[0].second, 100);
  std::int64_t total_us = 0;
  for (const NodePlacement& node : placement->nodes) total_us += node.duration_us;
  EXPECT_GT(total_us, 0);
}

TEST(SessionTest, PlacementNeedsAProfile) {
  const auto graph = load(model_from_text(kAffine));
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->placement().status().code(), StatusCode::kFailedPrecondition);
}

TEST(SessionTest, ThreadCountsAreChecked) {
  LoadOptions options;
  options.intra_op_threads = -1;
  const auto graph = make_cpu_executor()->load(model_from_text(kAffine), options);
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.status().message(), HasSubstr("intra_op_threads is -1"));
}

TEST(SessionTest, TheCpuExecutorIsItsOwnFallback) {
  LoadOptions options;
  options.disable_fallback = true;
  EXPECT_TRUE(load(model_from_text(kAffine), options));
}

TEST(SessionTest, HookSetsOptionsAndItsErrorsComeBack) {
  SessionSetup setup;
  int called = 0;
  setup.configure = [&](Ort::SessionOptions& options) {
    ++called;
    options.AppendExecutionProvider("NoSuchProvider", {});
  };
  const auto graph = load_session(model_from_text(kAffine), {}, setup);
  EXPECT_EQ(called, 1);
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.status().message(), HasSubstr("NoSuchProvider"));
}

TEST(SessionTest, SpinningIsOffUnlessAskedFor) {
  for (const bool spinning : {false, true}) {
    std::string intra;
    std::string inter;
    SessionSetup setup;
    setup.configure = [&](Ort::SessionOptions& options) {
      intra = options.GetConfigEntry("session.intra_op.allow_spinning");
      inter = options.GetConfigEntry("session.inter_op.allow_spinning");
    };
    LoadOptions options;
    options.spinning = spinning;
    ASSERT_TRUE(load_session(model_from_text(kAffine), options, setup).ok());
    EXPECT_EQ(intra, spinning ? "1" : "0");
    EXPECT_EQ(inter, spinning ? "1" : "0");
  }
}

TEST(CpuExecutorTest, AddressAndVersions) {
  const auto executor = make_cpu_executor();
  EXPECT_EQ(executor->address(), "cpu");
  ASSERT_EQ(executor->versions().size(), 1u);
  EXPECT_EQ(executor->versions()[0].first, "onnxruntime");
  EXPECT_THAT(executor->versions()[0].second, testing::StartsWith("1."));
}

}  // namespace
}  // namespace tenonnx
