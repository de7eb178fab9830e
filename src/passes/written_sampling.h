// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Sampling that an export has written with Gather, found by what it computes. Exporters spell it in
// many ways (flat indices, Gather, GatherElements, GatherND; masks or none), so that the structure
// only tells where it may begin and end: a tensor of coordinates [N,Q,P,2], an image [N,D,H,W] or
// [N,D,H*W], and samples [N,D,Q,P] that follow from these two alone. The part between is run on
// random images at positions inside and outside, and taken where it gives, for every point,
//
//   bilinear   GridSample(image, coordinates), linear, zeros, align_corners 0
//   discrete   the pixel at int(coordinate * size + 1/2), bound to the image
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct WrittenSampling {
  std::string image, coordinates, samples;  // tensors
  std::int64_t batch = 0, channels = 0, height = 0, width = 0;
  bool discrete = false;
};

// In the order of the graph. Shapes must be static.
std::vector<WrittenSampling> find_written_sampling(const Model& model);

// GridSample in their place. A discrete one has mode "discrete", which ONNX does not know: it is
// for replace_ms_deform_attn to take, and must not stay.
void write_grid_samples(Model& model, const std::vector<WrittenSampling>& found);

}  // namespace tenonnx
