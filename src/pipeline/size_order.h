// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The order of orig_target_sizes, proved by running the graph: which of the two numbers scales x?
// Exporters write this part as Tile, Expand, Gather, Concat or Repeat chains; a run tells for all
// of them. A square image never shows a wrong order, so the probe does not use one.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tenonnx/base.h"
#include "tenonnx/contract.h"

namespace tenonnx {

// Runs the whole model, whatever it is made of: inputs and outputs by the contract's names.
using ModelRunner = std::function<Result<TensorMap>(const TensorMap&)>;

struct SizeOrderProof {
  std::optional<SizeOrder> order;  // nothing: not proved
  bool no_effect = false;          // raw outputs that are the same with both: any order is right
  std::string detail;              // what was seen, or why there is no proof
};

// Runs the model on one image of seeded noise with the sizes [1000, 10] and [10, 1000]: a
// coordinate that the first number scales is 100 times as large with the first. Boxes must be xyxy;
// raw outputs must not change. Errors are those of the runs.
Result<SizeOrderProof> probe_size_order(const Contract& contract, const ModelRunner& run);

struct SizeOrderFinding {
  bool settled = false;  // the contract's order is right, or none is needed
  std::string note;      // for the user; where nothing is settled, what to do as well
};

// InvalidArgument where the graph contradicts the contract.
Result<SizeOrderFinding> check_size_order(const Contract& contract, const ModelRunner& run);

}  // namespace tenonnx
