// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A graph with everything computed that follows from its constants and from shapes that are known:
// for a check of what passes made of it, which is not to be taken from them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/model.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct ComputedConstants {
  // The same graph without the nodes that were computed; what others use of them are initializers
  // of the same names. Nodes that make an output of the graph stay.
  Model model;
  // What was taken for the Shape nodes that were computed: tensor -> its shape.
  std::map<std::string, Shape> shapes;
};

// `info_of`: dtype and shape of a tensor of the main graph, each as far as it is known; the dtype
// is what CastLike of a constant takes, the shape, where it is static, Shape. All of it runs in one
// session, with the kernels, thread and weights of fold_region.h. Errors are those of ONNX Runtime,
// and what a Tensor cannot hold (strings).
Result<ComputedConstants> compute_constants(
    const Model& model, const std::function<std::optional<TensorInfo>(std::string_view)>& info_of);

}  // namespace tenonnx
