// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/match_structure.h"

#include <gmock/gmock.h>

#include "flow/compare_for_test.h"

namespace tenonnx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::map<std::string, std::string> matched(const std::string& a, const std::string& b,
                                           const NameRecord& known = {}) {
  return match_structure(parse_model(a), parse_model(b), known);
}

constexpr const char* kAttention = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 2, 2] x) => (float[1, 2, 2] y)
<float[2, 2] wq = {1, 2, 3, 4}, float[2, 2] wk = {5, 6, 7, 8}> {
  q = MatMul (x, wq)
  k = MatMul (x, wk)
  t = Transpose <perm = [0, 2, 1]> (k)
  s = MatMul (q, t)
  y = Softmax <axis = 2> (s)
})";

TEST(MatchStructure, EqualNamesNeedNoMatch) {
  EXPECT_THAT(matched(kAttention, kAttention), IsEmpty());
}

TEST(MatchStructure, OtherNamesAnotherOrderAndAnotherAxis) {
  EXPECT_THAT(matched(kAttention, R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 2, 2] x) => (float[1, 2, 2] y)
<float[2, 2] b = {1, 2, 3, 4}, float[2, 2] a = {5, 6, 7, 8}> {
  n1 = MatMul (x, a)
  n2 = MatMul (x, b)
  n3 = Transpose <perm = [0, 2, 1]> (n1)
  n4 = MatMul (n2, n3)
  y = Softmax <axis = 1> (n4)
})"),
              ElementsAre(Pair("k", "n1"), Pair("q", "n2"), Pair("s", "n4"), Pair("t", "n3")));
}

// What lies before a node more is found forwards, what lies behind it backwards.
TEST(MatchStructure, BothSidesOfANodeMore) {
  EXPECT_THAT(matched(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) { a = Relu(x) b = Exp(a) c = Tanh(b) y = Neg(c) })",
                      R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) { p = Relu(x) o = Sqrt(p) q = Exp(o) r = Tanh(q) y = Neg(r) })"),
              ElementsAre(Pair("a", "p"), Pair("b", "q"), Pair("c", "r")));
}

// Weights that all differ: in their order, where the shapes are the same.
TEST(MatchStructure, SiblingsWithOtherConstantsInTheirOrder) {
  EXPECT_THAT(matched(kAttention, R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 2, 2] x) => (float[1, 2, 2] y)
<float[2, 2] b = {1, 2, 3, 5}, float[2, 2] a = {5, 6, 7, 9}> {
  n1 = MatMul (x, b)
  n2 = MatMul (x, a)
  n3 = Transpose <perm = [0, 2, 1]> (n2)
  n4 = MatMul (n1, n3)
  y = Softmax <axis = 2> (n4)
})"),
              ElementsAre(Pair("k", "n2"), Pair("q", "n1"), Pair("s", "n4"), Pair("t", "n3")));
}

TEST(MatchStructure, AnotherGraphHasNothingInCommon) {
  EXPECT_THAT(matched(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) { a = Relu(x) y = Neg(a) })",
                      R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) { p = Tanh(x) y = Exp(p) })"),
              IsEmpty());
}

// What the passes' record says stands: a tensor that one took away has no counterpart.
TEST(MatchStructure, TheRecordOfThePassesStands) {
  NameRecord known;
  known.removed = {{"k", "some_pass"}};
  known.renamed = {{"q", "n1"}};
  EXPECT_THAT(matched(kAttention, R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 2, 2] x) => (float[1, 2, 2] y)
<float[2, 2] b = {1, 2, 3, 4}, float[2, 2] a = {5, 6, 7, 8}> {
  n1 = MatMul (x, b)
  n2 = MatMul (x, a)
  n3 = Transpose <perm = [0, 2, 1]> (n2)
  n4 = MatMul (n1, n3)
  y = Softmax <axis = 2> (n4)
})",
                      known),
              ElementsAre(Pair("s", "n4"), Pair("t", "n3")));
}

}  // namespace
}  // namespace tenonnx
