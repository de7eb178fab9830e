// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The neighbours of a pixel coordinate along one axis, as nodes.
#pragma once

#include <string>

#include "passes/grid_sample_form.h"

namespace tenonnx {

// How what is not sampled is kept away: replace_grid_sample_gather.cc.
enum class ZeroForm { kSelect, kMultiply, kBorder };

// float32 tensors in the layout of the coordinate. Indices are whole numbers of the tensor that is
// read: inside it for every coordinate. linear has two neighbours, nearest one.
struct AxisTaps {
  std::string index[2];
  std::string weight[2];  // linear: 0 for a neighbour outside
  std::string inside;     // bool; nearest with zeros that no border holds, else empty
};
// `at`: pixel_coordinates() of an axis of `size` pixels. The mode is linear or nearest.
AxisTaps axis_taps(SiteWriter& w, const GridSampleNode& site, const std::string& at,
                   std::int64_t size, ZeroForm zeros);

// The value with one pixel of zeros on each side, by Concat: [N,C,H+2,W+2]. N and C are known.
std::string surround_with_zeros(SiteWriter& w, const GridSampleNode& site);

}  // namespace tenonnx
