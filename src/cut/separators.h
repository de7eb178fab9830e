// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Sets of tensors that every way from the image to the outputs passes.
#pragma once

#include <vector>

#include "cut/data_flow.h"

namespace tenonnx {

// The tensors that all values pass, each alone, from the image on. Any order of the nodes gives
// the same ones.
TensorIds single_separators(const DataFlow& flow);

// What is alive between two steps when every node runs as late as it can (its longest way to an
// output counts): what stays the same however the nodes are ordered, and has a level of a feature
// pyramid before the layout that its reader gives it. From the image on; without the image itself,
// without sets of more than `max_width`, neighbours that are equal once.
std::vector<TensorIds> layered_separators(const DataFlow& flow, std::size_t max_width);

}  // namespace tenonnx
