// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/own_errors.h"

#include <onnx/onnx_pb.h>

#include "flow/compare_for_test.h"
#include "numerics/decoupled.h"

namespace tenonnx {
namespace {

// B differs from A in one constant. What follows inherits the error.
constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 8] x) => (float[4, 8] y) <float k = {3}> {
  a = Sigmoid(x)
  b = Mul(a, k)
  c = Tanh(b)
  y = Add(c, a)
})";

class OwnErrors : public CompareFixture {
 protected:
  static const TensorErrors& of(const ErrorTable& table, const std::string& name) {
    for (const TensorErrors& one : table.tensors)
      if (one.plan.tensor.name == name) return one;
    static const TensorErrors none;
    ADD_FAILURE() << "no tensor " << name;
    return none;
  }
  ErrorTable measure(const std::string& candidate) {
    CompareOptions made = options(save("a.onnx", kModel), {{"x", uniform({4, 8}, -2, 2, 1)}});
    made.candidate = save("b.onnx", candidate);
    auto setup = set_up_comparison(made);
    EXPECT_TRUE(setup.ok()) << setup.status().message();
    ErrorsRequest request;
    request.setup = &*setup;
    request.load.intra_op_threads = 1;
    request.memory = 1 << 24;
    auto table = measure_errors(request);
    EXPECT_TRUE(table.ok()) << table.status().message();
    return table.ok() ? std::move(*table) : ErrorTable();
  }
};

TEST_F(OwnErrors, WhatIsInheritedIsNotItsOwn) {
  const ErrorTable table = measure(replaced(kModel, "k = {3}", "k = {3.01}"));
  EXPECT_EQ(table.own_missing, "");
  EXPECT_FALSE(of(table, "a").accumulated_fails());
  EXPECT_TRUE(of(table, "b").own_fails());
  for (const char* behind : {"c", "y"}) {
    EXPECT_TRUE(of(table, behind).accumulated_fails()) << behind;
    EXPECT_FALSE(of(table, behind).own_fails()) << behind;
    EXPECT_EQ(of(table, behind).own->error.differing, 0) << behind;
  }
}

TEST_F(OwnErrors, EqualGraphsHaveNone) {
  const ErrorTable table = measure(kModel);
  EXPECT_EQ(table.identical, table.compared);
  EXPECT_EQ(table.compared, 4U);
  for (const TensorErrors& one : table.tensors) EXPECT_FALSE(one.own_fails());
}

// Two nodes of B stand for one of A: the piece between tensors that both have is what is judged.
TEST_F(OwnErrors, APieceOfSeveralNodes) {
  const ErrorTable table =
      measure(replaced(kModel, "b = Mul(a, k)", "h = Mul(a, k) h2 = Sigmoid(h) b = Mul(h, h2)"));
  EXPECT_TRUE(of(table, "b").own_fails());
  EXPECT_FALSE(of(table, "c").own_fails());
}

TEST(Decouple, ReadsTheReferencesTensors) {
  const Model model = parse_model(kModel);
  const auto apart = decouple(model, {{"a", "a"}, {"b", "b"}});
  ASSERT_TRUE(apart.ok()) << apart.status().message();
  std::vector<std::string> inputs;
  for (const TensorInfo& info : apart->inputs()) inputs.push_back(info.name);
  // y needs c, which is made of b, and a; nothing makes a or b any more.
  EXPECT_THAT(inputs, testing::UnorderedElementsAre("x", "reference/a", "reference/b"));
  EXPECT_EQ(apart->proto().graph().node_size(), 2);
}

TEST(Decouple, BodiesReadTheReferencesTensorsToo) {
  const Model model = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x, bool c) => (float[2] y) {
  a = Sigmoid(x)
  [choice] y = If (c) <then_branch = t () => (float[2] r) { r = Relu(a) },
                       else_branch = e () => (float[2] s) { s = Neg(a) }>
})");
  const auto apart = decouple(model, {{"a", "a"}});
  ASSERT_TRUE(apart.ok()) << apart.status().message();
  EXPECT_EQ(apart->proto().graph().node_size(), 1);
  const auto graph = make_cpu_executor()->load(*apart, {});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  TensorMap inputs;
  for (const TensorInfo& info : (*graph)->inputs())
    inputs[info.name] = info.dtype == DType::kBool
                            ? Tensor::from<std::uint8_t>(DType::kBool, {}, {0})
                            : floats({2}, {3, -4});
  const auto made = (*graph)->run(inputs);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->at("y").data<float>()[0], -3);
}

}  // namespace
}  // namespace tenonnx
