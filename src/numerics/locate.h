// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A device runs the model and the results are wrong: which side of which cut is enough for it,
// whose error it is and who inherits it, what must stay at the reference to mend it, and what kind
// of fault it is. What `locate` does.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "flow/compare.h"
#include "numerics/fault_kind.h"
#include "numerics/trials.h"

namespace tenonnx {

struct LocateOptions {
  // Of it: reference, candidate, ref, on, inputs, images, max_images, random_inputs, seed, storage,
  // factor, names, memory_mib, cache, resume, preparation, load, progress.
  CompareOptions common;
  std::string cut;  // one more, beside those of `split --list`: as DeployOptions::cut
  std::size_t max_cuts = 6;
  std::size_t budget = 60;          // trials on the device
  bool dry_run = false;             // say what would be done
  std::size_t suspects = 8;         // that are looked at closely
  std::filesystem::path minimal;    // a directory for a case of the first suspect; empty: none
  std::filesystem::path node_list;  // a file for the nodes to keep; empty: none
};

// One cut, and what the model gives with its two parts on either side.
struct CrossSplit {
  std::string label;                 // "auto", "--cut", "3 tensors, 131 KiB"
  std::vector<std::string> tensors;  // of the candidate
  std::size_t nodes_before = 0, nodes_behind = 0;
  std::string not_identical;  // ref/ref is not the reference: why; the cut is left out of the rest
  std::optional<Trial> device_then_reference, reference_then_device;
};

struct Suspect {
  std::string node;               // "MatMul '/decoder/layers.0/mlp/down_proj/MatMul'"
  std::string tensor;             // of the reference, at which the error is seen first
  std::string block;              // to_string(BlockName)
  double own = 0, own_floor = 0;  // relative L2
  double ratio = 0;               // of own to its limit's floor
  double accumulated = 0;         // relative L2 at that tensor
  KindFinding kind;
  // What a range fault is really about: the value that does not fit, and who makes it.
  std::string culprit_tensor, culprit_node;
  int candidate_node = -1, culprit = -1;  // nodes of the candidate
  // Of two graphs: how many nodes of either make the tensor out of those that both have. With more
  // than one the fault is in any of them.
  std::size_t piece = 1, reference_piece = 1;
  // Where the fault is: the culprit, else the node.
  int place() const { return culprit >= 0 ? culprit : candidate_node; }
  std::optional<bool> alone_breaks;  // moved to the device alone
};

struct NodeSet {
  std::vector<std::string> nodes;  // labels
  std::vector<int> indices;
  bool minimal = false;  // none of them can be left out alone
  std::string by;        // "node", "operator MatMul", "block '/decoder/layers.0/mlp'"
  Trial trial;
};

// A bar of the waterfall: what the device adds between two cuts.
struct WaterfallBar {
  std::string from, to;          // "cut 2" (of `cuts`, from 1); "input", "output"
  double scores = 0, boxes = 0;  // may be negative: errors can cancel
  std::string name;  // "rounding", "cast", "layout", "kernel", "selection", "propagation"
};

struct LocatedSelection {
  std::string label;
  SelectionAgreement agreement;
  double limit = 0;  // of a margin that rounding explains
  bool differs = false, beyond_ties = false;
};

struct LocateResult {
  Verdict verdict = Verdict::kInconclusive;
  std::string headline;
  std::string reference, candidate, reference_sha256, candidate_sha256;
  std::string ref, on, inputs, gate, looking;
  bool random_inputs = false, has_task = false, dry_run = false;
  DType storage = DType::kFloat16;
  double reference_top_score = 0;
  std::vector<std::string> contract;  // mistakes in feeding that explain the difference
  std::optional<Trial> whole;         // all on the device
  std::vector<CrossSplit> cuts;       // from the image to the outputs
  std::vector<std::string> sides;     // "cuts 1, 2: what lies behind is enough ..."
  std::size_t unmapped = 0;           // tensors of the reference without a counterpart
  std::string output_order;           // how the candidate's outputs stand otherwise
  std::size_t tensors = 0, identical = 0, with_own = 0, own_failing = 0, accumulated_failing = 0;
  std::vector<Suspect> suspects;  // the likeliest first
  std::vector<LocatedSelection> selections;
  std::optional<NodeSet> keep, breaks;
  std::vector<NodeSet> alternatives;  // by operator, by block
  std::vector<WaterfallBar> waterfall;
  std::size_t trials = 0, recalled = 0, budget = 0;
  std::vector<std::string> not_shown;  // what the evidence does not show
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, std::string>> versions;

  // The task does, with all on the device; where that was not run, some tensor.
  bool fails() const { return whole ? !whole->figures.passes : accumulated_failing > 0; }
};

Result<LocateResult> locate(const LocateOptions& options);
// On what is opened already; for executors that have no address.
Result<LocateResult> locate(const LocateOptions& options, CompareSetup& setup);

// docs/reference/json.md, "locate".
Json to_json(const LocateResult& result);
// For people, at most 100 columns.
std::string describe(const LocateResult& result);

}  // namespace tenonnx
