// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/fault_kind.h"

namespace tenonnx {

std::string_view to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::kRange:
      return "range";
    case FaultKind::kLayout:
      return "layout";
    case FaultKind::kScale:
      return "scale";
    case FaultKind::kOffset:
      return "offset";
    case FaultKind::kPrecision:
      return "precision";
    case FaultKind::kEpsilon:
      return "epsilon";
    case FaultKind::kSampling:
      return "sampling";
    case FaultKind::kIndices:
      return "indices";
    case FaultKind::kWeights:
      return "weights";
    case FaultKind::kSelection:
      return "selection";
    case FaultKind::kCopy:
      return "copy";
    case FaultKind::kRounding:
      return "rounding";
    case FaultKind::kKernel:
      break;
  }
  return "kernel";
}

}  // namespace tenonnx
