// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fuse_gemm: makes MatMul and the Add of a bias one Gemm.
//
// before: y = MatMul(x, W) + b           after: y = Gemm(x, W, b)
//
//   y[m, n] = sum over k of x[m, k] W[k, n] + b[n]
//
// Conditions: x and W have rank 2, b broadcasts to the product, which nothing else uses. An x of a
// higher rank is taken too where a Reshape-like node stands before it and one behind y: those two
// then make it rank 2 and back, at no cost.
// Class algebraic: Gemm starts its sum from the bias.
// Refuses: dtypes other than float16, float32 and float64; a b that widens the product, or whose
// shape is not known.
#include <algorithm>
#include <string>

#include "base/status.h"
#include "passes/constants.h"
#include "passes/layout.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

// Whether the node before and all nodes after only change the shape, so that they take a Reshape
// beside them in.
bool between_reshapes(const Rewriter& r, const std::string& x, const std::string& y) {
  const int before = r.producer(x);
  if (before < 0 || !is_reshape_like(r.node(before)) || r.use_count(x) != 1) return false;
  const int after = r.sole_user(y);
  return after >= 0 && is_reshape_like(r.node(after)) && r.node(after).input(0) == y &&
         reshape_target(r.shape(r.node(after).output(0))).has_value();
}

void fuse(Rewriter& r, int i, int product, int bias_input) {
  const onnx::NodeProto& add = r.node(i);
  const onnx::NodeProto& matmul = r.node(product);
  const std::string &x = matmul.input(0), &weight = matmul.input(1), &y = add.output(0);
  const std::string& bias = add.input(bias_input);
  const auto x_shape = r.shape(x), weight_shape = r.shape(weight), y_shape = r.shape(y);
  if (!x_shape || !weight_shape || weight_shape->size() != 2 || x_shape->size() < 2) return;
  const DType dtype = r.dtype(x);
  if (dtype != DType::kFloat16 && dtype != DType::kFloat32 && dtype != DType::kFloat64)
    return r.refuse(i, fmt::format("Gemm of {}", to_string(dtype)));
  const auto bias_shape = r.shape(bias);
  const bool flat = x_shape->size() == 2;
  const Shape rows = {flat ? (*x_shape)[0] : -1, (*weight_shape)[1]};
  if (!flat && !between_reshapes(r, x, y)) return;
  // Of more dimensions a bias of rank 2 would belong to others than those that are left.
  if (!bias_shape || (!flat && bias_shape->size() > 1) || !broadcasts_into(*bias_shape, rows))
    return r.refuse(i, fmt::format("'{}' does not broadcast to the rows of the product", bias));
  if (std::count(rows.begin() + 1, rows.end(), -1) > 0) return;
  if (flat) {
    if (!r.begin({product, i})) return;
    r.replace(i, make_node("Gemm", {x, weight, bias}, {y}));
    r.remove(product);
    return r.apply(i, "MatMul and Add become Gemm");
  }
  const auto target = reshape_target(y_shape);
  const std::int64_t depth = (*weight_shape)[0];
  if (!target || depth <= 0) return;
  if (!r.begin({r.producer(x), product, i, r.sole_user(y)})) return;
  const std::string flat_x = r.fresh(x + "_rows"), flat_y = r.fresh(y + "_rows");
  r.insert(i,
           make_node("Reshape", {x, r.add_constant(flat_x + "_shape", int64_vector({-1, depth}))},
                     {flat_x}));
  r.insert(i, make_node("Gemm", {flat_x, weight, bias}, {flat_y}));
  r.insert(i, make_node("Reshape", {flat_y, r.add_constant(y + "_shape", *target)}, {y}));
  r.remove(i);
  r.remove(product);
  r.apply(i, "MatMul and Add between Reshapes become Gemm");
}

}  // namespace

namespace passes {

Result<PassOutcome> fuse_gemm(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("fuse_gemm", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& add = r.node(i);
    if (!is_op(add, "Add")) return;
    for (const int k : {0, 1}) {
      const int product = r.producer(add.input(k), "MatMul");
      if (product < 0 || r.sole_user(add.input(k)) != i || add.input(0) == add.input(1)) continue;
      return fuse(r, i, product, 1 - k);
    }
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
