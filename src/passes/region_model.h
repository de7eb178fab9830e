// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The changed regions of one graph as a model of their own: each region takes its boundary tensors
// as inputs and gives its outputs, whatever the others compute. Many regions run in one session.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/graph.h"
#include "model/model.h"
#include "model/shapes.h"
#include "passes/region_diff.h"
#include "tenonnx/base.h"

namespace tenonnx {

enum class Side { kBefore, kAfter };

// The names of both sides' models: an input has the tensor's name before the pass, an output too
// where no input has it, else "<name>_out".
struct RegionNames {
  explicit RegionNames(std::span<const ChangedRegion* const> regions);
  std::vector<std::vector<std::string>> outputs;  // of each region, in its order
};

// `infos` holds each input that this side takes, by the name before the pass: its dtype and shape
// become the model's. Outputs that pass an input or a constant on go through an Identity.
Result<Model> regions_model(const Model& model, Side side,
                            std::span<const ChangedRegion* const> regions, const RegionNames& names,
                            const TensorInfos& infos);
Result<Model> regions_model(const Model& model, Side side,
                            std::span<const ChangedRegion* const> regions, const RegionNames& names,
                            const TensorMap& values);

// What a regions_model of this side takes of `values`.
TensorMap region_inputs(Side side, std::span<const ChangedRegion* const> regions,
                        const TensorMap& values);

// Two regions with one signature are the same computation with the same constants on both sides, so
// that what is proved of one on made inputs is proved of the other.
std::string region_signature(const Model& before, const GraphIndex& before_index,
                             const Model& after, const GraphIndex& after_index,
                             const ChangedRegion& region, const TensorMap& values);

}  // namespace tenonnx
