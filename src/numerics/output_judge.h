// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Whether outputs still mean what the reference's mean, for the many runs of a fault finder: the
// gates of a heterogeneous chain where images are decoded, else the noise floor of each output.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "flow/compare_setup.h"
#include "metrics/task_gates.h"

namespace tenonnx {

// Of one run over some or all of the inputs.
struct OutputFigures {
  bool passes = true;
  std::vector<std::string> failed;         // "scores cosine 0.789 >= 0.99"; or what is not finite
  double top_score = 0;                    // of the first input that was judged; 0 without a task
  double scores_cosine = 1;                // the least
  std::int64_t matched = 0, expected = 0;  // boxes
  // What bars are made of. With a task 1 - scores cosine and the mean of 1 - IoU over the boxes of
  // the reference (an unmatched one counts 1); without, the largest relative L2 of an output,
  // twice.
  double scores_error = 0, boxes_error = 0;
  std::size_t inputs = 0;
};

class OutputJudge {
 public:
  // Runs the reference (optimisation disabled) on every input, and without a task the noise floor.
  static Result<OutputJudge> make(const CompareSetup& setup, const LoadOptions& load,
                                  const Progress& progress);

  bool has_task() const { return has_task_; }
  std::size_t size() const { return inputs_.size(); }
  const ReferenceInput& input(std::size_t position) const { return inputs_[position]; }
  const TensorMap& reference(std::size_t position) const { return references_[position]; }
  double reference_top_score() const;
  // "gates of a heterogeneous chain", "8 x the noise floor of each output"
  const std::string& gate() const { return gate_; }

  // `outputs` of these inputs, under the reference's names, in the order of `positions`.
  Result<OutputFigures> judge(const std::vector<std::size_t>& positions,
                              const std::vector<TensorMap>& outputs) const;

 private:
  Status judge_task(std::size_t position, const TensorMap& outputs, TaskSummary& summary,
                    OutputFigures& figures) const;
  Status judge_tensors(std::size_t position, const TensorMap& outputs,
                       OutputFigures& figures) const;

  Contract contract_;
  bool has_task_ = false;
  double factor_ = 8;
  std::string gate_;
  std::vector<ReferenceInput> inputs_;
  std::vector<TensorMap> references_;
  std::vector<std::vector<Detection>> expected_;
  // By output, without a task: what another right computation differs by.
  struct Floor {
    double relative_l2 = 0;
    std::int64_t differing = 0;  // of integers: elements
  };
  std::vector<std::map<std::string, Floor>> floors_;
};

}  // namespace tenonnx
