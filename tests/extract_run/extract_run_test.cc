// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Two parts of a model, run one after the other, give the bits of the whole: with ONNX Runtime's
// optimisation disabled, because fusions across the cut may round differently.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/json.h"
#include "model/extract.h"
#include "model/parse_for_test.h"
#include "ort/executor.h"

namespace tenonnx {
namespace {

TensorMap run(const Model& model, const TensorMap& given) {
  LoadOptions options;
  options.intra_op_threads = 1;
  options.optimization = Optimization::kDisabled;
  const auto graph = make_cpu_executor()->load(model, options);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return {};
  TensorMap inputs;
  for (const TensorInfo& info : (*graph)->inputs()) inputs[info.name] = given.at(info.name);
  auto outputs = (*graph)->run(inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? *outputs : TensorMap();
}

void expect_same_bits(const TensorMap& a, const TensorMap& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    EXPECT_EQ(tensor.shape(), b.at(name).shape()) << name;
    EXPECT_EQ(std::string_view(tensor.data<char>(), tensor.bytes()),
              std::string_view(b.at(name).data<char>(), b.at(name).bytes()))
        << name;
  }
}

// Random inputs in [0, 1); `given` wins.
TensorMap inputs_of(const Model& model, TensorMap given) {
  std::mt19937 random(5);
  for (const TensorInfo& info : model.inputs()) {
    if (given.contains(info.name)) continue;
    Tensor t(info.dtype, info.shape);
    for (std::int64_t i = 0; i < t.size(); ++i)
      t.mutable_data<float>()[i] = static_cast<float>(random() % 10000) / 10000;
    given[info.name] = t;
  }
  return given;
}

void expect_parts_equal_whole(const Model& model, const std::vector<std::string>& cut,
                              const TensorMap& given = {}, const SplitOptions& options = {}) {
  auto parts = split(model, cut, options);
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  TensorMap values = inputs_of(model, given);
  const TensorMap whole = run(model, values);
  for (const auto& [name, tensor] : run(parts->first, values)) values[name] = tensor;
  expect_same_bits(whole, run(parts->second, values));
}

TEST(ExtractRun, BranchesThatCaptureTensorsOfBothSides) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
      p = Relu (x)
      q = Mul (p, w)
      h = If (c) <
        then_branch = t () => (float[2] a) {
          a = If (c) <then_branch = t2 () => (float[2] a2) { a2 = Add (p, w) },
                      else_branch = e2 () => (float[2] b2) { b2 = Neg (q) }> },
        else_branch = e () => (float[2] b) { b = Mul (q, p) }>
      y = Add (h, w) })");
  for (const bool c : {false, true}) {
    Tensor condition(DType::kBool, {});
    condition.mutable_data<bool>()[0] = c;
    expect_parts_equal_whole(model, {"p", "q"}, {{"c", condition}},
                             {.renames = {{"p", "feature_0"}, {"q", "feature_1"}}});
    expect_parts_equal_whole(model, {"h"}, {{"c", condition}});
  }
}

TEST(ExtractRun, LoopsThatCaptureTheBoundary) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x) => (float[2] y) <int64 n = {3}, bool on = {1}> {
      p = Exp (x)
      s = Sqrt (x)
      y = Loop (n, on, s) <body = l (int64 i, bool k, float[2] z) => (bool k2, float[2] z2) {
        k2 = Identity (k)
        z2 = Mul (z, p) }> })");
  expect_parts_equal_whole(model, {"p", "s"}, {},
                           {.renames = {{"p", "feature_0"}, {"s", "feature_1"}}});
}

TEST(ExtractRun, FunctionsAndSharedConstants) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20, "f" : 1]>
    g (float[2] x) => (float[2] y, float[2] m) {
      k = Constant <value = float[2] {0.3, 0.7}> ()
      p = f.twice (x)
      m = Add (p, k)
      q = f.twice (m)
      y = Mul (q, k) }
    <domain: "f", opset_import: ["" : 20, "f" : 1]> twice (a) => (c) { b = f.once (a) c = Add (b, a) }
    <domain: "f", opset_import: ["" : 20]> once (a) => (c) { c = Tanh (a) })");
  // `m` is a graph output, the cut and an input of the second part: it passes through.
  expect_parts_equal_whole(model, {"m"}, {}, {.renames = {{"m", "feature_0"}}});
}

TEST(ExtractRun, TheExampleAtItsFeatures) {
  const std::filesystem::path models =
      std::filesystem::path(TENONNX_TEST_SOURCE_DIR) / "examples/models";
  const auto contract = read_json_file(models / "shapes_deimv2.contract.json");
  const auto model = Model::load(models / "shapes_deimv2.onnx");
  ASSERT_TRUE(contract.ok() && model.ok());
  Tensor size = Tensor::from<std::int64_t>(DType::kInt64, {1, 2}, {160, 160});
  expect_parts_equal_whole(*model, contract->at("cut").get<std::vector<std::string>>(),
                           {{"orig_target_sizes", size}});
}

}  // namespace
}  // namespace tenonnx
