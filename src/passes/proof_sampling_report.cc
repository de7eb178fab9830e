// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/status.h"
#include "metrics/elements.h"
#include "metrics/signal.h"
#include "model/shapes.h"
#include "passes/peak_memory.h"
#include "passes/proof_sampling.h"

namespace tenonnx {
namespace {

constexpr int kTimedRuns = 3;

double max_abs_error(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return std::numeric_limits<double>::infinity();
  const std::vector<double> x = to_doubles(a), y = to_doubles(b);
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double d = std::fabs(x[i] - y[i]);
    most = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(most, d);
  }
  return most;
}

// Whether a wrong tap on this set refutes the class. Where rounding decides between two pixels an
// algebraic form may take the other one.
bool counts(PassClass exactness, const SampledLevel& level, const SamplingInputs& inputs,
            bool made) {
  if (exactness == PassClass::kBitwise) return true;
  if (exactness == PassClass::kApproximate) return false;
  if (level.mode == "nearest") return made && inputs.made != SamplingCase::kTies;
  return !(level.padding == "reflection" && inputs.made == SamplingCase::kFar);
}

}  // namespace

void SamplingRegion::count_points(const TensorMap& inputs, bool made, SamplingProof& proof) {
  const auto tensors = run_probe(inputs);
  if (!tensors.ok()) return;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    const SampledLevel& level = levels_[l];
    const auto it = tensors->find(level.coordinates);
    if (it == tensors->end()) continue;
    const std::vector<double> grid = to_doubles(it->second);
    PointKinds& kinds = made ? proof.levels[l].made : proof.levels[l].real;
    std::vector<double> pixel(level.size.size());
    for (const std::int64_t point : level.points) {
      const auto at = static_cast<std::size_t>(point);
      if (at + pixel.size() > grid.size()) break;
      for (std::size_t a = 0; a < pixel.size(); ++a) pixel[a] = level.to_pixel(grid[at + a], a);
      kinds.count(pixel, level.size);
    }
  }
}

void SamplingRegion::add_errors(const TensorMap& inputs, bool made, SamplingProof& proof) {
  const auto was = run(RegionForm::kBefore, inputs);
  const auto is = run(RegionForm::kAfter, inputs);
  if (!was.ok() || !is.ok() || was->size() != is->size()) return;
  double& error = made ? proof.made_abs : proof.real_abs;
  std::int64_t& ulp = made ? proof.made_ulp : proof.real_ulp;
  for (std::size_t o = 0; o < was->size(); ++o) {
    if (!is_floating((*was)[o].dtype())) continue;
    error = std::max(error, max_abs_error((*was)[o], (*is)[o]));
    if (const auto found = max_ulp((*was)[o], (*is)[o], (*was)[o].dtype()); found.ok() && *found)
      ulp = std::max(ulp, **found);
  }
}

TapCount SamplingRegion::taps_of(std::size_t level, const TensorMap& inputs) {
  const auto side = [&](RegionForm form) {
    return [this, form](const TensorMap& values) { return run(form, values); };
  };
  return compare_taps(levels_[level], maps_[level].value, maps_[level].value_input, inputs,
                      side(RegionForm::kBefore), side(RegionForm::kAfter), bound_);
}

void SamplingRegion::add_taps(const SamplingInputs& inputs, bool made, PassClass exactness,
                              SamplingProof& proof) {
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    SampledLevelProof& level = proof.levels[l];
    if (maps_[l].value_input.empty()) continue;
    if (image_[l] != l) {
      level.taps_with = static_cast<int>(image_[l]);
      continue;
    }
    const TapCount found = taps_of(l, inputs.values);
    if (!found.problem.empty()) {
      if (level.taps.problem.empty())
        level.taps.problem = fmt::format("{}: {}", inputs.name, found.problem);
    } else {
      ++level.tap_sets;
      level.taps.taps += found.taps;
      level.taps.wrong += found.wrong;
      level.taps.index_difference = std::max(level.taps.index_difference, found.index_difference);
    }
    if (found.wrong == 0 && !found.problem.starts_with("after")) continue;
    if (!proof.breaks) find_break(inputs, made, l, proof);
    if (found.wrong > 0 && !failure_ && counts(exactness, levels_[l], inputs, made)) {
      failure_ = make_check("wrong taps", static_cast<double>(found.wrong), Comparison::kAtMost,
                            {0, "every tap of the old form"},
                            fmt::format("{} taps of {}, up to {:.3g} pixels away", found.taps,
                                        levels_[l].node, found.index_difference));
      failing_ = &inputs;
    }
  }
}

void SamplingRegion::find_break(const SamplingInputs& inputs, bool made, std::size_t image,
                                SamplingProof& proof) {
  for (std::size_t l = image; l < levels_.size(); ++l)
    if (image_[l] == image && find_break_of(inputs, made, l, proof)) return;
}

// The first point with which a tap is wrong, the points before it being as they are and those
// after it, and those of all other levels, where nothing is wrong: far outside, or in the middle.
bool SamplingRegion::find_break_of(const SamplingInputs& inputs, bool made, std::size_t level,
                                   SamplingProof& proof) {
  const SampledLevel& one = levels_[level];
  const LevelMaps& maps = maps_[level];
  if (maps.coordinate_input.empty() || one.points.empty()) return false;
  const auto tensors = run_probe(inputs.values);
  if (!tensors.ok() || !tensors->contains(one.coordinates)) return false;
  const std::vector<double> grid = to_doubles(tensors->at(one.coordinates));
  const auto aside = [&](const SampledLevel& of, bool far) {
    std::vector<double> pixel;
    for (const std::int64_t n : of.size)
      pixel.push_back(far ? -10.3 * static_cast<double>(n) : static_cast<double>(n / 2));
    return pixel;
  };
  const auto wrong = [&](std::size_t count, bool far) {
    CoordinateFill fill(inputs.values);
    for (std::size_t p = count; p < one.points.size(); ++p)
      fill.put(one, maps.coordinates, maps.coordinate_input, p, aside(one, far));
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      if (l == level || maps_[l].coordinate_input.empty() ||
          levels_[l].coordinates == one.coordinates)
        continue;
      for (std::size_t p = 0; p < levels_[l].points.size(); ++p)
        fill.put(levels_[l], maps_[l].coordinates, maps_[l].coordinate_input, p,
                 aside(levels_[l], far));
    }
    const TapCount found = taps_of(level, fill.take());
    return found.wrong > 0 || !found.problem.empty();
  };
  std::size_t first = 0;  // where no place is right, every point breaks
  for (const bool far : {true, false}) {
    if (wrong(0, far)) continue;
    if (!wrong(one.points.size(), far)) return false;
    std::size_t right = 0, beyond = one.points.size();  // right: nothing is wrong with so many
    while (beyond - right > 1) {
      const std::size_t middle = right + (beyond - right) / 2;
      (wrong(middle, far) ? beyond : right) = middle;
    }
    first = beyond - 1;
    break;
  }
  SamplingBreak found;
  found.node = one.node;
  found.level = one.level;
  found.where = made ? inputs.name + " (made)" : inputs.name;
  for (std::size_t a = 0; a < one.size.size(); ++a) {
    const auto at = static_cast<std::size_t>(one.points[first]) + a;
    if (at >= grid.size()) return false;
    found.grid.push_back(one.scale * grid[at] + one.offset);
    found.pixel.push_back(one.to_pixel(grid[at], a));
  }
  proof.breaks = std::move(found);
  return true;
}

void SamplingRegion::add_costs(SamplingProof& proof) {
  const ChangedRegion* const regions[] = {&region_};
  const RegionNames names(regions);
  // Shape inference does not know every operator; what the region gives is there to be seen.
  const auto bytes = [&](const Model& model, Side side, RegionForm form) -> std::int64_t {
    const auto part = regions_model(model, side, regions, names, values_);
    const auto ran = sessions_->run(form, values_);
    if (!part.ok() || !ran.ok()) return -1;
    TensorInfos infos = infer_shapes(*part);
    for (const auto& [name, tensor] : *ran)
      infos.insert_or_assign(name, TensorInfo{name, tensor.dtype(), tensor.shape(), true});
    std::vector<int> all(static_cast<std::size_t>(part->proto().graph().node_size()));
    std::iota(all.begin(), all.end(), 0);
    const auto peak = peak_memory(GraphIndex(part->proto().graph()), infos, all);
    return peak ? peak->bytes : -1;
  };
  proof.bytes_before = bytes(before_, Side::kBefore, RegionForm::kBefore);
  proof.bytes_after = bytes(after_, Side::kAfter, RegionForm::kAfter);
  const auto time = [&](RegionForm form) -> double {
    double least = -1;
    for (int i = 0; i < kTimedRuns; ++i) {
      const auto start = std::chrono::steady_clock::now();
      if (!run(form, values_).ok()) return -1;
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      least = least < 0 ? seconds : std::min(least, seconds);
    }
    return least;
  };
  proof.seconds_before = time(RegionForm::kBefore);
  proof.seconds_after = time(RegionForm::kAfter);
}

Result<SamplingProof> SamplingRegion::report(PassClass exactness, double bound) {
  SamplingProof proof;
  bound_ = bound;
  for (const SampledLevel& level : levels_) {
    SampledLevelProof one;
    one.level = level;
    one.level.points.clear();
    one.level.pixels.clear();
    one.level.places.clear();
    proof.levels.push_back(std::move(one));
  }
  for (const SamplingInputs& inputs : made_) {
    count_points(inputs.values, true, proof);
    add_errors(inputs.values, true, proof);
    if (!mixed_) add_taps(inputs, true, exactness, proof);
  }
  if (mixed_) add_taps(*mixed_, true, exactness, proof);
  count_points(values_, false, proof);
  add_errors(values_, false, proof);
  add_taps(real_, false, exactness, proof);
  add_costs(proof);
  proof.notes = notes_;
  return proof;
}

}  // namespace tenonnx
