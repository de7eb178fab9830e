// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Per tensor the accumulated error, f~(x~) - f(x), beside its own, f~(x) - f(x): what is left of
// the first without the second was inherited.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "flow/compare_journal.h"
#include "flow/compare_setup.h"
#include "flow/compare_windows.h"
#include "numerics/decoupled.h"

namespace tenonnx {

struct TensorErrors {
  PlannedTensor plan;
  std::optional<TensorComparison> accumulated, own;
  // Beyond the limit of its noise floor by itself; false where that was not measured.
  bool own_fails() const { return own && own->check.verdict == Verdict::kFail; }
  bool accumulated_fails() const {
    return accumulated && accumulated->check.verdict == Verdict::kFail;
  }
};

struct SelectionError {
  Selection selection;
  // On the device's scores, and on the reference's.
  std::optional<SelectionAgreement> accumulated, own;
  // Margins that rounding of the scores explains: twice the limit of one score.
  double accumulated_limit = 0, own_limit = 0;
};

struct ErrorTable {
  std::vector<TensorErrors> tensors;  // topological order of the reference
  std::vector<SelectionError> selections;
  std::string own_missing;   // why there are no own errors; empty where there are
  std::string output_order;  // how the outputs stand in another order; empty where they do not
  std::size_t windows = 0, recalled = 0;
  std::size_t with_own() const;
  // Compared tensors whose every element is the reference's, of how many.
  std::size_t identical = 0, compared = 0;
};

// Tensors that both graphs have in one layout: the candidate's name -> the reference's.
FedTensors shared_tensors(const ErrorTable& table);

struct ErrorsRequest {
  const CompareSetup* setup = nullptr;
  LoadOptions load;         // of the candidate
  std::int64_t memory = 0;  // bytes of tensors at a time
  Progress progress;
  const CompareJournal* accumulated = nullptr;  // where figures are kept; nullptr: nowhere
  const CompareJournal* own = nullptr;
};

// Errors where a side does not load or run, as compare(). A device that does not take the graph of
// single pieces leaves own_missing.
Result<ErrorTable> measure_errors(const ErrorsRequest& request);

}  // namespace tenonnx
