// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/one_run.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/status.h"
#include "base/wording.h"
#include "metrics/tensor_error.h"
#include "model/graph.h"
#include "model/shapes.h"
#include "model/tensor_proto.h"
#include "passes/constant_part.h"
#include "passes/edit.h"
#include "passes/local_region.h"
#include "passes/proof_floor.h"
#include "passes/proof_inputs.h"
#include "passes/proof_judge.h"
#include "passes/region_sessions.h"

namespace tenonnx {
namespace {

// Kept while the graph after runs; beyond, two runs need less.
constexpr std::int64_t kMostBorderBytes = std::int64_t{1} << 30;
constexpr std::uint64_t kSeed = 7;

using Renamed = std::map<std::string, std::string>;

// Constants of the graph before by the constants of the graph after that hold the same: passes
// fold, share and name them anew, and none of that is a change.
void add_equal_constants(const Model& before, const Model& after, Renamed& renamed) {
  const auto key_of = [](const Model& model, const onnx::TensorProto& tensor) {
    std::string key = std::to_string(tensor.data_type());
    for (const std::int64_t size : tensor.dims()) key += fmt::format(",{}", size);
    // The beginning tells nearly all apart; the rest is compared.
    constexpr std::size_t kBeginning = 64;
    if (tensor.has_raw_data()) return key + ":" + tensor.raw_data().substr(0, kBeginning);
    const auto value = model.tensor(tensor);
    if (!value.ok()) return key;
    return key + ":" +
           std::string(static_cast<const char*>(value->raw()),
                       std::min(kBeginning, value->bytes()));
  };
  std::unordered_map<std::string, std::vector<const onnx::TensorProto*>> there;
  std::unordered_map<std::string_view, const onnx::TensorProto*> by_name;
  for (const auto& tensor : after.proto().graph().initializer()) {
    there[key_of(after, tensor)].push_back(&tensor);
    by_name.emplace(tensor.name(), &tensor);
  }
  const auto same = [&](const onnx::TensorProto& a, const onnx::TensorProto& b) {
    return same_constant(before, a, after, b);
  };
  for (const auto& tensor : before.proto().graph().initializer()) {
    if (const auto named = by_name.find(tensor.name());
        named != by_name.end() && same(tensor, *named->second))
      continue;
    const auto alike = there.find(key_of(before, tensor));
    if (alike == there.end()) continue;
    for (const onnx::TensorProto* other : alike->second) {
      if (!same(tensor, *other)) continue;
      renamed[tensor.name()] = other->name();
      break;
    }
  }
}

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

// More outputs for a graph.
class Outputs {
 public:
  explicit Outputs(onnx::ModelProto& proto) : graph_(*proto.mutable_graph()), fresh_(proto) {
    for (const auto& output : graph_.output()) there_.insert(output.name());
  }
  void add(const TensorInfo& tensor) {
    if (there_.insert(tensor.name).second) *graph_.add_output() = to_value_info(tensor);
  }
  // Return the names of the outputs.
  std::string add_shape(const std::string& tensor) {
    return add_node(make_node("Shape", {tensor}, {fresh_.make(tensor + "_shape")}));
  }
  std::string add_strip(const std::string& tensor, std::size_t rank) {
    const auto integer = [&](const char* what, std::int64_t value) {
      const std::string name = fresh_.make(tensor + what);
      *graph_.add_initializer() =
          to_tensor_proto(Tensor::from<std::int64_t>(DType::kInt64, {1}, {value}), name);
      return name;
    };
    return add_node(make_node("Slice",
                              {tensor, integer("_first", 0), integer("_last", kStripRows),
                               integer("_axis", static_cast<std::int64_t>(rank) - 2)},
                              {fresh_.make(tensor + "_strip")}));
  }

 private:
  std::string add_node(onnx::NodeProto node) {
    std::string output = node.output(0);
    *graph_.add_node() = std::move(node);
    graph_.add_output()->set_name(output);
    return output;
  }
  onnx::GraphProto& graph_;
  UniqueNames fresh_;
  std::set<std::string> there_;
};

}  // namespace

Result<std::unique_ptr<OneRun>> OneRun::prepare(const Model& before, const Model& after,
                                                const Renamed& renamed, PassClass exactness,
                                                const Executor& executor, const LoadOptions& load) {
  const TensorInfos infos = infer_shapes(after);
  const GraphIndex after_index(after.proto().graph());
  const auto image = [&](std::string_view name) {
    const auto it = renamed.find(std::string(name));
    return it == renamed.end() ? std::string(name) : it->second;
  };
  const auto static_shape = [&](const std::string& name) -> std::optional<Shape> {
    const auto info = infos.find(name);
    if (info == infos.end() || !info->second.has_rank || element_count(info->second.shape) < 0)
      return std::nullopt;
    return info->second.shape;
  };
  auto computed = compute_constants(
      before, [&](std::string_view tensor) { return static_shape(image(tensor)); });
  if (!computed.ok()) return std::unique_ptr<OneRun>();
  std::unique_ptr<OneRun> made(new OneRun(after, exactness, executor, load));
  made->before_ = std::move(computed->model);
  Renamed names = known_names(GraphIndex(made->before_.proto().graph()), after_index, renamed);
  add_equal_constants(made->before_, after, names);
  auto diff = diff_graphs(made->before_, after, names, "(all)");
  if (!diff.ok()) return std::unique_ptr<OneRun>();
  made->diff_ = std::move(*diff);

  auto proto = std::make_unique<onnx::ModelProto>(after.proto());
  Outputs outputs(*proto);
  std::int64_t bytes = 0;
  for (const ChangedRegion& region : made->diff_.regions) {
    const bool strips = exactness == PassClass::kAlgebraic &&
                        takes_strips(made->before_, after, region, [&](const RegionTensor& input) {
                          return static_shape(input.after);
                        });
    (strips ? made->on_strips_ : made->whole_).push_back(&region);
    for (const auto* list : {&region.inputs, &region.outputs})
      for (const RegionTensor& tensor : *list) {
        if (strips && list == &region.outputs) continue;
        const Value* value = after_index.find(tensor.after);
        const auto info = infos.find(tensor.after);
        if (tensor.before.empty() || value == nullptr || info == infos.end() ||
            info->second.dtype == DType::kUndefined)
          return std::unique_ptr<OneRun>();
        auto& borders = strips ? made->strip_borders_ : made->borders_;
        if (!borders.try_emplace(tensor.before, tensor.after).second) continue;
        if (strips) {
          borders[tensor.before] = outputs.add_strip(tensor.after, info->second.shape.size());
          continue;
        }
        if (value->producer >= 0) outputs.add(infos.at(tensor.after));
        bytes += std::max<std::int64_t>(0, element_count(info->second.shape)) *
                 static_cast<std::int64_t>(size_of(info->second.dtype));
      }
  }
  if (bytes > kMostBorderBytes) return std::unique_ptr<OneRun>();
  for (const auto& [tensor, shape] : computed->shapes) {
    const std::string there = image(tensor);
    if (after_index.find(there) == nullptr) return std::unique_ptr<OneRun>();
    if (!made->shapes_.contains(there))
      made->shapes_.emplace(there, std::pair(outputs.add_shape(there), shape));
  }
  auto loaded = executor.load(after.with_proto(std::move(proto)), load);
  if (!loaded.ok()) return std::unique_ptr<OneRun>();
  made->graph_ = std::move(*loaded);
  return made;
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
  return std::all_of(shapes_.begin(), shapes_.end(), [&](const auto& one) {
    const auto& [output, shape] = one.second;
    const Tensor& found = outputs.at(output);
    return found.size() == static_cast<std::int64_t>(shape.size()) &&
           std::equal(shape.begin(), shape.end(), found.data<std::int64_t>());
  });
}

Result<std::optional<OneRun::Found>> OneRun::run(const TensorMap& inputs) const {
  Found found;
  TENONNX_ASSIGN_OR_RETURN(const TensorMap outputs, graph_->run(inputs));
  if (!shapes_hold(outputs)) return std::optional<Found>();
  for (const TensorInfo& output : after_.outputs())
    found.outputs.emplace(output.name, outputs.at(output.name));
  TENONNX_ASSIGN_OR_RETURN(const TensorMap values, values_of(borders_, inputs, outputs));
  TENONNX_ASSIGN_OR_RETURN(bool right, judge(whole_, values, true, found));
  if (!right) return std::optional<Found>();
  TENONNX_ASSIGN_OR_RETURN(const TensorMap strips, values_of(strip_borders_, inputs, outputs));
  TENONNX_ASSIGN_OR_RETURN(right, judge(on_strips_, strips, false, found));
  if (!right) return std::optional<Found>();
  return std::optional<Found>(std::move(found));
}

Result<bool> OneRun::judge(const Regions& regions, const TensorMap& values, bool has_outputs,
                           Found& found) const {
  if (regions.empty()) return true;
  RegionSessions sessions(executor_, load_.intra_op_threads, kSeed, before_, after_, regions);
  TENONNX_ASSIGN_OR_RETURN(const TensorMap was, sessions.run(RegionForm::kBefore, values));
  TensorMap is;
  if (!has_outputs) {
    TENONNX_ASSIGN_OR_RETURN(is, sessions.run(RegionForm::kAfter, values));
  }
  std::vector<std::size_t> others;  // that give other bits
  for (std::size_t r = 0; r < regions.size(); ++r) {
    const auto& outputs = regions[r]->outputs;
    bool same = true;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const std::string& name = sessions.outputs()[r][o];
      if (has_outputs) is.insert_or_assign(name, values.at(outputs[o].before));
      const auto identity = compare_identical(was.at(name), is.at(name));
      same = same && identity.ok() && identity->differing == 0;
    }
    if (!same) others.push_back(r);
  }
  if (others.empty()) return true;
  if (exactness_ != PassClass::kAlgebraic) return false;
  // The floor of these alone, where that is worth sessions of their own.
  if (others.size() <= regions.size() / 2) {
    Regions some;
    for (const std::size_t r : others) some.push_back(regions[r]);
    return judge(some, values, has_outputs, found);
  }

  // Measures no more of the floor than what explains the difference: each part can only raise it.
  TensorMap inputs = region_inputs(Side::kBefore, regions, values);
  inputs.merge(region_inputs(Side::kAfter, regions, values));
  constexpr RegionForm kForms[] = {RegionForm::kBeforeDisturbed, RegionForm::kBefore,
                                   RegionForm::kBeforeOptimized};
  std::vector<TensorMap> disturbed;
  while (true) {
    std::optional<Check> worst;
    bool failed = false;
    for (const std::size_t r : others) {
      const JudgedRegion judged = judge_region(PassClass::kAlgebraic, std::nullopt, *regions[r],
                                               sessions.outputs()[r], was, is, disturbed);
      failed = failed || judged.failed;
      if (!worst || severity(judged.worst) > severity(*worst)) worst = judged.worst;
    }
    if (!failed) {
      found.differing += others.size();
      if (!found.worst || severity(*worst) > severity(*found.worst)) found.worst = worst;
      return true;
    }
    if (disturbed.size() == std::size(kForms)) return false;
    const RegionForm form = kForms[disturbed.size()];
    TENONNX_ASSIGN_OR_RETURN(TensorMap run,
                             sessions.run(form, form == RegionForm::kBeforeOptimized
                                                    ? inputs
                                                    : disturb(inputs, kSeed + disturbed.size())));
    disturbed.push_back(std::move(run));
  }
}

std::string OneRun::description() const {
  std::string text =
      fmt::format("{} of both graphs ran once, {} of the old one on the same tensors",
                  counted(diff_.unchanged, "node"), counted(diff_.regions.size(), "changed part"));
  if (!on_strips_.empty())
    text += fmt::format(" ({} on {} rows of them)", on_strips_.size(), kStripRows);
  return text;
}

}  // namespace tenonnx
