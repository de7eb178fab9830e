// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Sampling that an export writes with Gather instead of GridSample, for reports of near misses.
#pragma once

#include <string>

#include "passes/rewriter.h"

namespace tenonnx {

// Gather, GatherElements, GatherND.
bool reads_at_indices(const onnx::NodeProto& node);

// A Gather, GatherElements or GatherND of floating values at indices that whole-number arithmetic
// makes of a Cast from coordinates (floating values that follow from an input of the graph).
enum class GatherSampling {
  kNone,
  kCutOff,   // Cast of the coordinates themselves: int(x), one pixel of each point ("discrete")
  kRounded,  // of Round(x): the nearest pixel
  kFloored,  // of Floor(x): one of the neighbours that a bilinear sample weighs
};
GatherSampling gather_sampling(const Rewriter& r, int node);

// Why a pass that looks for GridSample leaves it.
std::string why_not_matched(GatherSampling sampling);

}  // namespace tenonnx
