// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/joined_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <limits>

#include "adapters/sim.h"
#include "base/status.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

Model graph_of(const std::string& nodes, const std::string& constants = "") {
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[4,3] x) => (float[4,3] y) {} {{ {} }}",
      constants, nodes));
}

JoinedGraph::Comparison pair(const std::string& a, const std::string& b, const std::string& when) {
  return {.a = {a}, .b = {b}, .when = {when}};
}

TensorMap run(JoinedGraph& joined, const TensorMap& inputs, DifferingListener listener = {}) {
  const Model model = joined.finish();
  LoadOptions options;
  options.optimization = Optimization::kDisabled;
  const auto loaded = make_proof_executor(std::move(listener))->load(model, options);
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  if (!loaded.ok()) return {};
  auto outputs = (*loaded)->run(inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? std::move(*outputs) : TensorMap();
}

std::int64_t number(const TensorMap& outputs, const std::string& name) {
  return outputs.at(name).data<std::int64_t>()[0];
}

TEST(JoinedGraph, RunsAPartOnItsTensorsAndCountsWhatDiffers) {
  const Model model = graph_of("a = Mul (x, k) y = Relu (a)", "<float k = {2}>");
  // Names and a constant that the graph has too, for other things.
  const Model same = model_from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> p (float[4,3] y) => (float[4,3] a) "
      "<float k = {4}> { x = Mul (y, k) half = Constant <value_float = 0.5> () a = Mul (x, half) "
      "}");
  const Model other = model_from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> p (float[4,3] y) => (float[4,3] a) "
      "<float[1,3] k = {2, 2, 3}> { a = Mul (y, k) }");
  JoinedGraph joined(model);
  const std::string x = "x";
  const auto takes_x = [&](const std::string&) -> const std::string& { return x; };
  const std::string right = joined.compare(pair(joined.add(same, takes_x).at("a"), "a", "a"));
  const std::string wrong = joined.compare(pair(joined.add(other, takes_x).at("a"), "a", "a"));
  joined.give("a");
  joined.give("a");
  const std::string shape = joined.give_shape("a");
  const TensorMap outputs = run(joined, {{"x", ramp({4, 3})}});
  EXPECT_EQ(outputs.size(), 5U);  // y, a, two counts, a shape
  EXPECT_EQ(number(outputs, right), 0);
  EXPECT_EQ(number(outputs, wrong), 4);
  EXPECT_EQ(outputs.at(shape).data<std::int64_t>()[1], 3);
  expect_identical({{"y", outputs.at("y")}}, run_on_cpu(model, {{"x", ramp({4, 3})}}));
}

TEST(JoinedGraph, TheFirstOfATensor) {
  const Model model = graph_of("y = Relu (x)");
  JoinedGraph joined(model);
  const std::string rows = joined.first("y", 0, 2);
  joined.give(rows);
  const TensorMap outputs = run(joined, {{"x", ramp({4, 3})}});
  EXPECT_EQ(outputs.at(rows).shape(), (Shape{2, 3}));
  EXPECT_EQ(outputs.at(rows).data<float>()[5], outputs.at("y").data<float>()[5]);
}

TEST(JoinedGraph, EveryBitCountsButThoseOfANaN) {
  const auto count = [](const std::vector<float>& a, const std::vector<float>& b) {
    const Shape shape = {static_cast<std::int64_t>(a.size())};
    const Model model = model_from_text(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n] a, float[n] b) => (float[n] y) "
        "{ y = Add (a, b) }");
    JoinedGraph joined(model);
    const std::string name = joined.compare(pair("a", "b", "y"));
    return number(run(joined, {{"a", Tensor::from<float>(DType::kFloat32, shape, a)},
                               {"b", Tensor::from<float>(DType::kFloat32, shape, b)}}),
                  name);
  };
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(count({1, 2, 3}, {1, 2, 3}), 0);
  EXPECT_EQ(count({1, 0.0F, 3}, {1, -0.0F, 3}), 1);
  EXPECT_EQ(count({1, kNaN, 3}, {1, -kNaN, 3}), 0);
  EXPECT_EQ(count({kNaN, 2}, {1, 2}), 1);
  // More than one piece, a difference in the last element alone.
  std::vector<float> a(200001, 1.5F), b = a;
  EXPECT_EQ(count(a, b), 0);
  b.back() = 1.25F;
  EXPECT_EQ(count(a, b), 1);
}

TEST(JoinedGraph, CountsWhatMayOverflow) {
  const auto count = [](std::size_t size, std::size_t at, float value) {
    const Model model = model_from_text(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n] a) => (float[n] y) "
        "{ h = Cast <to = 10> (a) i = Cast <to = 6> (a) y = Neg (a) }");
    JoinedGraph joined(model);
    const std::string name = joined.beyond({"a", "h", "i"});
    std::vector<float> values(size, 0.5F);
    values[at] = value;
    const Shape shape = {static_cast<std::int64_t>(size)};
    return number(run(joined, {{"a", Tensor::from<float>(DType::kFloat32, shape, values)}}), name);
  };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(count(3, 1, -64), 0);
  EXPECT_EQ(count(3, 1, -65), 1);  // in float16
  EXPECT_EQ(count(3, 1, 1.1e6F), 2);
  EXPECT_EQ(count(200001, 200000, -kInf), 2);
  EXPECT_EQ(count(200001, 100000, std::numeric_limits<float>::quiet_NaN()), 2);
}

TEST(JoinedGraph, OtherDtypesAndShapesDiffer) {
  const Model model = model_from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,3] a) => (float[2,3] y) "
      "{ y = Relu (a) i = Cast <to = 6> (a) t = Transpose (a) b = Cast <to = 9> (a) }");
  JoinedGraph joined(model);
  const std::string dtype = joined.compare(pair("a", "i", "i")),
                    shape = joined.compare(pair("a", "t", "t")),
                    boolean = joined.compare(pair("b", "b", "b"));
  const TensorMap outputs = run(joined, {{"a", ramp({2, 3})}});
  EXPECT_EQ(number(outputs, dtype), 6);
  EXPECT_EQ(number(outputs, shape), 6);
  EXPECT_EQ(number(outputs, boolean), 0);
}

TEST(JoinedGraph, TheListenerGetsWhatDiffers) {
  const Model model = graph_of("a = Relu (x) b = Mul (x, k) y = Add (a, b)", "<float k = {2}>");
  JoinedGraph joined(model);
  const std::string two =
      joined.compare({.part = 7, .a = {"a", "x"}, .b = {"y", "b"}, .more = {"k"}, .when = {"y"}});
  joined.compare({.part = 8, .a = {"a"}, .b = {"a"}, .when = {"a"}});
  std::vector<std::int64_t> parts;
  std::vector<Shape> shapes;
  const TensorMap outputs =
      run(joined, {{"x", ramp({4, 3})}}, [&](std::int64_t part, std::span<const Tensor> tensors) {
        parts.push_back(part);
        for (const Tensor& t : tensors) shapes.push_back(t.shape());
        EXPECT_EQ(tensors.back().data<float>()[0], 2);
      });
  EXPECT_EQ(parts, std::vector<std::int64_t>{7});
  EXPECT_EQ(shapes, (std::vector<Shape>{{4, 3}, {4, 3}, {4, 3}, {4, 3}, {}}));
  EXPECT_GT(number(outputs, two), 12);
}

// An exception of the listener ends the run, not the program.
TEST(JoinedGraph, AListenerThatThrowsIsAnError) {
  JoinedGraph joined(graph_of("a = Neg (x) y = Relu (x)"));
  joined.compare(pair("a", "y", "y"));
  LoadOptions options;
  options.optimization = Optimization::kDisabled;
  const auto executor =
      make_proof_executor([](std::int64_t, std::span<const Tensor>) { throw std::bad_alloc(); });
  const auto loaded = executor->load(joined.finish(), options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_FALSE((*loaded)->run({{"x", ramp({4, 3})}}).ok());
}

}  // namespace
}  // namespace tenonnx
