// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What part of a detector a node belongs to, for people: by the names that exporters keep, and
// where there are none by the structure around it.
#pragma once

#include <string>
#include <vector>

#include "model/graph.h"

namespace tenonnx {

struct BlockName {
  std::string title;  // "SwiGLU", "cross-attention", "query selection"; "" where nothing is known
  std::string scope;  // "/decoder/layers.0/mlp"; "" for a node without a scope
};
BlockName block_name(const GraphIndex& index, int node);
// "SwiGLU, '/decoder/layers.0/mlp'"; "" where neither is known.
std::string to_string(const BlockName& name);

}  // namespace tenonnx
