// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Small valid models to be damaged: one for each thing that the loader has code for.
#pragma once

namespace tenonnx::fuzz {

inline constexpr const char* kModelSeeds[] = {
    R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[1,4] x) => (float[1,2] y) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[2] b = {0, 1}>
    { h = MatMul (x, w) y = Add (h, b) })",
    R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[n,4] x) => (float[n,2,2] y) <int64[1] zero = {0}, int64[2] two = {2, 2}> {
      f = Relu (x) s = Shape (x) b = Gather <axis = 0> (s, zero)
      t = Concat <axis = 0> (b, two) y = Reshape (f, t) })",
    R"(<ir_version: 10, opset_import: ["" : 20]>
    g (bool c, float[2] x, int64 n) => (float[2] y, float[2] r) <float[2] w = {1, 2}> {
      p = Relu (x)
      h = If (c) <
        then_branch = t () => (float[2] a) {
          a = If (c) <then_branch = t2 () => (float[2] a2) { a2 = Add (x, w) },
                      else_branch = e2 () => (float[2] b2) { b2 = Add (p, p) }> },
        else_branch = e () => (float[2] b) { b = Neg (x) }>
      y = Add (h, h)
      r = Loop (n, c, p) <body = l (int64 i, bool cond, float[2] q) => (bool k, float[2] z) {
        k = Identity (cond) z = Abs (q) }> })",
    R"(<ir_version: 10, opset_import: ["" : 20, "f" : 1]>
    g (float[2] x) => (float[2] y) { p = f.outer (x) y = f.inner (p) }
    <domain: "f", opset_import: ["" : 20, "f" : 1]> outer (a) => (c) { c = f.inner (a) }
    <domain: "f", opset_import: ["" : 20]> inner (a) => (c) { c = Neg (a) })",
    R"(<ir_version: 9, opset_import: ["" : 17]>
    g (float[1,3,8,8] x, float[1,4,4,2] grid) => (float[1,3] v, int64[1,3] i)
    <int64[1] k = {3}, float[3,3,3,3] w = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,
      0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,
      0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}, int64[2] target = {1, 48}> {
      a = Conv <pads = [1, 1, 1, 1]> (x, w)
      s = GridSample <align_corners = 1> (a, grid)
      r = Reshape (s, target)
      c = Constant <value = float[1] {0.5}> ()
      m = Mul (r, c)
      v, i = TopK (m, k) })",
    R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[4] x) => (float[2] y, float16[4] h) {
      l, r = Split <num_outputs = 2> (x)
      y = Add (l, r)
      h = Cast <to = 10> (x) })",
};

}  // namespace tenonnx::fuzz
