// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a cut costs and what it keeps on which side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cut/separator.h"
#include "model/graph.h"
#include "model/shapes.h"

namespace tenonnx {

struct CutDescription {
  std::vector<TensorInfo> tensors;  // the width is their number; has_rank false: shape not known
  std::int64_t elements = 0;        // of all; -1 where a dimension is dynamic or not known
  std::int64_t bytes = 0;           // likewise
  std::size_t nodes_before = 0, nodes_behind = 0;
  // Behind the cut, in bodies too. Sampling is GridSample, RoiAlign, deformable attention of other
  // domains and gathers at computed places (cut/sites.h). Normalisations are Softmax,
  // LayerNormalization and their like, written out as a root of a mean too.
  std::size_t sampling_behind = 0, selections_behind = 0, normalizations_behind = 0;
  std::size_t layers_behind = 0;  // Conv, MatMul, Gemm, ...
};

class DataFlow;
struct SamplingSite;

// `sides` are those of `cut` (cut/separator.h).
CutDescription describe_cut(const DataFlow& flow, const std::vector<SamplingSite>& sites,
                            const TensorInfos& infos, const std::vector<std::string>& cut,
                            const Sides& sides);

}  // namespace tenonnx
