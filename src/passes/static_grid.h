// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Grids that do not depend on the inputs: their values, and what a GridSample reads with them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "passes/grid_sample_form.h"
#include "passes/rewriter.h"

namespace tenonnx {

// Finds the grids of a model; each is computed once. The model must outlive it.
class StaticGrids {
 public:
  explicit StaticGrids(const Model& model) : model_(model) {}
  // The grid of a site: an initializer or Constant, or what nodes compute from those alone (then as
  // ONNX Runtime computes it, optimisation disabled). nullptr: `why` says what it depends on.
  // Fills what only the grid knows of the site: Ho, Wo and, where the value's is not known, the
  // images; also nullptr where the grid does not belong to it.
  const Tensor* find(const Rewriter& r, GridSampleNode& site, std::string& why);

 private:
  struct Found {
    Tensor grid;
    std::string why;
  };
  Found compute(const Rewriter& r, const GridSampleNode& site) const;
  const Model& model_;
  std::map<std::string, Found> found_;
};

// 1 where all images have the same grid, else their number.
std::int64_t images_with_own_grid(const Tensor& grid);

// [images, points, taps]; a tap that is not sampled (outside, or of weight 0) has index -1 and
// weight 0. Linear has 4 taps in the order of ONNX Runtime's sum: upper left, upper right, lower
// left, lower right; nearest has 1.
struct StaticTaps {
  std::int64_t images = 0, points = 0, taps = 0;  // images is 1 where all read alike
  std::vector<std::int32_t> index;                // y * W + x
  std::vector<float> weight;
  std::int64_t unsampled = 0;
};
// In the float32 steps that replace_grid_sample_gather emits, so that weights are the same bits.
// The mode is linear or nearest; H * W fits int32.
StaticTaps static_taps(const GridSampleNode& site, const Tensor& grid);

// tenonnx.StaticSample in the place of a GridSample. `inputs`: the value and the grid's tensors.
onnx::NodeProto static_sample_node(const GridSampleNode& site,
                                   const std::vector<std::string>& inputs, std::string_view form);
// What the model needs so that others know the type of what a StaticSample makes: the import of the
// domain, and value_info, as inference knows nothing of the domain. After Rewriter::finish().
void declare_static_samples(Model& model, const std::vector<GridSampleNode>& sites);

}  // namespace tenonnx
