// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The device level and the task level: a chain of segments against the whole model on the cpu, over
// the inputs, one at a time.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "flow/inputs.h"
#include "metrics/limit.h"
#include "metrics/task_gates.h"
#include "metrics/tensor_error.h"

namespace tenonnx {

// What one input gave on one side.
struct Observation {
  TensorMap boundaries;               // what crossed, by boundary name
  TensorMap outputs;                  // the model's, by name
  std::vector<Detection> detections;  // decoded; all of them, whatever their score
};

// Figures of one tensor over the inputs.
struct TensorFigures {
  std::string name;
  bool boundary = false;
  bool selected = false;  // rows need not correspond: ChainComparison::set_selected
  TensorError error;
};

class ChainComparison {
 public:
  // `order`: the tensors in the order in which they are computed, so that "first" means something.
  // Only those that both observations hold are compared.
  ChainComparison(TaskGates gates, std::vector<std::string> order)
      : gates_(std::move(gates)), order_(std::move(order)) {}

  // Tensors whose rows come in the order in which each side chose (selected_rows.h): their figures
  // are measured where the shapes are equal, and their cosine is no gate.
  void set_selected(std::set<std::string> tensors) { selected_ = std::move(tensors); }

  // InvalidArgument where the two sides' shapes differ. Integer tensors (labels) get no figures.
  Status add(const std::string& input, const Observation& reference, const Observation& candidate);

  // Inf or NaN first, then the features' cosines, then the task's gates.
  // With random inputs only Inf and NaN can fail, and the whole is INCONCLUSIVE: random scores are
  // nearly tied, and which of them are selected says nothing about images.
  std::vector<Check> checks(bool random_inputs) const;

  // The first tensor (in `order`) that has Inf or NaN where the reference is finite; or empty.
  std::string first_broken() const;
  std::vector<TensorFigures> figures() const;
  const TaskSummary& summary() const { return summary_; }
  // Boundaries that were compared, and how many of them are no gate, being selected.
  std::size_t boundaries() const;
  std::size_t selected_boundaries() const;
  const TaskGates& gates() const { return gates_; }
  // Of each input: figures of its tensors, of their rows (for diagnosis: they are not gated), and
  // its boxes.
  const Json& images() const { return images_; }

 private:
  struct State {
    bool boundary = false;
    TensorError error;
    std::string worst_input;  // with the smallest cosine
    std::string broken_input;
  };
  Check finite() const;

  TaskGates gates_;
  std::vector<std::string> order_;
  std::set<std::string> selected_;
  std::map<std::string, State> tensors_;
  TaskSummary summary_;
  Json images_ = Json::array();
};

}  // namespace tenonnx
