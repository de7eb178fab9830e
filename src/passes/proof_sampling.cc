// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_sampling.h"

#include <algorithm>
#include <limits>

#include "base/status.h"
#include "metrics/elements.h"
#include "passes/proof_inputs.h"

namespace tenonnx {
namespace {

// A region of more nodes is half a model, and its inputs are no coordinates.
constexpr std::size_t kMostNodes = 400;
// Sets of one case, where a set holds few points.
constexpr std::int64_t kMostRounds = 12;

bool is_region_input(const ChangedRegion& region, std::string_view name) {
  return std::any_of(region.inputs.begin(), region.inputs.end(), [&](const RegionTensor& input) {
    return input.before == name && input.in_before;
  });
}

// All elements that hold the level's pixels come from the input as they are.
bool moves_pixels(const SampledLevel& level, const ElementMap& map) {
  for (const std::int64_t pixel : level.pixels) {
    const auto i = static_cast<std::size_t>(pixel);
    if (i >= map.from.size() || map.from[i] < 0 || map.scale[i] != 1 || map.offset[i] != 0)
      return false;
  }
  return true;
}

double farthest(const SampledLevel& level) {
  return level.padding == "zeros" ? std::numeric_limits<double>::infinity() : kFarthestPadded;
}

std::int64_t mapped_coordinates(const SampledLevel& level, const ElementMap& map) {
  std::int64_t count = 0;
  for (const std::int64_t point : level.points)
    for (std::size_t a = 0; a < level.size.size(); ++a)
      if (const auto i = static_cast<std::size_t>(point) + a; i < map.from.size())
        count += map.from[i] >= 0;
  return count;
}

}  // namespace

SamplingRegion::SamplingRegion(const Executor& executor, int threads, std::uint64_t seed,
                               const Model& before, const Model& after, const ChangedRegion& region,
                               const TensorMap& values, const std::set<std::string>& kept)
    : executor_(executor),
      threads_(threads),
      seed_(seed),
      before_(before),
      after_(after),
      region_(region),
      probe_(region),
      kept_(kept),
      nodes_(sampling_nodes(before, region.before)) {
  for (const RegionTensor& input : region.inputs)
    if (const auto it = values.find(input.before); it != values.end()) values_.insert(*it);
}

Status SamplingRegion::prepare() {
  real_ = {"real input", SamplingCase::kInside, values_};
  sessions_ = std::make_unique<RegionSessions>(executor_, threads_, seed_, before_, after_,
                                               std::vector<const ChangedRegion*>{&region_});
  if (region_.before.size() > kMostNodes) {
    notes_.push_back(
        fmt::format("no coordinates were made: the region had {} nodes", region_.before.size()));
    nodes_.clear();
    return {};
  }
  for (const std::string& name : sampling_tensors(before_, nodes_)) {
    if (is_region_input(region_, name) || before_.constant(name).ok()) continue;
    inner_.push_back(name);
    const bool given = std::any_of(probe_.outputs.begin(), probe_.outputs.end(),
                                   [&](const RegionTensor& one) { return one.before == name; });
    if (!given) probe_.outputs.push_back({name, name, true, false});
  }
  probe_sessions_ = std::make_unique<RegionSessions>(executor_, threads_, seed_, before_, after_,
                                                     std::vector<const ChangedRegion*>{&probe_});
  TENONNX_ASSIGN_OR_RETURN(const TensorMap tensors, run_probe(values_));
  levels_ = sampled_levels(before_, nodes_, tensors, notes_);
  TENONNX_RETURN_IF_ERROR(find_level_maps());
  find_images();
  make_coordinates();
  return {};
}

// What sampling_tensors() names, for these inputs of the region.
Result<TensorMap> SamplingRegion::run_probe(const TensorMap& inputs) {
  TensorMap out;
  if (!inner_.empty()) {
    TENONNX_ASSIGN_OR_RETURN(const TensorMap ran,
                             probe_sessions_->run(RegionForm::kBefore, inputs));
    for (std::size_t o = 0; o < probe_.outputs.size(); ++o)
      if (const auto it = ran.find(probe_sessions_->outputs()[0][o]); it != ran.end())
        out.emplace(probe_.outputs[o].before, it->second);
  }
  for (const std::string& name : sampling_tensors(before_, nodes_)) {
    if (out.contains(name)) continue;
    if (const auto it = inputs.find(name); it != inputs.end())
      out.insert(*it);
    else if (auto constant = before_.constant(name); constant.ok())
      out.emplace(name, std::move(constant).value());
  }
  return out;
}

Result<std::vector<Tensor>> SamplingRegion::run(RegionForm form, const TensorMap& inputs) {
  TENONNX_ASSIGN_OR_RETURN(const TensorMap ran, sessions_->run(form, inputs));
  std::vector<Tensor> out;
  for (const std::string& name : sessions_->outputs()[0])
    if (const auto it = ran.find(name); it != ran.end()) out.push_back(it->second);
  return out;
}

Status SamplingRegion::find_level_maps() {
  maps_.resize(levels_.size());
  std::vector<std::int64_t> best(levels_.size(), 0);
  const auto take = [&](const std::string& input, const std::string& target,
                        const ElementMap& map) {
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      LevelMaps& mine = maps_[l];
      if (levels_[l].value == target && mine.value_input.empty() && moves_pixels(levels_[l], map)) {
        mine.value_input = input;
        mine.value = map;
      }
      if (levels_[l].coordinates != target) continue;
      if (const std::int64_t count = mapped_coordinates(levels_[l], map); count > best[l]) {
        best[l] = count;
        mine.coordinate_input = input;
        mine.coordinates = map;
      }
    }
  };
  for (const RegionTensor& input : region_.inputs) {
    const auto value = values_.find(input.before);
    if (!input.in_before || value == values_.end() || !is_floating(value->second.dtype()) ||
        value->second.size() <= 0 || kept_.contains(input.before))
      continue;
    take(input.before, input.before, ElementMap::identity(value->second.size()));
    if (inner_.empty()) continue;
    // What does not run on these values has no map.
    const auto maps = find_maps([&](const TensorMap& inputs) { return run_probe(inputs); }, values_,
                                input.before, inner_);
    if (!maps.ok()) continue;
    for (const auto& [target, map] : *maps) take(input.before, target, map);
  }
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    if (maps_[l].coordinate_input.empty())
      notes_.push_back(fmt::format(
          "{}: no coordinates were made: the grid does not follow from one input of the region",
          levels_[l].node));
    if (maps_[l].value_input.empty())
      notes_.push_back(fmt::format(
          "{}: its taps were not read: what it samples is computed or constant in the region",
          levels_[l].node));
  }
  return {};
}

void SamplingRegion::find_images() {
  const auto source = [&](std::size_t l, std::int64_t pixel) {
    return maps_[l].value.from[static_cast<std::size_t>(pixel)];
  };
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    image_.push_back(l);
    for (std::size_t k = 0; k < l && !maps_[l].value_input.empty(); ++k) {
      if (maps_[k].value_input != maps_[l].value_input || levels_[k].size != levels_[l].size ||
          levels_[k].mode != levels_[l].mode ||
          levels_[k].pixels.size() != levels_[l].pixels.size() || levels_[l].pixels.empty() ||
          source(k, levels_[k].pixels.front()) != source(l, levels_[l].pixels.front()) ||
          source(k, levels_[k].pixels.back()) != source(l, levels_[l].pixels.back()))
        continue;
      image_[l] = k;
      break;
    }
  }
}

void SamplingRegion::make_coordinates() {
  std::int64_t fewest = 0;
  std::int64_t rounds = 1;
  std::set<std::string> value_inputs;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    if (!maps_[l].value_input.empty()) value_inputs.insert(maps_[l].value_input);
    const auto points = static_cast<std::int64_t>(levels_[l].points.size());
    if (maps_[l].coordinate_input.empty() || points == 0) continue;
    fewest = fewest == 0 ? points : std::min(fewest, points);
    // Levels that share their coordinates take turns.
    std::int64_t same = 0;
    for (std::size_t k = 0; k < levels_.size(); ++k)
      same += levels_[k].coordinates == levels_[l].coordinates &&
              levels_[k].points.front() == levels_[l].points.front();
    rounds = std::max(rounds, same);
  }
  if (fewest == 0) return;
  rounds = std::min(kMostRounds, std::max(rounds, (kDistinctPoints + fewest - 1) / fewest));
  std::set<std::string> others;
  for (const auto& [name, tensor] : values_)
    if (!value_inputs.contains(name)) others.insert(name);
  const TensorMap filled = make_inputs(MadeCase::kNormal, values_, others, seed_);
  std::array<std::vector<std::vector<double>>, kSamplingCases.size()> points;  // of each level
  for (std::size_t c = 0; c < kSamplingCases.size(); ++c)
    for (const SampledLevel& level : levels_)
      points[c].push_back(made_points(kSamplingCases[c], level.size,
                                      static_cast<std::int64_t>(level.points.size()) * rounds,
                                      seed_ + points[c].size(), farthest(level)));
  // `at`: of a level's point p the case, and the number of that case's point.
  const auto filled_with = [&](std::int64_t round, const auto& at) {
    CoordinateFill fill(filled);
    for (std::size_t turn = 0; turn < levels_.size(); ++turn) {
      const std::size_t l = (turn + static_cast<std::size_t>(round)) % levels_.size();
      const SampledLevel& level = levels_[l];
      const std::size_t axes = level.size.size();
      if (maps_[l].coordinate_input.empty()) continue;
      for (std::size_t p = 0; p < level.points.size(); ++p) {
        const auto [c, k] = at(level, p);
        fill.put(level, maps_[l].coordinates, maps_[l].coordinate_input, p,
                 std::span(points[c][l]).subspan(k * axes, axes));
      }
    }
    return fill.take();
  };
  for (std::size_t c = 0; c < kSamplingCases.size(); ++c) {
    for (std::int64_t round = 0; round < rounds; ++round) {
      const auto at = [&](const SampledLevel& level, std::size_t p) {
        return std::pair(c, static_cast<std::size_t>(round) * level.points.size() + p);
      };
      made_.push_back(
          {std::string(to_string(kSamplingCases[c])), kSamplingCases[c], filled_with(round, at)});
    }
  }
  // Where a tie or a point far outside is judged by itself, the sets stay apart.
  const bool apart = std::any_of(levels_.begin(), levels_.end(), [](const SampledLevel& level) {
    return level.mode == "nearest" || level.padding == "reflection";
  });
  constexpr auto kCases = static_cast<std::int64_t>(kSamplingCases.size());
  if (rounds > 1 || fewest < kCases * kDistinctPoints || apart) return;
  mixed_ = {"points of every case", SamplingCase::kInside,
            filled_with(0, [](const SampledLevel&, std::size_t p) {
              return std::pair(p % kSamplingCases.size(), p / kSamplingCases.size());
            })};
}

CoordinateFill::CoordinateFill(const TensorMap& values) : values_(values) {}

void CoordinateFill::put(const SampledLevel& level, const ElementMap& map, const std::string& input,
                         std::size_t point, std::span<const double> pixel) {
  Filled& filled = filled_[input];
  if (filled.values.empty()) {
    filled.values = to_doubles(values_.at(input));
    filled.set.assign(filled.values.size(), false);
  }
  for (std::size_t a = 0; a < pixel.size(); ++a) {
    const auto i = static_cast<std::size_t>(level.points[point]) + a;
    if (i >= map.from.size() || map.from[i] < 0) continue;
    const auto j = static_cast<std::size_t>(map.from[i]);
    if (filled.set[j]) continue;
    filled.set[j] = true;
    filled.values[j] = (level.from_pixel(pixel[a], a) - map.offset[i]) / map.scale[i];
  }
}

TensorMap CoordinateFill::take() {
  for (const auto& [name, filled] : filled_) {
    const Tensor& like = values_.at(name);
    values_.insert_or_assign(name, finite_tensor(like.dtype(), like.shape(), filled.values));
  }
  return std::move(values_);
}

bool SamplingRegion::reaches_all() const {
  if (levels_.empty() || made_.empty()) return false;
  for (std::size_t l = 0; l < levels_.size(); ++l)
    if (mapped_coordinates(levels_[l], maps_[l].coordinates) <
        static_cast<std::int64_t>(levels_[l].points.size() * levels_[l].size.size()))
      return false;
  return true;
}

}  // namespace tenonnx
