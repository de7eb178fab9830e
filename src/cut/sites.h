// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The operators that decide where a detector is cut: sampling at computed places, selections,
// normalisations, layers with weights.
#pragma once

#include <vector>

#include "cut/data_flow.h"

namespace onnx {
class NodeProto;
}  // namespace onnx

namespace tenonnx {

// Reads features at places that the model computes.
struct SamplingSite {
  int node = -1;
  // A Gather, GatherElements or GatherND whose indices are computed from the image other than by a
  // selection: sampling that an exporter or a pass has written without GridSample.
  bool gathered = false;
  TensorIds data;    // what is sampled
  TensorIds places;  // grid, indices, boxes; empty where they do not depend on the image
};

// GridSample, RoiAlign, operators of other domains named like deformable attention, gathers with
// computed indices, and nodes whose bodies hold one of the former (all they read is data then).
std::vector<SamplingSite> sampling_sites(const DataFlow& flow);

// Nodes that select (model/selects.h), or that hold one in a body. In order of DataFlow::nodes().
std::vector<int> selection_nodes(const DataFlow& flow);

// Softmax, LayerNormalization and their like, which divide by what they sum. Not
// BatchNormalization, which is a constant factor.
bool is_normalization(const onnx::NodeProto& node);
// Conv, MatMul, Gemm, attention, recurrent layers and their quantized forms.
bool is_layer(const onnx::NodeProto& node);
// Nodes among this one and those of its bodies for which `test` holds.
int count_nodes(const onnx::NodeProto& node, bool (*test)(const onnx::NodeProto&));

}  // namespace tenonnx
