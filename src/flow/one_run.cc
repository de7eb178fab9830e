// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/one_run.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <utility>

#include "base/parallel.h"
#include "base/status.h"
#include "base/wording.h"
#include "flow/equal_constants.h"
#include "model/graph.h"
#include "passes/constant_part.h"
#include "passes/local_region.h"
#include "passes/proof_floor.h"
#include "passes/proof_inputs.h"
#include "passes/proof_judge.h"
#include "passes/region_sessions.h"
#include "passes/rounding_region.h"

namespace tenonnx {
namespace {

// What is kept of a run for floors; beyond, two runs need less.
constexpr std::int64_t kMostKeptBytes = std::int64_t{1} << 30;
// Kept whatever the region does: less than a second run costs.
constexpr std::int64_t kAlwaysKeptBytes = 64 << 10;
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

std::int64_t bytes_of(const TensorInfo& info) {
  return std::max<std::int64_t>(0, element_count(info.shape)) *
         static_cast<std::int64_t>(size_of(info.dtype));
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
    std::int64_t bytes = 0;
    for (const auto* list : {&region.inputs, &region.outputs})
      for (const RegionTensor& tensor : *list) {
        const auto info = infos_.find(tensor.after);
        if (tensor.before.empty() || after.find(tensor.after) == nullptr || info == infos_.end() ||
            info->second.dtype == DType::kUndefined)
          return false;
        bytes += bytes_of(info->second);
      }
    Part part;
    part.region = &region;
    if (exactness_ == PassClass::kAlgebraic) {
      part.axis = strip_axis(before, after, region, [&](const RegionTensor& input) {
                    return static_shape(input.after);
                  }).value_or(0);
      part.kept = part.axis > 0 || bytes < kAlwaysKeptBytes ||
                  may_round_otherwise(before_, before, after, region);
    }
    borders_[part.axis];
    parts_.push_back(std::move(part));
  }
  return true;
}

Status OneRun::join_parts(std::size_t axis, JoinedGraph& joined, std::int64_t& kept_bytes) {
  std::vector<Part*> parts;
  std::vector<const ChangedRegion*> regions;
  for (Part& part : parts_)
    if (part.axis == axis) {
      parts.push_back(&part);
      regions.push_back(part.region);
    }
  // What is left of a tensor.
  const auto part_of = [&](TensorInfo info) {
    if (axis > 0 && size_along(info.shape, axis) > kStripRows)
      info.shape[info.shape.size() - axis] = kStripRows;
    return info;
  };
  Borders& borders = borders_[axis];
  Borders taken;
  TensorInfos infos;
  for (const Part* part : parts)
    for (const RegionTensor& input : part->region->inputs) {
      const TensorInfo& whole = infos_.at(input.after);
      TensorInfo info = part_of(whole);
      if (const auto [it, fresh] = taken.try_emplace(input.before, input.after);
          fresh && info.shape != whole.shape)
        it->second = joined.first(input.after, static_cast<std::int64_t>(info.shape.size() - axis),
                                  kStripRows);
      if (part->kept && borders.emplace(input.before, taken.at(input.before)).second)
        kept_bytes += bytes_of(info);
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
  if (axis > 0) {
    TENONNX_ASSIGN_OR_RETURN(const Model is,
                             regions_model(after_, Side::kAfter, regions, names, infos));
    new_outputs = joined.add(is, tensor_of);
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    Part& part = *parts[p];
    for (std::size_t o = 0; o < part.region->outputs.size(); ++o) {
      const std::string& name = names.outputs[p][o];
      const std::string& after = part.region->outputs[o].after;
      part.was.push_back(old_outputs.at(name));
      part.is.push_back(axis > 0 ? new_outputs.at(name) : after);
      part.counts.push_back(joined.compare(part.was.back(), part.is.back(), after));
      if (part.kept) kept_bytes += 2 * bytes_of(part_of(infos_.at(after)));
    }
  }
  return {};
}

Status OneRun::join() {
  for (Part& part : parts_) {
    part.was.clear();
    part.is.clear();
    part.counts.clear();
  }
  JoinedGraph joined(after_);
  std::int64_t kept_bytes = 0;
  for (auto& [axis, borders] : borders_) {
    borders.clear();
    TENONNX_RETURN_IF_ERROR(join_parts(axis, joined, kept_bytes));
  }
  if (kept_bytes > kMostKeptBytes)
    return FailedPrecondition("{} bytes at the borders of regions", kept_bytes);
  const GraphIndex after(after_.proto().graph());
  for (const auto& [axis, borders] : borders_)
    for (const auto& [tensor, there] : borders)
      if (const Value* value = after.find(there); value == nullptr || value->producer >= 0)
        joined.give(there);
  for (const Part& part : parts_) {
    if (!part.kept) continue;
    for (const auto* list : {&part.was, &part.is})
      for (const std::string& tensor : *list) joined.give(tensor);
  }
  for (auto& [tensor, assumed] : assumed_) assumed.output = joined.give_shape(tensor);
  TENONNX_ASSIGN_OR_RETURN(graph_, executor_.load(joined.finish(), load_));
  return {};
}

Result<TensorMap> OneRun::values_of(const std::map<std::string, std::string>& borders,
                                    const TensorMap& inputs, const TensorMap& outputs) const {
  TensorMap values;
  for (const auto& [before, there] : borders) {
    if (const auto it = outputs.find(there); it != outputs.end()) {
      values.insert_or_assign(before, it->second);
    } else if (const auto given = inputs.find(there); given != inputs.end()) {
      values.insert_or_assign(before, given->second);
    } else {
      TENONNX_ASSIGN_OR_RETURN(Tensor constant, after_.constant(there));
      values.insert_or_assign(before, std::move(constant));
    }
  }
  return values;
}

bool OneRun::shapes_hold(const TensorMap& outputs) const {
  return std::all_of(assumed_.begin(), assumed_.end(), [&](const auto& one) {
    const Shape& shape = one.second.shape;
    const Tensor& found = outputs.at(one.second.output);
    return found.size() == static_cast<std::int64_t>(shape.size()) &&
           std::equal(shape.begin(), shape.end(), found.data<std::int64_t>());
  });
}

OneRun::Parts OneRun::differing(const TensorMap& outputs) {
  Parts out;
  for (Part& part : parts_)
    if (std::any_of(part.counts.begin(), part.counts.end(), [&](const std::string& count) {
          return outputs.at(count).data<std::int64_t>()[0] != 0;
        }))
      out.push_back(&part);
  return out;
}

Result<std::optional<OneRun::Found>> OneRun::run(const TensorMap& inputs) {
  const auto all_kept = [](const Parts& parts) {
    return std::all_of(parts.begin(), parts.end(), [](const Part* part) { return part->kept; });
  };
  TENONNX_ASSIGN_OR_RETURN(TensorMap outputs, graph_->run(inputs));
  if (!shapes_hold(outputs)) return std::optional<Found>();
  Parts others = differing(outputs);
  if (!others.empty() && exactness_ != PassClass::kAlgebraic) return std::optional<Found>();
  if (!all_kept(others)) {  // the guess was wrong: once more, with what their floors need
    for (Part* part : others) part->kept = true;
    TENONNX_RETURN_IF_ERROR(join());
    TENONNX_ASSIGN_OR_RETURN(outputs, graph_->run(inputs));
    others = differing(outputs);
    if (!all_kept(others)) return std::optional<Found>();
  }
  Found found;
  for (const TensorInfo& output : after_.outputs())
    found.outputs.emplace(output.name, outputs.at(output.name));
  for (const auto& [axis, borders] : borders_) {
    Parts some;
    for (Part* part : others)
      if (part->axis == axis) some.push_back(part);
    if (some.empty()) continue;
    TENONNX_ASSIGN_OR_RETURN(const TensorMap values, values_of(borders, inputs, outputs));
    TENONNX_ASSIGN_OR_RETURN(const bool right, judge(some, values, outputs, found));
    if (!right) return std::optional<Found>();
  }
  return std::optional<Found>(std::move(found));
}

// Measures no more of the floor than what explains the difference, which each disturbance can only
// raise: for most, storing the result does. The first disturbance needs no other weights.
Result<bool> OneRun::judge(Parts parts, const TensorMap& values, const TensorMap& outputs,
                           Found& found) const {
  found.differing += parts.size();
  TensorMap was, is;  // by the names in Part::was
  for (const Part* part : parts)
    for (std::size_t o = 0; o < part->was.size(); ++o) {
      was.emplace(part->was[o], outputs.at(part->was[o]));
      is.emplace(part->was[o], outputs.at(part->is[o]));
    }
  std::vector<TensorMap> disturbed;
  // Leaves those that are not within their floor yet.
  const auto judge_all = [&] {
    std::vector<JudgedRegion> judged(parts.size());
    TENONNX_RETURN_IF_ERROR(parallel_for(parts.size(), 0, [&](std::size_t p) {
      judged[p] = judge_region(PassClass::kAlgebraic, std::nullopt, *parts[p]->region,
                               parts[p]->was, was, is, disturbed);
      return Status();
    }));
    Parts left;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const Check& worst = judged[p].worst;
      if (judged[p].failed)
        left.push_back(parts[p]);
      else if (!found.worst || severity(worst) > severity(*found.worst))
        found.worst = worst;
    }
    parts = std::move(left);
    return Status();
  };
  TENONNX_RETURN_IF_ERROR(judge_all());
  if (parts.empty()) return true;

  const Parts sampled = parts;
  std::vector<const ChangedRegion*> regions;
  for (const Part* part : sampled) regions.push_back(part->region);
  RegionSessions sessions(executor_, load_.intra_op_threads, kSeed, before_, after_, regions);
  const TensorMap inputs = region_inputs(Side::kBefore, regions, values);
  for (const RegionForm form :
       {RegionForm::kBefore, RegionForm::kBeforeDisturbed, RegionForm::kBeforeOptimized}) {
    TENONNX_ASSIGN_OR_RETURN(TensorMap run,
                             sessions.run(form, form == RegionForm::kBeforeOptimized
                                                    ? inputs
                                                    : disturb(inputs, kSeed + disturbed.size())));
    TensorMap named;
    for (std::size_t p = 0; p < sampled.size(); ++p)
      for (std::size_t o = 0; o < sampled[p]->was.size(); ++o)
        named.insert_or_assign(sampled[p]->was[o], run.at(sessions.outputs()[p][o]));
    disturbed.push_back(std::move(named));
    TENONNX_RETURN_IF_ERROR(judge_all());
    if (parts.empty()) return true;
  }
  return false;
}

std::string OneRun::description() const {
  std::string text =
      fmt::format("{} of both graphs ran once, {} of the old one on the same tensors",
                  counted(diff_.unchanged, "node"), counted(diff_.regions.size(), "changed part"));
  const auto on_strips =
      std::count_if(parts_.begin(), parts_.end(), [](const Part& part) { return part.axis > 0; });
  if (on_strips > 0) text += fmt::format(" ({} on {} rows of them)", on_strips, kStripRows);
  return text;
}

}  // namespace tenonnx
