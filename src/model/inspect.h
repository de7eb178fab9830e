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

// TopK, ArgMax, ArgMin, NonMaxSuppression, NonZero, Unique: where a small error becomes a
// permutation.
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

struct BakedShape {
  std::string node;        // a Reshape or Expand whose constant target begins with a number > 0,
  std::int64_t first_dim;  // where the model's batch is dynamic, or it differs from 0 and -1
  std::string target;      // "[1,300,256]"
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
