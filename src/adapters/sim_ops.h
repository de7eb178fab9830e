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

#include "ort/custom_ops.h"
#include "passes/sim_round.h"

namespace tenonnx {

// What the attributes of a Round say.
RoundSpec round_spec_of(const Ort::ConstKernelInfo& info);

void add_form_op(CustomOpSet& ops);
void add_product_op(CustomOpSet& ops);

}  // namespace tenonnx
