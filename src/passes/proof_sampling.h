// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The part of a proof that a region with sampling nodes gets beside what every region gets
// (proof.h): coordinates made to reach every case (proof_sampling_cases.h) at every level, and a
// report of the taps (proof_sampling_taps.h), on these and on the real tensors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "metrics/limit.h"
#include "model/model.h"
#include "ort/executor.h"
#include "passes/proof_sampling_cases.h"
#include "passes/proof_sampling_map.h"
#include "passes/proof_sampling_sites.h"
#include "passes/proof_sampling_taps.h"
#include "passes/region_sessions.h"
#include "passes/runner.h"

namespace tenonnx {

// One image that the region sampled before the pass.
struct SampledLevelProof {
  SampledLevel level;     // without its points and pixels
  PointKinds made, real;  // of the coordinates that were made, of the first real input
  TapCount taps;          // over all of both
  int tap_sets = 0;       // sets of coordinates that the taps were read off at
  // Of several that sample one image the taps are counted together, with the first: its number.
  int taps_with = -1;
};

// The first point at which a tap is wrong.
struct SamplingBreak {
  std::string node;
  int level = 0;
  std::string where;                // the set of coordinates: "points outside (made)"
  std::vector<double> grid, pixel;  // x first
};

struct SamplingProof {
  std::vector<SampledLevelProof> levels;
  std::optional<SamplingBreak> breaks;
  // Outputs of the region, after against before: over what was made, and on the first real input.
  double made_abs = 0, real_abs = 0;
  std::int64_t made_ulp = -1, real_ulp = -1;  // -1: not known
  // What the region allocates, from shapes; -1 where they are not known.
  std::int64_t bytes_before = -1, bytes_after = -1;
  // One run on the first real input with the executor of the proof, the least of three.
  double seconds_before = -1, seconds_after = -1;
  std::vector<std::string> notes;
};

Json to_json(const SamplingProof& proof);

// Inputs for the region with the coordinates of one case.
struct SamplingInputs {
  std::string name;  // "points outside"
  SamplingCase made = SamplingCase::kInside;
  TensorMap values;
};

// Coordinates at the inputs that they follow from. The first one that is put somewhere stays.
class CoordinateFill {
 public:
  explicit CoordinateFill(const TensorMap& values);
  // `pixel`: x first.
  void put(const SampledLevel& level, const ElementMap& map, const std::string& input,
           std::size_t point, std::span<const double> pixel);
  TensorMap take();

 private:
  struct Filled {
    std::vector<double> values;
    std::vector<bool> set;
  };
  TensorMap values_;
  std::map<std::string, Filled> filled_;
};

class SamplingRegion {
 public:
  // Everything must outlive it. `values`: inputs of the region by the names before the pass, and
  // its outputs if they are there. `kept`: inputs that are constant.
  SamplingRegion(const Executor& executor, int threads, std::uint64_t seed, const Model& before,
                 const Model& after, const ChangedRegion& region, const TensorMap& values,
                 const std::set<std::string>& kept);

  // False where the region had no sampling node; nothing else means anything then.
  bool samples() const { return !nodes_.empty(); }
  // Finds the levels and makes the coordinates. Errors are for what does not run.
  Status prepare();
  const std::vector<SamplingInputs>& made() const { return made_; }
  // Every level can be reached, so that what holds on made() holds for every case.
  bool reaches_all() const;
  // Judges and describes. `bound`: of a bounded pass, 0 of any other. `failure`: a tap that is
  // wrong where the class allows none, and the set.
  Result<SamplingProof> report(PassClass exactness, double bound);
  const std::optional<Check>& failure() const { return failure_; }
  const SamplingInputs* failing() const { return failing_; }

 private:
  struct LevelMaps {
    std::string value_input, coordinate_input;  // empty: there is none
    ElementMap value, coordinates;
  };
  Result<TensorMap> run_probe(const TensorMap& inputs);
  Result<std::vector<Tensor>> run(RegionForm form, const TensorMap& inputs);
  Status find_level_maps();
  void find_images();
  void make_coordinates();
  void count_points(const TensorMap& inputs, bool made, SamplingProof& proof);
  void add_errors(const TensorMap& inputs, bool made, SamplingProof& proof);
  void add_taps(const SamplingInputs& inputs, bool made, PassClass exactness, SamplingProof& proof);
  void find_break(const SamplingInputs& inputs, bool made, std::size_t image, SamplingProof& proof);
  // False where nothing is wrong with the points of this level alone.
  bool find_break_of(const SamplingInputs& inputs, bool made, std::size_t level,
                     SamplingProof& proof);
  void add_costs(SamplingProof& proof);
  TapCount taps_of(std::size_t level, const TensorMap& inputs);

  const Executor& executor_;
  const int threads_;
  const std::uint64_t seed_;
  const Model& before_;
  const Model& after_;
  const ChangedRegion& region_;
  ChangedRegion probe_;  // the region before, with values and coordinates as outputs
  TensorMap values_;     // inputs of the region
  const std::set<std::string>& kept_;
  std::vector<int> nodes_;
  std::vector<std::string> inner_;  // of sampling_tensors(): made inside of the region
  std::unique_ptr<RegionSessions> sessions_, probe_sessions_;
  std::vector<SampledLevel> levels_;
  std::vector<LevelMaps> maps_;
  std::vector<std::size_t> image_;  // of each level: the first level that samples the same image
  std::vector<SamplingInputs> made_;
  std::optional<SamplingInputs> mixed_;  // all cases in one set, where there are points enough
  double bound_ = 0;
  std::vector<std::string> notes_;
  std::optional<Check> failure_;
  const SamplingInputs* failing_ = nullptr;
  SamplingInputs real_;
};

}  // namespace tenonnx
