// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Everything that changes a graph is a pass, from a graph to a graph, in one table: passes.inc.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/model.h"
#include "tenonnx/base.h"

namespace tenonnx {

// How exact a pass is; what its proof demands follows from it (docs/design.md).
enum class PassClass { kBitwise, kAlgebraic, kBounded, kApproximate };
enum class PassStage { kPrepare, kOptimize, kRewrite, kQuantize, kSimulate };

struct Refusal {
  std::string node;  // name of the node, or of the tensor where a node has no name
  std::string reason;
};

// What a pass did. Never a bare flag.
struct PassOutcome {
  int applied = 0;
  std::vector<Refusal> skipped;
};

// Named options of passes, from the command line or from a flow. For run_passes "<pass>.<option>"
// is an option of that pass ("fold_constants.max_bytes" = "65536"); any other name is an input of
// fix_input_shapes ("images" = "1x3x640x640").
using PassOptions = std::map<std::string, std::string>;

struct PassInfo {
  std::string_view name;
  PassStage stage;
  int min_opset;
  int max_opset;
  PassClass exactness;
  std::string_view summary;
  // `options`: the pass's own, without "<pass>.". On an error the model may be changed in part.
  Result<PassOutcome> (*run)(Model& model, const PassOptions& options);
};

// In run order.
std::span<const PassInfo> all_passes();
// NotFound lists the nearest names.
Result<const PassInfo*> find_pass(std::string_view name);

struct PassReport {
  std::string name;
  PassOutcome outcome;
};

// Runs the named passes in the table's order, once each, and checks the graph after each. The model
// is changed only where all succeed. NotFound: no such pass. InvalidArgument: an option that
// belongs to no pass of `names`. Unsupported: the model's opset is outside a pass's range.
Result<std::vector<PassReport>> run_passes(Model& model, std::span<const std::string> names,
                                           const PassOptions& options);

// docs/reference/passes.md, from the table.
std::string passes_page();

std::string_view to_string(PassClass exactness);
std::string_view to_string(PassStage stage);

}  // namespace tenonnx
