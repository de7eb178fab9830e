// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Runs both sides of a comparison and the computations that its noise floors are made of, window
// after window of tensors, and keeps figures only: the memory is that of a window on two sides.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "flow/compare_plan.h"
#include "flow/compare_tensor.h"
#include "flow/tensor_inputs.h"
#include "ort/executor.h"
#include "tenonnx/contract.h"

namespace tenonnx {

// A computation of the reference graph that is right and differs: its distance is the noise floor.
struct FloorRun {
  const Executor* executor = nullptr;
  Optimization optimization = Optimization::kDisabled;
  std::string origin;  // "the whole path in float16"
  // Run only where a tensor exceeds the limit of the others.
  bool when_exceeded = false;
};

struct WindowFigures {
  std::vector<std::pair<std::size_t, TensorComparison>> tensors;       // by position in the plan
  std::vector<std::pair<std::size_t, SelectionAgreement>> selections;  // the same
  bool empty() const { return tensors.empty() && selections.empty(); }
};

struct WindowsRequest {
  const ComparePlan* plan = nullptr;
  const Model* reference = nullptr;
  const Model* candidate = nullptr;
  const Executor* ref = nullptr;
  const Executor* on = nullptr;
  bool ref_is_recorded = false;  // cannot be run with the candidate's selections
  std::vector<FloorRun> floors;
  const TensorInputs* inputs = nullptr;
  const Contract* contract = nullptr;  // what declares ranges; nullptr: nothing does
  CompareSettings settings;
  LoadOptions load;         // of the candidate; the reference runs with optimisation disabled
  std::int64_t memory = 0;  // bytes of tensors at a time
  Progress progress;
  // What an earlier run has of window `begin`: then it is not run again; and what this one has.
  std::function<std::optional<WindowFigures>(std::size_t begin)> recall;
  std::function<Status(std::size_t begin, const WindowFigures&)> remember;
};

struct ComparedTensors {
  std::vector<std::optional<TensorComparison>> tensors;       // by the plan
  std::vector<std::optional<SelectionAgreement>> selections;  // by the plan
  std::size_t windows = 0, recalled = 0;
  std::size_t reused = 0;  // tensors whose figures an earlier run had
};

// Errors where a side does not load or run; a status says which side and which tensors.
Result<ComparedTensors> run_windows(const WindowsRequest& request);

// Of one tensor: what to look for in it.
CompareSettings settings_for(const PlannedTensor& tensor, CompareSettings settings);

}  // namespace tenonnx
