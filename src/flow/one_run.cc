// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/one_run.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>
#include <utility>

#include "adapters/sim.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/wording.h"
#include "flow/equal_constants.h"
#include "model/graph.h"
#include "passes/constant_part.h"
#include "passes/idle_region.h"
#include "passes/proof_floor.h"
#include "passes/proof_inputs.h"
#include "passes/proof_judge.h"
#include "passes/region_sessions.h"

namespace tenonnx {
namespace {

// What is kept of a run for floors; beyond, two runs need less.
constexpr std::int64_t kMostKeptBytes = std::int64_t{1} << 30;
constexpr std::uint64_t kSeed = 7;

using Renamed = std::map<std::string, std::string>;

// Only what both graphs have: a pass may have spoken of a constant that is computed here.
Renamed known_names(const GraphIndex& before, const GraphIndex& after, const Renamed& renamed) {
  Renamed known;
  for (const auto& [from, to] : renamed) {
    const Value* was = before.find(from);
    if (was != nullptr && after.find(to) != nullptr && !was->is_initializer())
      known.emplace(from, to);
  }
  return known;
}

bool same_opsets(const Model& a, const Model& b) {
  const auto& imports = a.proto().opset_import();
  return std::all_of(imports.begin(), imports.end(), [&](const auto& opset) {
    const std::int64_t other = b.opset(opset.domain());
    return other == 0 || other == opset.version();
  });
}

void take_worst(const Check& check, std::optional<Check>& worst) {
  if (!worst || severity(check) > severity(*worst)) worst = check;
}

}  // namespace

Result<std::unique_ptr<OneRun>> OneRun::prepare(const Model& before, const Model& after,
                                                const Renamed& renamed, PassClass exactness,
                                                const Executor& executor, const LoadOptions& load) {
  if (!same_opsets(before, after)) return std::unique_ptr<OneRun>();
  std::unique_ptr<OneRun> made(new OneRun(after, exactness, executor, load));
  made->infos_ = infer_shapes(after);
  const auto image = [&](std::string_view name) {
    const auto it = renamed.find(std::string(name));
    return it == renamed.end() ? std::string(name) : it->second;
  };
  auto computed =
      compute_constants(before, [&](std::string_view tensor) -> std::optional<TensorInfo> {
        const auto info = made->infos_.find(image(tensor));
        if (info == made->infos_.end()) return std::nullopt;
        return info->second;
      });
  if (!computed.ok()) return std::unique_ptr<OneRun>();
  made->before_ = std::move(computed->model);
  const GraphIndex after_index(after.proto().graph());
  for (const auto& [tensor, shape] : computed->shapes) {
    const std::string there = image(tensor);
    if (after_index.find(there) == nullptr) return std::unique_ptr<OneRun>();
    made->assumed_.emplace(there, Assumed{shape, {}});
  }
  Renamed names = known_names(GraphIndex(made->before_.proto().graph()), after_index, renamed);
  add_equal_constants(made->before_, after, names);
  auto diff = diff_graphs(made->before_, after, names, "(all)");
  if (!diff.ok()) return std::unique_ptr<OneRun>();
  made->diff_ = std::move(*diff);
  if (!made->find_parts() || !made->join().ok()) return std::unique_ptr<OneRun>();
  return made;
}

std::optional<Shape> OneRun::static_shape(const std::string& tensor) const {
  const auto info = infos_.find(tensor);
  if (info == infos_.end() || !info->second.has_rank || element_count(info->second.shape) < 0)
    return std::nullopt;
  return info->second.shape;
}

bool OneRun::find_parts() {
  const GraphIndex before(before_.proto().graph()), after(after_.proto().graph());
  for (const ChangedRegion& region : diff_.regions) {
    for (const auto* list : {&region.inputs, &region.outputs})
      for (const RegionTensor& tensor : *list) {
        const auto info = infos_.find(tensor.after);
        if (tensor.before.empty() || after.find(tensor.after) == nullptr || info == infos_.end() ||
            info->second.dtype == DType::kUndefined)
          return false;
      }
    if (exactness_ == PassClass::kAlgebraic && !region.inputs.empty() &&
        gave_its_input(before_, before, region, static_shape(region.inputs.front().after))) {
      ++idle_;
      continue;
    }
    Part part;
    part.region = &region;
    if (exactness_ == PassClass::kAlgebraic)
      part.strip = strip_of(before, after, region, [&](const RegionTensor& input) {
                     return static_shape(input.after);
                   }).value_or(Strip());
    parts_.push_back(std::move(part));
  }
  return true;
}

Status OneRun::join_parts(Strip strip, JoinedGraph& joined) {
  std::vector<Part*> parts;
  std::vector<const ChangedRegion*> regions;
  for (Part& part : parts_)
    if (part.strip == strip) {
      parts.push_back(&part);
      regions.push_back(part.region);
    }
  // What is left of a tensor.
  const auto part_of = [&](TensorInfo info) {
    if (strip.axis > 0 && size_along(info.shape, strip.axis) > strip.rows)
      info.shape[info.shape.size() - strip.axis] = strip.rows;
    return info;
  };
  std::map<std::string, std::string> taken;  // before -> tensor of the joined graph
  TensorInfos infos;
  for (Part* part : parts)
    for (const RegionTensor& input : part->region->inputs) {
      const TensorInfo& whole = infos_.at(input.after);
      TensorInfo info = part_of(whole);
      if (const auto [it, fresh] = taken.try_emplace(input.before, input.after);
          fresh && info.shape != whole.shape)
        it->second = joined.first(
            input.after, static_cast<std::int64_t>(info.shape.size() - strip.axis), strip.rows);
      part->borders.push_back(input.before);
      infos.insert_or_assign(input.before, std::move(info));
    }
  const RegionNames names(regions);
  const auto tensor_of = [&](const std::string& name) -> const std::string& {
    return taken.at(name);
  };
  TENONNX_ASSIGN_OR_RETURN(const Model was,
                           regions_model(before_, Side::kBefore, regions, names, infos));
  const auto old_outputs = joined.add(was, tensor_of);
  std::map<std::string, std::string> new_outputs;
  if (strip.axis > 0) {
    TENONNX_ASSIGN_OR_RETURN(const Model is,
                             regions_model(after_, Side::kAfter, regions, names, infos));
    new_outputs = joined.add(is, tensor_of);
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    Part& part = *parts[p];
    part.outputs = names.outputs[p];
    if (part.outputs.empty()) continue;
    JoinedGraph::Comparison comparison;
    comparison.part = &part - parts_.data();
    for (std::size_t o = 0; o < part.outputs.size(); ++o) {
      const std::string& after = part.region->outputs[o].after;
      comparison.a.push_back(old_outputs.at(part.outputs[o]));
      comparison.b.push_back(strip.axis > 0 ? new_outputs.at(part.outputs[o]) : after);
      comparison.when.push_back(after);
    }
    for (const RegionTensor& input : part.region->inputs) {
      comparison.when.push_back(input.after);
      if (exactness_ == PassClass::kAlgebraic) comparison.more.push_back(taken.at(input.before));
    }
    if (strip.axis > 0) beyond_.push_back(joined.beyond(comparison.when));
    joined.compare(comparison);
  }
  return {};
}

Status OneRun::join() {
  JoinedGraph joined(after_);
  std::set<Strip> strips;
  for (const Part& part : parts_) strips.insert(part.strip);
  for (const Strip& strip : strips) TENONNX_RETURN_IF_ERROR(join_parts(strip, joined));
  for (auto& [tensor, assumed] : assumed_) assumed.output = joined.give_shape(tensor);
  const auto executor =
      make_proof_executor([this](std::int64_t part, std::span<const Tensor> tensors) {
        judge_here(parts_.at(static_cast<std::size_t>(part)), tensors);
      });
  TENONNX_ASSIGN_OR_RETURN(graph_, executor->load(joined.finish(), load_));
  return {};
}

void OneRun::judge_here(Part& part, std::span<const Tensor> tensors) {
  Outcome& outcome = part.outcome;
  outcome.differs = true;
  if (exactness_ != PassClass::kAlgebraic) return;
  const std::size_t count = part.outputs.size();
  std::int64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.bytes());
  TensorMap was, is;
  for (std::size_t o = 0; o < count; ++o) {
    was.emplace(part.outputs[o], tensors[o]);
    is.emplace(part.outputs[o], tensors[count + o]);
  }
  const JudgedRegion judged =
      judge_region(PassClass::kAlgebraic, std::nullopt, *part.region, part.outputs, was, is, {});
  if (!judged.failed) {
    outcome.worst = judged.worst;
    return;
  }
  kept_bytes_ += bytes;
  if (kept_bytes_ > kMostKeptBytes) return;
  outcome.kept = true;
  for (auto& [name, tensor] : was) outcome.was.emplace(name, tensor.clone());
  for (auto& [name, tensor] : is) outcome.is.emplace(name, tensor.clone());
  for (std::size_t b = 0; b < part.borders.size(); ++b)
    outcome.borders.emplace(part.borders[b], tensors[2 * count + b].clone());
}

bool OneRun::shapes_hold(const TensorMap& outputs) const {
  return std::all_of(assumed_.begin(), assumed_.end(), [&](const auto& one) {
    const Shape& shape = one.second.shape;
    const Tensor& found = outputs.at(one.second.output);
    return found.size() == static_cast<std::int64_t>(shape.size()) &&
           std::equal(shape.begin(), shape.end(), found.data<std::int64_t>());
  });
}

Result<std::optional<OneRun::Found>> OneRun::run(const TensorMap& inputs) {
  for (Part& part : parts_) part.outcome = Outcome();
  kept_bytes_ = 0;
  TENONNX_ASSIGN_OR_RETURN(const TensorMap outputs, graph_->run(inputs));
  if (!shapes_hold(outputs)) return std::optional<Found>();
  // Other rows of a part on a strip might overflow where the strip does not.
  for (const std::string& count : beyond_)
    if (outputs.at(count).data<std::int64_t>()[0] != 0) return std::optional<Found>();
  Found found;
  std::map<Strip, Parts> beyond;
  for (Part& part : parts_) {
    const Outcome& outcome = part.outcome;
    if (!outcome.differs) continue;
    if (!outcome.worst && !outcome.kept) return std::optional<Found>();
    ++found.differing;
    if (outcome.worst)
      take_worst(*outcome.worst, found.worst);
    else
      beyond[part.strip].push_back(&part);
  }
  for (const auto& [strip, parts] : beyond) {
    TENONNX_ASSIGN_OR_RETURN(const bool right, judge(parts, found));
    if (!right) return std::optional<Found>();
  }
  for (const TensorInfo& output : after_.outputs())
    found.outputs.emplace(output.name, outputs.at(output.name));
  return std::optional<Found>(std::move(found));
}

// Measures no more of the floor than what explains the difference, which each disturbance can only
// raise. The first disturbance needs no other weights.
Result<bool> OneRun::judge(Parts parts, Found& found) const {
  const Parts all = parts;
  std::vector<const ChangedRegion*> regions;
  TensorMap values, was, is;
  for (const Part* part : all) {
    regions.push_back(part->region);
    for (const auto& [name, tensor] : part->outcome.borders) values.insert_or_assign(name, tensor);
    for (const auto& [name, tensor] : part->outcome.was) was.emplace(name, tensor);
    for (const auto& [name, tensor] : part->outcome.is) is.emplace(name, tensor);
  }
  RegionSessions sessions(executor_, load_.intra_op_threads, kSeed, before_, after_, regions);
  const TensorMap inputs = region_inputs(Side::kBefore, regions, values);
  std::vector<TensorMap> disturbed;
  for (const RegionForm form :
       {RegionForm::kBefore, RegionForm::kBeforeDisturbed, RegionForm::kBeforeOptimized}) {
    TENONNX_ASSIGN_OR_RETURN(TensorMap run,
                             sessions.run(form, form == RegionForm::kBeforeOptimized
                                                    ? inputs
                                                    : disturb(inputs, kSeed + disturbed.size())));
    TensorMap named;
    for (std::size_t p = 0; p < all.size(); ++p)
      for (std::size_t o = 0; o < all[p]->outputs.size(); ++o)
        named.insert_or_assign(all[p]->outputs[o], run.at(sessions.outputs()[p][o]));
    disturbed.push_back(std::move(named));
    std::vector<JudgedRegion> judged(parts.size());
    TENONNX_RETURN_IF_ERROR(parallel_for(parts.size(), 0, [&](std::size_t p) {
      judged[p] = judge_region(PassClass::kAlgebraic, std::nullopt, *parts[p]->region,
                               parts[p]->outputs, was, is, disturbed);
      return Status();
    }));
    Parts left;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (judged[p].failed)
        left.push_back(parts[p]);
      else
        take_worst(judged[p].worst, found.worst);
    }
    parts = std::move(left);
    if (parts.empty()) return true;
  }
  return false;
}

std::string OneRun::description() const {
  std::string text =
      fmt::format("{} of both graphs ran once, {} of the old one on the same tensors",
                  counted(diff_.unchanged, "node"), counted(parts_.size(), "changed part"));
  const auto on_strips = std::count_if(parts_.begin(), parts_.end(),
                                       [](const Part& part) { return part.strip.axis > 0; });
  if (on_strips > 0) text += fmt::format(" ({} on some of their rows)", on_strips);
  if (idle_ > 0)
    text += fmt::format(", {} with 0 or 1 that {} nothing left out", counted(idle_, "operation"),
                        idle_ == 1 ? "changes" : "change");
  return text;
}

}  // namespace tenonnx
