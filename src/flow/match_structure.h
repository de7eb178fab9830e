// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which tensors of two graphs are the same where their names differ: another exporter, another
// version of one, a tool that names tensors anew. A node of one is a node of the other where the
// operator is the same and what it reads, or what reads it, is; attributes and constants may differ
// (they are what a fault may lie in). From the inputs forwards, from the outputs and from equal
// names backwards, until nothing is added.
//
// Of several nodes with one operator and the same inputs (the projections of an attention) those
// with the same constants are paired, then the others in their order, where both graphs have
// equally many with constants of these shapes.
#pragma once

#include <map>
#include <string>

#include "model/model.h"
#include "passes/name_record.h"

namespace tenonnx {

// Tensors of `reference` that have no counterpart of their name, and are not spoken of in `known`:
// -> the candidate's name. Only tensors that follow from the inputs; none of the candidate's that
// has a counterpart of its name.
std::map<std::string, std::string> match_structure(const Model& reference, const Model& candidate,
                                                   const NameRecord& known);

}  // namespace tenonnx
