// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a comparison is between, opened and checked before anything runs: executors, models, their
// record of names, the contract and the inputs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flow/compare.h"
#include "flow/compare_tensor.h"
#include "flow/noise_path.h"
#include "flow/tensor_inputs.h"
#include "model/model.h"
#include "ort/executor.h"
#include "passes/name_record.h"
#include "tenonnx/contract.h"

namespace tenonnx {

struct CompareSetup {
  std::unique_ptr<Executor> ref, on;
  CompareSettings settings;
  DeviceForms forms;  // of the devices of `ref` and `on`
  Model source;       // the reference as it was given
  Model reference;    // the same, prepared
  Model other;        // the candidate's; empty where both sides run one model
  bool two_models = false;
  bool folded = false;     // constants of `reference` were folded
  NameRecord names;        // of the passes that made `other`
  std::string names_file;  // where that was read; "" for none
  Contract contract;
  bool contract_is_declared = false;  // read from a file, not guessed
  TensorInputs inputs;
  std::vector<std::string> notes;

  const Model& candidate() const { return two_models ? other : reference; }
};

// InvalidArgument for options that contradict each other; else as what is opened and read. What the
// progress of the options reports: load, prepare.
Result<CompareSetup> set_up_comparison(const CompareOptions& options);

// tenonnx, and what the executors say of what is below them; each entry once.
std::vector<std::pair<std::string, std::string>> versions_of(const CompareSetup& setup);

// Whether the executor holds recordings of `model`; the plan is then of what they hold.
Result<bool> add_recorded(const Executor& executor, const Model& model, PlanRequest& request);

// All that the figures of `command` depend on, as text: models, executors and their versions,
// options, names, contract, inputs. The key of a journal. Loads every input.
Result<std::string> comparison_key(const CompareOptions& options, const CompareSetup& setup,
                                   std::string_view command);

bool is_sim(std::string_view address);

}  // namespace tenonnx
