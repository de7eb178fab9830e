// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/kept_graph.h"

#include <onnx/onnx_pb.h>

#include "flow/compare_for_test.h"
#include "ort/capture.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

constexpr const char* kReference = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 6] x) => (float[4, 6] y) <float k = {2}, float c = {0.5}> {
  [first] a = Mul(x, k)
  [halves] l, r = Split <axis = 1>(a)
  [left] p = Sigmoid(l)
  [right] q = Tanh(r)
  [join] j = Concat <axis = 1>(p, q)
  [last] y = Add(j, c)
})";

class Kept : public CompareFixture {
 protected:
  // The candidate with everything kept that the reference has, and with nothing.
  void expect_mends(const std::string& candidate, const TensorMap& inputs) {
    CompareOptions made = options(save("a.onnx", kReference), inputs);
    made.candidate = save("b.onnx", candidate);
    auto setup = set_up_comparison(made);
    ASSERT_TRUE(setup.ok()) << setup.status().message();
    ErrorsRequest request;
    request.setup = &*setup;
    request.memory = 1 << 24;
    auto table = measure_errors(request);
    ASSERT_TRUE(table.ok()) << table.status().message();
    const auto graphs = KeptGraphs::make(*setup, *table);
    ASSERT_TRUE(graphs.ok()) << graphs.status().message();
    const auto run = [&](const Model& model) {
      auto graph = make_cpu_executor()->load(model, {});
      EXPECT_TRUE(graph.ok()) << graph.status().message();
      auto out = (*graph)->run(inputs_of(**graph, inputs));
      EXPECT_TRUE(out.ok()) << out.status().message();
      return values(out->at("y"));
    };
    const int count = setup->other.proto().graph().node_size();
    const auto right = run(setup->reference), wrong = run(setup->other);
    EXPECT_NE(right, wrong);
    std::set<int> all;
    for (int n = 0; n < count; ++n) all.insert(n);
    const auto none = graphs->keep({}), every = graphs->keep(all);
    ASSERT_TRUE(none.ok() && every.ok()) << every.status().message();
    EXPECT_EQ(run(*none->model), wrong);
    EXPECT_EQ(run(*every->model), right);
    EXPECT_EQ(every->kept.size(),
              static_cast<std::size_t>(every->model->proto().graph().node_size()));
    // Each node alone: the graph runs, and those whose results both have are the reference's.
    for (int n = 0; n < count; ++n) {
      const auto one = graphs->keep({n});
      ASSERT_TRUE(one.ok()) << one.status().message();
      run(*one->model);
    }
  }
  static std::vector<float> values(const Tensor& tensor) {
    return {tensor.data<float>(), tensor.data<float>() + tensor.size()};
  }
};

TEST_F(Kept, OtherConstantsOfTheSameName) {
  expect_mends(replaced(kReference, "k = {2}", "k = {3}"), {{"x", uniform({4, 6}, -1, 1, 1)}});
}

// 'a' is made by two nodes of the candidate, one of which the reference does not have.
TEST_F(Kept, APieceOfSeveralNodes) {
  expect_mends(
      replaced(kReference, "[first] a = Mul(x, k)", "[other] h = Add(x, x) [first] a = Mul(h, k)"),
      {{"x", uniform({4, 6}, -1, 1, 1)}});
}

// Of the two results of 'halves' one is kept, the other not: both nodes stand in the graph.
TEST_F(Kept, OneOfTwoResults) {
  expect_mends(replaced(kReference, "[halves] l, r = Split <axis = 1>(a)",
                        "[turn] t = Neg(a) [halves] l, s = Split <axis = 1>(a) [more] u, r = Split "
                        "<axis = 1>(t)"),
               {{"x", uniform({4, 6}, -1, 1, 1)}});
}

TEST_F(Kept, OtherOpsetsCannotStandInOneGraph) {
  CompareOptions made = options(save("a.onnx", kReference), {{"x", uniform({4, 6}, -1, 1, 1)}});
  made.candidate = save("b.onnx", replaced(kReference, "\"\" : 17", "\"\" : 16"));
  auto setup = set_up_comparison(made);
  ASSERT_TRUE(setup.ok());
  EXPECT_THAT(KeptGraphs::make(*setup, {}).status().message(),
              HasSubstr("the reference is of opset 17 of 'ai.onnx', the candidate of 16"));
}

}  // namespace
}  // namespace tenonnx
