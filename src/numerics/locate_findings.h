// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the figures of a fault finder come to: verdict, headline, and what they do not show.
#pragma once

#include "model/graph.h"
#include "numerics/locate.h"

namespace tenonnx {

struct FindingsContext {
  bool stands_out = false;  // some node has an own error beyond its limit
  bool recorded = false;    // one side is a recording
  const GraphIndex* candidate = nullptr;
};

// FAIL where the task fails. PASS where it does not, and no node stands out either; what stands out
// without moving the task is named, and INCONCLUSIVE: other images may show it.
void say_what_was_found(LocateResult& result, const FindingsContext& context);

}  // namespace tenonnx
