// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The two sides of agree() and agree_on_model().
#pragma once

#include <memory>
#include <vector>

#include "flow/agree.h"

namespace tenonnx {

inline constexpr double kGoodShare = 0.99;  // of the elements within a step

struct AgreeSides {
  std::unique_ptr<Executor> device, simulation;
  // The device without a fallback, and what it has computed before from the cache.
  LoadOptions on_device, on_simulation;
  std::vector<CannotAgree> reasons;  // of the simulation's device file

  // Agreement::reason of a case that is below kGoodShare, where one is known.
  void set_reason(Agreement& one) const;
};

// Sets the result's addresses, versions and date.
Result<AgreeSides> open_sides(const AgreeOptions& options, AgreeResult& result);

}  // namespace tenonnx
