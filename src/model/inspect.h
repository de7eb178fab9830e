// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What an engineer wants to know about a model before anything else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/model.h"

namespace tenonnx {

struct GridSampleSite {
  std::string node, mode, padding_mode;
  bool align_corners = false;
  TensorInfo input, grid, output;  // dtype kUndefined where the shape is not known
};

// Where a small error becomes a permutation: model/selects.h.
struct SelectionPoint {
  std::string node, op_type;
  std::string k;  // of TopK: "300", or "computed"; "" for the others
  TensorInfo input;
};

struct ConstantRange {
  std::string name;
  std::int64_t count = 0;   // elements concerned
  double min = 0, max = 0;  // of all finite elements of the tensor
};

// A Reshape or Expand that fixes the batch of a model whose batch is dynamic: its constant target
// begins with a number although its input's first dimension is not known. (To 1 by an Expand is
// harmless: it broadcasts.) Exporters trace with one image and bake its batch in.
struct BakedShape {
  std::string node;
  std::int64_t first_dim = 0;
  std::string target;  // "[1,300,256]"
};

struct Inspection {
  std::int64_t ir_version = 0;
  std::map<std::string, std::int64_t> opsets;  // by domain; "ai.onnx" for the default
  std::string producer;
  std::vector<TensorInfo> inputs, outputs;
  std::vector<std::string> dynamic_dims;  // "images[0] (batch)"
  std::int64_t nodes = 0;                 // of the main graph; bodies are counted in op_counts
  std::map<std::string, std::int64_t> op_counts;  // "com.acme.Warp" for other domains
  std::vector<std::string> custom_domains;        // neither ai.onnx* nor com.microsoft
  std::int64_t parameters = 0;                    // elements of initializers
  std::uint64_t file_bytes = 0, initializer_bytes = 0, external_bytes = 0;
  std::vector<std::string> external_files;
  bool has_metadata = false;  // doc strings or metadata_props of the exporter
  std::int64_t functions = 0, subgraphs = 0;
  std::vector<GridSampleSite> grid_samples;
  std::vector<SelectionPoint> selections;
  // float32 and float64 constants (initializers and Constant nodes).
  std::vector<ConstantRange> beyond_float16;     // |x| > 65504, finite
  std::vector<ConstantRange> subnormal_float16;  // 0 < |x| < 2^-14
  std::vector<ConstantRange> infinite, nan;
  std::vector<BakedShape> baked_shapes;
};

Result<Inspection> inspect(const Model& model);

}  // namespace tenonnx
