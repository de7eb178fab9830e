// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A part of a model between named tensors, as a model.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace tenonnx {

struct ExtractOptions {
  // New names of boundary tensors: {"/encoder/Conv_output_0", "feature_0"}. InvalidArgument where
  // the key is neither input nor output of the part, or the new name occurs inside it.
  std::map<std::string, std::string> renames;
  // Types for boundary tensors whose type is neither recorded nor inferable (behind an operator of
  // a custom domain); they win over recorded ones. By the old names.
  std::vector<TensorInfo> types;
  bool keep_metadata = false;  // as SaveOptions::keep_metadata
};

// The nodes that `outputs` need, up to `inputs`. An input may be any tensor of the main graph: a
// graph input, a graph output, an initializer (which then becomes an input), one of several outputs
// of a node that is itself needed. A tensor that is both input and output passes through an
// Identity: `renames` then names the input and the output keeps its name; without one the output is
// named "<name>_output". Tensors captured by If/Loop/Scan
// bodies count as inputs of their node. Kept: node order and names, recorded shapes, functions and
// opset domains that are used, external data by reference. The inputs stay in the given order,
// also those that nothing needs.
// Errors: NotFound (no such tensor), InvalidArgument (an output needs graph inputs that are not
// among `inputs`: all of them are listed with nodes that need them), FailedPrecondition (a boundary
// tensor's type is unknown; give it in `types`).
Result<Model> extract(const Model& model, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, const ExtractOptions& options = {});

// A tensor of the main graph by its name or by a suffix that only one tensor has. NotFound;
// InvalidArgument for an ambiguous suffix, with at most 10 of the candidates and their count.
Result<std::string> resolve_tensor(const Model& model, std::string_view name_or_suffix);

struct SplitOptions {
  std::map<std::string, std::string> renames;  // of cut tensors, in both parts
  std::vector<TensorInfo> types;
  bool keep_metadata = false;
  // Lets both parts use one graph input. Without it such a cut is refused: the second part would
  // need the image again.
  bool allow_shared_inputs = false;
};

struct SplitModel {
  Model first;   // from the graph inputs that the cut needs, to the cut tensors
  Model second;  // from the cut tensors and the other graph inputs, to the graph outputs
};

// Cuts a model at tensors (exact names) into two. FailedPrecondition where the cut is no separator:
// the second part would need an input of the first; the message names a path around the cut.
// InvalidArgument for a cut tensor that nothing behind the cut uses, or that is constant.
Result<SplitModel> split(const Model& model, const std::vector<std::string>& cut,
                         const SplitOptions& options = {});

}  // namespace tenonnx
