// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Everything that changes a graph is a pass, from a graph to a graph, in one table: passes.inc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "metrics/limit.h"
#include "model/model.h"
#include "passes/name_record.h"
#include "tenonnx/base.h"

namespace tenonnx {

// How exact a pass is; what its proof demands follows from it (docs/design.md).
enum class PassClass { kBitwise, kAlgebraic, kBounded, kApproximate };
enum class PassStage { kPrepare, kOptimize, kRewrite, kQuantize, kSimulate };

struct Refusal {
  std::string node;  // name of the node, or of the tensor where a node has no name
  std::string reason;
};

// A place where a pass changed the graph.
struct Site {
  std::string node;  // the node of the old graph that the change is about, as node_label() says it
  std::string what;  // "two Mul by constants become one"
};

// What a pass did. Never a bare flag. A tensor that keeps its name keeps its value; one whose value
// has another name now stands in `renamed`, one whose value is there in another layout in `moved`;
// whatever else is gone, is gone.
struct PassOutcome {
  int applied = 0;  // changes; for fold_constants, the nodes that went
  std::vector<Site> sites;
  std::vector<Refusal> skipped;
  std::map<std::string, std::string> renamed;  // old name -> new name
  std::map<std::string, MovedTensor> moved;    // old name -> the same in another layout
  // Of a bounded pass that changed something: how far any tensor that keeps its name may be from
  // what it was, max abs, and where the bound comes from. The proof checks it.
  std::optional<Limit> bound;
  // Of a bounded pass, by tensors of the graph before it: up to which magnitude of their values the
  // bound holds, which the proof checks on real values and keeps to in those that it makes; and
  // what it computes in another arithmetic, each with its own bound.
  std::map<std::string, double> holds_within, recomputed;
  // Of all sites together, for those who count them: "4 layers x 3 levels = 12 GridSample".
  std::string total;
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

// `options` as run_passes takes them, each given to the pass of `running` that it belongs to, and
// without "<pass>." there.
// InvalidArgument: an option of none of them.
Result<std::map<std::string_view, PassOptions>> options_by_pass(
    std::span<const PassInfo* const> running, const PassOptions& options);

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
