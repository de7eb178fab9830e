// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// For the tests of passes that fold a grid: a case whose grid is stored in the model.
#pragma once

#include "model/tensor_proto.h"
#include "passes/grid_sample_test_support.h"

namespace tenonnx {

inline Model stored_grid_model(const GridSampleCase& c, const Tensor& grid) {
  Model model = c.model();
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  auto& inputs = *graph.mutable_input();
  for (int i = inputs.size() - 1; i >= 0; --i)
    if (inputs.Get(i).name() == "grid") inputs.DeleteSubrange(i, 1);
  *graph.add_initializer() = to_tensor_proto(grid, "grid");
  return model;
}

}  // namespace tenonnx
