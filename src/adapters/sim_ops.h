// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The operators of tenonnx.sim beside Round; float32 all of them.
//
// Form: x -> y, y a function of passes/sim_forms.h. Attributes: form (string); of "softmax_steps"
// axis
//   and to_end (ints), reciprocal_error (floats); of "grid_fractions" scale and offset (two
//   floats).
// RoundProduct: y, a, b[, bias] -> z, y rounded as Round does; where y is NaN, the number that the
//   device stores (passes/sim_products.h). Attributes: those of Round; product ("MatMul", "Conv",
//   "Add"); trans_a, trans_b, group (ints), strides, pads, dilations (ints).
#pragma once

#include <onnxruntime_cxx_api.h>

#include "kernels/custom_op.h"
#include "ort/custom_ops.h"
#include "passes/sim_round.h"

namespace tenonnx {

// One input of type T, one output of its type and shape. Derived: the name; and inputs, where there
// are more.
template <typename Derived, typename Kernel, typename T = float>
struct SimOp : kernels::OpBase<Derived, Kernel> {
  std::size_t GetInputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetInputType(std::size_t) const { return kernels::element_type<T>(); }
  std::size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(std::size_t) const { return kernels::element_type<T>(); }
  static OrtStatusPtr infer_shapes(Ort::ShapeInferContext& context,
                                   ONNXTensorElementDataType type) {
    return context.SetOutputShape(0, context.GetInputShape(0), type).release();
  }
};

// What the attributes of a Round say.
RoundSpec round_spec_of(const Ort::ConstKernelInfo& info);

void add_form_op(CustomOpSet& ops);
void add_product_op(CustomOpSet& ops);

}  // namespace tenonnx
