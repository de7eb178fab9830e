// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_directory.h"
#include "flow/compare.h"
#include "flow/optimize.h"
#include "model/text.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Two Transposes around element-wise operators; the permutation is not its own inverse.
constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,2,3,4] x) => (float[1,2,3,4] y) <float[2] bias = {0.5, -1}> {
  r = Neg (x)
  a = Transpose <perm = [0, 2, 3, 1]> (r)
  b = Add (a, bias)
  c = Sigmoid (b)
  d = Transpose <perm = [0, 3, 1, 2]> (c)
  y = Neg (d)
})";

class CompareMoved : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = temporary_.path() / "a.onnx";
    ASSERT_TRUE(model_from_text(kModel)->save(model_).ok());
    OptimizeOptions options;
    options.model = model_;
    options.out = temporary_.path() / "b.onnx";
    options.only = {"sink_transposes"};
    options.proof = ProofLevel::kNone;
    ASSERT_TRUE(optimize_file(options).ok());
  }
  CompareResult run() {
    CompareOptions options;
    options.reference = model_;
    options.candidate = temporary_.path() / "b.onnx";
    options.cache = "none";
    auto result = compare(options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(*result) : CompareResult();
  }
  fs::path model_;
  TemporaryDirectory temporary_;
};

TEST_F(CompareMoved, TensorsInAnotherLayoutAreCompared) {
  const CompareResult result = run();
  // The random inputs are INCONCLUSIVE at best; of the tensors none is.
  EXPECT_EQ(result.count(TensorState::kCompared), result.tensors.size()) << describe(result);
  for (const ComparedTensor& one : result.tensors) {
    ASSERT_TRUE(one.figures.has_value()) << one.plan.tensor.name;
    EXPECT_EQ(one.figures->check.verdict, Verdict::kPass) << one.plan.tensor.name;
    EXPECT_EQ(one.plan.perm.empty(), one.plan.tensor.name == "r" || one.plan.tensor.name == "d" ||
                                         one.plan.tensor.name == "y")
        << one.plan.tensor.name;
  }
}

// The other permutation of the same shape would pass unseen if only shapes were looked at.
TEST_F(CompareMoved, AWrongPermutationFails) {
  const fs::path record = temporary_.path() / "b.passes.json";
  std::ofstream(record) << R"({"renamed": {}, "removed": {"a": "p", "c": "p", "d": "p"},
    "moved": {"b": {"name": "b_moved", "perm": [0, 3, 2, 1]}}})";
  const CompareResult result = run();
  EXPECT_THAT(describe(result), HasSubstr("1 unmapped"));  // [1,4,3,2] is not [1,3,4,2]
}

}  // namespace
}  // namespace tenonnx
