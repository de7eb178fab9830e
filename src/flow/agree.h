// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// How well a simulated arithmetic stands for a device: graphs of one operator each, on both,
// element by element in steps of float16. `sim:` is never called exact; this says how far off it
// is, and where.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "device/device.h"
#include "flow/compare.h"
#include "ort/executor.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct AgreeOptions {
  std::string on;                 // the device: "qnn:soc=43,arch=73"
  std::string against;            // what is to stand for it: "sim:htp-v73"
  std::vector<std::string> only;  // operator types; empty: all of the pack
  double budget_seconds = 0;      // no case is begun after it; 0: none
  std::uint64_t seed = 1;
  // A device file that gets the figures of the pack: the arithmetic section's "agreement".
  std::filesystem::path write;
  bool own = false;  // of a model: each operator alone, from equal inputs
  LoadOptions load;
  Progress progress;
};

// Of one graph at one range of inputs.
struct Agreement {
  std::string op_type;
  std::string name;   // "MatMul, K = 4096"
  std::string range;  // "normal", "subnormal", "beyond 65504"; of a model's tensor ""
  std::int64_t elements = 0;
  std::int64_t within = 0;  // at most one step of float16 apart, or not finite in the same way
  double bias = 0;          // mean of device - simulation, in steps, where both are finite
  double worst = 0;         // the largest difference in steps, there
  double worst_device = 0, worst_simulated = 0;  // the two values
  std::int64_t finite = 0;                       // on both sides
  std::int64_t not_finite = 0;                   // finite on one side only
  std::string reason;  // why it is below 99 %, where the device file says it
  double share() const;
};

struct AgreeResult {
  std::string on, against;
  std::vector<std::pair<std::string, std::string>> versions;  // of both
  std::vector<Agreement> cases;
  std::vector<std::pair<std::string, std::string>> not_run;  // name, why
  std::string date;                                          // of the run
  // Of agree_on_model(): the file, what was fed, and `cases` has a tensor of the model each.
  std::string model, model_sha256, inputs;
};

// InvalidArgument: an address, or an operator that the pack does not have. A graph that one side
// does not take is among not_run.
Result<AgreeResult> agree(const AgreeOptions& options);

// The same of every tensor of a model, taken as added outputs of the whole graph; the differences
// are those that the graph before it has made as well; with `own` each operator alone, from what
// the simulation of the whole graph gives it, but those that only move values. `feed` says which
// model and which inputs; its executors are those of `options`. Tensors inside a GELU written with
// Erf are left out: a compiler that makes one operator of it refuses them as outputs.
Result<AgreeResult> agree_on_model(const AgreeOptions& options, const CompareOptions& feed);

// The figures of the pack, operator by operator.
MeasuredAgreement measured_agreement(const AgreeResult& result);

// docs/reference/json.md, "device agree".
Json to_json(const AgreeResult& result);
std::string describe(const AgreeResult& result);

// The difference of two values in steps of float16 at the larger of them: 2^-24 below the normal
// range, and steps of the exponents beyond 65504, which some devices have, above it.
double half_steps(double a, double b);

// Adds the elements of one tensor on both sides to `out`.
void add_elements(const Tensor& device, const Tensor& simulated, Agreement& out);

// The pack: a graph with one output of one operator. Inputs whose name begins with 'w' are weights:
// they become initializers.
struct AgreeCase {
  std::string op_type, name, text;
  enum class Values { kSigned, kPositive, kUnit } values = Values::kSigned;
  bool beyond = true;  // has a run with results or inputs beyond 65504
};
const std::vector<AgreeCase>& agree_cases();

}  // namespace tenonnx
