// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Types and shapes of all tensors, those inside If/Loop/Scan bodies too, and the integer values
// that follow from shapes. infer_shapes() of module model serves the main graph alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/model.h"

namespace tenonnx {

struct InferredType {
  int onnx_type = 0;       // TensorProto::DataType; 0 where it is not known or no tensor
  bool has_shape = false;  // false: even the rank is unknown
  Shape shape;             // -1: unknown
  bool is_static() const;  // every dimension is known
};

using InferredTypes = std::unordered_map<std::string, InferredType>;

struct Inference {
  // One map a graph, in the order of for_each_graph (outer before inner); names of outer graphs are
  // not repeated in inner ones.
  std::vector<InferredTypes> graphs;
  // int32 and int64 tensors of the main graph whose every element follows from static dimensions
  // (Shape, then Gather, Concat, Add, ... as onnx's data propagation knows them).
  std::unordered_map<std::string, std::vector<std::int64_t>> values;
};

// Never fails: a node that onnx's inference cannot deal with leaves its outputs unknown. The model
// is not changed; initializers beyond 4 KiB are not copied.
Inference infer(const Model& model);

}  // namespace tenonnx
