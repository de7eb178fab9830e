// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// An error that was measured or made up, put into the reference at one tensor: what it does to the
// outputs and to the detections, at rising doses. What `inject` does.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "flow/compare.h"
#include "metrics/task_gates.h"
#include "passes/sim_round.h"

namespace tenonnx {

// "gauss:SIGMA" (added, in units of the tensor's own rms), "scale:FACTOR" (multiplied),
// "round:fp16|bf16" (stored; what the type cannot hold is infinite), "round:DEVICE" (stored as the
// arithmetic of that device file says, so with its overflow), "FILE.npz" (added; an array named as
// the tensor, or the only one), "replace:FILE.npz" (in place of it).
struct InjectedError {
  enum class Kind { kGauss, kScale, kRound, kAdd, kReplace } kind = Kind::kGauss;
  double amount = 0;           // gauss, scale
  RoundSpec rounding;          // round
  std::string device;          // round: a device file; then round_as_made_by() goes first
  std::filesystem::path file;  // add, replace
  Tensor array;                // what the file holds: read_error_file()
  std::string text;            // as it was given
};
// InvalidArgument says what is possible.
Result<InjectedError> parse_error(const std::string& text);

// Fills `array` where there is a file. NotFound where it has no array for `tensor`.
Status read_error_file(InjectedError& error, const std::string& tensor);

// How `error.device` stores results of an operator type ("": of a graph's inputs).
Status round_as_made_by(std::string_view op_type, InjectedError& error);

// `y` with `dose` of the error: y + dose * (erroneous - y). Elements that are not finite stay.
// Seeded by `seed`: the same draw at every dose. InvalidArgument where an array does not fit.
Result<Tensor> with_error(const Tensor& y, const InjectedError& error, const std::string& tensor,
                          double dose, std::uint64_t seed);

struct InjectOptions {
  CompareOptions common;  // as of ProbeOptions; `on` is not used
  std::string at;         // a tensor, or a suffix that only one has
  std::string error;
  std::vector<double> doses = {0.25, 0.5, 1, 2, 4};
};

struct InjectedDose {
  double dose = 0;
  double relative_l2 = 0;  // of the tensor's error to it, largest over the inputs
  std::vector<std::pair<std::string, double>> outputs;  // floating: largest relative L2
  TaskSummary task;                 // against the reference without the error; of images
  double reference_top_score = 0;   // of the first input
  std::optional<double> top_score;  // the same; nothing where it cannot be judged
  bool moves_task = false;          // a gate of a heterogeneous chain fails, or there is no judging
  // Images whose detections are no numbers; they are not in `task`. The first one and why.
  std::int64_t unjudged = 0;
  std::string unjudged_why;
  // Elements of the tensor that the error turns into Inf or NaN: the most of an input.
  std::int64_t not_finite = 0;
};

struct InjectResult {
  std::string model, sha256, ref, inputs, tensor, node, error;
  bool random_inputs = false;
  bool has_task = false;            // detections were decoded
  std::vector<InjectedDose> doses;  // rising
  std::vector<std::string> notes;
  // The least dose that moves the task; nothing where none does.
  std::optional<double> least_moving() const;
};

Result<InjectResult> inject(const InjectOptions& options);

// docs/reference/json.md, "inject".
Json to_json(const InjectResult& result);
std::string describe(const InjectResult& result);

}  // namespace tenonnx
