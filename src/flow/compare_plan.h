// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which tensors of a reference graph are compared with which of a candidate's, before anything
// runs.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "flow/selections.h"
#include "model/model.h"
#include "ort/capture.h"
#include "passes/name_record.h"

namespace tenonnx {

enum class TensorState : std::uint8_t {
  kCompared,
  kFused,        // a pass took it away: the record of names says which
  kUnmapped,     // the candidate has no tensor of that name
  kNotRecorded,  // a recording on one of the two sides does not hold it
};
// "compared", "fused", "unmapped", "not recorded"
std::string_view to_string(TensorState state);

struct PlannedTensor {
  ComputedTensor tensor;  // of the reference
  TensorState state = TensorState::kUnmapped;
  std::string candidate;  // its name in the candidate
  // Where it is there in another layout: Transpose(candidate, perm) is compared; else empty.
  std::vector<std::int64_t> perm;
  std::string why;   // why it is not compared
  std::string node;  // "Conv '/encoder/conv1'"
  std::string op_type;
  int axis = 0;            // of a Softmax
  std::set<int> behind;    // selections that it lies behind
  int selected_by = -1;    // the selection whose indices it is: judged as a set
  bool is_output = false;  // of the model
};

struct ComparePlan {
  std::vector<Selection> selections;           // of the reference
  std::vector<std::string> candidate_indices;  // their names in the candidate; "" where unmapped
  std::vector<std::string> missing_indices;    // of these: what to do about it
  std::vector<PlannedTensor> tensors;          // topological order
  // Empty, or how the candidate's outputs stand in another order than the reference's.
  std::string output_order;
  std::size_t count(TensorState state) const;
};

struct PlanRequest {
  const Model* reference = nullptr;
  const Model* candidate = nullptr;  // nullptr: the same graph on both sides
  std::string tensors = "all";       // "all" or a glob over the names (fnmatch: '*', '?', '[..]')
  // Instead of a glob: these and the outputs.
  std::optional<std::set<std::string>> boundary;
  const NameRecord* names = nullptr;
  std::string names_file;  // where they were read, for messages
  // What a recording on either side holds; nullopt where both compute.
  std::optional<std::set<std::string>> recorded;
};

// InvalidArgument where a glob matches nothing (the message has names that are near), nothing is
// left to compare, or the candidate does not give out what is chosen of the reference's outputs.
Result<ComparePlan> plan_comparison(const PlanRequest& request);

// Inputs of the two by name, dtype and shape (a dynamic dimension fits any): InvalidArgument, got
// against allowed.
Status check_same_inputs(const Model& reference, const Model& candidate);

}  // namespace tenonnx
