// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Some regions in their forms, each loaded when it is first run.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/model.h"
#include "ort/executor.h"
#include "passes/region_diff.h"
#include "passes/region_model.h"
#include "tenonnx/base.h"

namespace tenonnx {

enum class RegionForm : std::uint8_t {
  kBefore,
  kBeforeDisturbed,  // with disturbed constants (proof_inputs.h)
  kBeforeOptimized,  // at the runtime's full optimisation; all others with it disabled
  kAfter
};

class RegionSessions {
 public:
  RegionSessions(const Executor& executor, int threads, std::uint64_t seed, const Model& before,
                 const Model& after, std::vector<const ChangedRegion*> regions);

  const std::vector<const ChangedRegion*>& regions() const { return regions_; }
  // Names of the outputs, region by region.
  const std::vector<std::vector<std::string>>& outputs() const { return names_.outputs; }
  // `values`: the inputs of the regions by the names before the pass. A change of shape loads
  // again.
  Result<TensorMap> run(RegionForm form, const TensorMap& values);

 private:
  const Executor& executor_;
  const int threads_;
  const std::uint64_t seed_;
  const Model& before_;
  const Model& after_;
  std::vector<const ChangedRegion*> regions_;
  RegionNames names_;
  struct Loaded {
    std::unique_ptr<LoadedGraph> graph;
    std::string shapes;
  };
  std::array<Loaded, 4> loaded_;
};

// Writes old.onnx, new.onnx, inputs.npz, expected.npz (what the old region gave) and README.md to
// `directory`, whole or not at all; what an earlier run wrote there is replaced.
Status write_minimal_case(const std::filesystem::path& directory, std::string_view title,
                          const Model& before, const Model& after, const ChangedRegion& region,
                          const TensorMap& values, const TensorMap& expected);
// FailedPrecondition names the first file of `directory` that is of no minimal case in it.
Status holds_only_minimal_cases(const std::filesystem::path& directory);

}  // namespace tenonnx
