// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// One changed region on one input: what its outputs are against what they were.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "metrics/limit.h"
#include "passes/region_diff.h"
#include "passes/runner.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct JudgedRegion {
  Check worst;  // nearest to its limit; of those that fail, the one furthest beyond
  bool failed = false;
};

// `outputs`: the names of the region's outputs in the maps. `disturbed`: what the region before the
// pass gives when roundings disturb it, for an algebraic pass. `bound`: of a bounded pass.
JudgedRegion judge_region(PassClass exactness, const std::optional<Limit>& bound,
                          const ChangedRegion& region, const std::vector<std::string>& outputs,
                          const TensorMap& before, const TensorMap& after,
                          std::span<const TensorMap> disturbed);

}  // namespace tenonnx
