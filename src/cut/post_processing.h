// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Where the layers of a detector without deformable sampling end.
#pragma once

#include <string>

#include "cut/data_flow.h"

namespace tenonnx {

struct PostProcessing {
  TensorIds boundary;     // empty: see why_none
  std::string selection;  // the label of the first one behind the boundary
  std::string why_none;
};

// Post-processing is what has a selection and no layer with weights. Its boundary: the first
// single tensor that all values pass between the two, else all that the last layers make.
PostProcessing find_post_processing(const DataFlow& flow);

}  // namespace tenonnx
