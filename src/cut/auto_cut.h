// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Where a detector is cut when nobody says where: found from what the graph does, not from names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/shapes.h"

namespace tenonnx {

struct FoundCut {
  std::vector<std::string> tensors;  // the finest level first
  // "features", "encoder memory", "backbone features", "post-processing": what it is, or what is
  // behind it.
  std::string kind;
  std::string reason;  // "what feeds both the query selection (TopK 'x') and 12 sampling sites"
};

struct AutoCut {
  std::optional<FoundCut> cut;
  // Others that keep more on the side behind: where the encoder samples as well, the features
  // before it.
  std::vector<FoundCut> alternatives;
  std::string why_none;  // where `cut` is empty
};

// The rules, the first that applies:
// 1. Deformable attention with query selection (RT-DETR, D-FINE, DEIM, two-stage Deformable DETR;
//    also RoiAlign with proposals): what feeds both what is sampled and the selection.
// 2. Deformable attention without selection (Deformable DETR, BEV models): what feeds the value
//    path of every decoder layer; where the encoder samples as well, the features before it are the
//    alternative.
// 3. No sampling: the narrowest boundary behind the last layer with weights and before the
//    selection that ends the model (TopK, NonMaxSuppression, ArgMax).
// Then back to the features before layout and input projection (cut/features.h). Two graphs that
// differ in names and in the order of nodes alone give the same tensors in the same order. Every
// cut that is returned is one that split() takes (model/extract.h).
AutoCut find_auto_cut(const Model& model, const TensorInfos& infos);

}  // namespace tenonnx
