// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare_plan.h"

#include <fnmatch.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <unordered_map>

#include "base/status.h"
#include "model/shapes.h"
#include "ort/inputs.h"

namespace tenonnx {
namespace {

constexpr std::size_t kMostExamples = 5;

bool fits(const TensorInfo& a, const TensorInfo& b) {
  if (a.dtype != b.dtype) return false;
  if (!a.has_rank || !b.has_rank) return true;
  if (a.shape.size() != b.shape.size()) return false;
  for (std::size_t i = 0; i < a.shape.size(); ++i)
    if (a.shape[i] >= 0 && b.shape[i] >= 0 && a.shape[i] != b.shape[i]) return false;
  return true;
}

// `info` behind a Transpose by `perm`; as it is where that is empty or of another rank.
TensorInfo in_layout(const TensorInfo& info, const std::vector<std::int64_t>& perm) {
  if (!info.has_rank || info.shape.size() != perm.size()) return info;
  TensorInfo moved = info;
  for (std::size_t i = 0; i < perm.size(); ++i)
    moved.shape[i] = info.shape[static_cast<std::size_t>(perm[i])];
  return moved;
}

// The names of the candidate's tensors for those of the reference.
class Mapping {
 public:
  explicit Mapping(const PlanRequest& request) : request_(request) {
    if (request.candidate == nullptr) return;
    index_.emplace(request.candidate->proto().graph());
    types_ = infer_shapes(*request.candidate);
  }

  void map(const TensorInfo& info, PlannedTensor& planned) const {
    std::string name = info.name;
    if (request_.names != nullptr) {
      const auto gone = request_.names->removed.find(name);
      if (gone != request_.names->removed.end()) {
        planned.state = TensorState::kFused;
        planned.why = "taken away by " + gone->second;
        return;
      }
      const auto renamed = request_.names->renamed.find(name);
      if (renamed != request_.names->renamed.end()) name = renamed->second;
      const auto moved = request_.names->moved.find(name);
      if (moved != request_.names->moved.end()) {
        name = moved->second.name;
        planned.perm = moved->second.perm;
      }
    }
    if (!exists(name, info, planned)) return;
    if (request_.recorded && !request_.recorded->contains(info.name)) {
      planned.state = TensorState::kNotRecorded;
      planned.why = "the recording does not hold it";
      return;
    }
    planned.state = TensorState::kCompared;
    planned.candidate = name;
  }

 private:
  bool exists(const std::string& name, const TensorInfo& info, PlannedTensor& planned) const {
    if (!index_) return true;
    const Value* value = index_->find(name);
    if (value == nullptr || (value->producer < 0 && !value->is_initializer())) {
      planned.why = fmt::format("the candidate has no tensor '{}'", name);
      return false;
    }
    const auto type = types_.find(name);
    if (type != types_.end() && !fits(info, in_layout(type->second, planned.perm))) {
      planned.why = fmt::format("it is {} in the reference, {} in the candidate", to_string(info),
                                to_string(type->second));
      return false;
    }
    return true;
  }

  const PlanRequest& request_;
  std::optional<GraphIndex> index_;
  TensorInfos types_;
};

Status nothing_matches(const std::string& glob, const std::vector<ComputedTensor>& tensors) {
  // Names that hold the longest word of the pattern, for a pattern that forgot its stars.
  std::string word, longest;
  for (const char c : glob + "*") {
    if (c == '*' || c == '?' || c == '[' || c == ']') {
      if (word.size() > longest.size()) longest = word;
      word.clear();
    } else {
      word += c;
    }
  }
  std::string near;
  std::size_t found = 0;
  for (const ComputedTensor& tensor : tensors) {
    if (longest.empty() || tensor.name.find(longest) == std::string::npos) continue;
    if (found++ < kMostExamples)
      near += fmt::format("{}'{}'", near.empty() ? "" : ", ", tensor.name);
  }
  if (found > 0)
    return InvalidArgument(
        "no tensor matches '{}' (--tensors takes 'all', 'boundary' or a pattern over whole names); "
        "{} hold '{}': {}",
        glob, found, longest, near);
  if (tensors.empty())
    return InvalidArgument(
        "the model computes no tensor (it has no nodes): there is nothing to compare");
  for (std::size_t i = 0; i < tensors.size() && i < kMostExamples; ++i)
    near += fmt::format("{}'{}'", near.empty() ? "" : ", ", tensors[i].name);
  return InvalidArgument(
      "no tensor matches '{}' (--tensors takes 'all', 'boundary' or a pattern over whole names, as "
      "'*/Softmax_output_0'); the first of {} are {}",
      glob, tensors.size(), near);
}

std::string name_list(const std::vector<TensorInfo>& infos) {
  std::string out;
  for (const TensorInfo& info : infos)
    out += fmt::format("{}'{}'", out.empty() ? "" : ", ", info.name);
  return out.empty() ? "none" : out;
}

// What a model gives out is its purpose: an output cannot have been fused away, nor be a tensor
// inside the candidate. Returns how the order differs, "" where it does not.
template <typename Chosen>
Result<std::string> check_outputs(const PlanRequest& request, const Chosen& chosen) {
  if (request.candidate == nullptr) return std::string();
  const std::vector<TensorInfo> a = request.reference->outputs();
  const std::vector<TensorInfo> b = request.candidate->outputs();
  const std::string file = request.names_file.empty() ? "of names" : request.names_file;
  bool moved = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!chosen(a[i].name)) continue;
    std::string name = a[i].name;
    if (request.names != nullptr) {
      if (const auto gone = request.names->removed.find(name); gone != request.names->removed.end())
        return InvalidArgument(
            "the record {} says that '{}' takes away '{}', which is an output of the reference: an "
            "output is never fused away, so the record is not of these two models",
            file, gone->second, name);
      if (const auto to = request.names->renamed.find(name); to != request.names->renamed.end())
        name = to->second;
    }
    const auto found =
        std::find_if(b.begin(), b.end(), [&](const TensorInfo& info) { return info.name == name; });
    if (found == b.end())
      return InvalidArgument(
          "the candidate does not give out '{}'{}: the outputs of the reference are {}, those of "
          "the candidate {}; give a record of names (--names) where an output has another name, or "
          "choose tensors inside (--tensors)",
          name, name == a[i].name ? "" : fmt::format(" (for '{}', by {})", a[i].name, file),
          name_list(a), name_list(b));
    moved |= static_cast<std::size_t>(found - b.begin()) != i;
  }
  if (!moved) return std::string();
  return fmt::format(
      "the reference gives out {}, the candidate {}: consumers that read outputs by position get "
      "another tensor",
      name_list(a), name_list(b));
}

int softmax_axis(const onnx::NodeProto& node, std::int64_t opset) {
  // Until opset 12 a Softmax flattens to two dimensions at its axis, 1 by default; over the last
  // axis, which exporters use, both are one.
  return static_cast<int>(attribute_or(node, "axis", std::int64_t{opset < 13 ? 1 : -1}));
}

}  // namespace

std::string_view to_string(TensorState state) {
  switch (state) {
    case TensorState::kCompared:
      return "compared";
    case TensorState::kFused:
      return "fused";
    case TensorState::kUnmapped:
      return "unmapped";
    case TensorState::kNotRecorded:
      break;
  }
  return "not recorded";
}

std::size_t ComparePlan::count(TensorState state) const {
  return static_cast<std::size_t>(
      std::count_if(tensors.begin(), tensors.end(),
                    [&](const PlannedTensor& one) { return one.state == state; }));
}

Result<ComparePlan> plan_comparison(const PlanRequest& request) {
  const onnx::GraphProto& graph = request.reference->proto().graph();
  const GraphIndex index(graph);
  const Mapping mapping(request);
  ComparePlan plan;
  plan.selections = find_selections(*request.reference, index);
  const Behind behind = behind_selections(index, plan.selections);
  const std::vector<ComputedTensor> computed = computed_tensors(*request.reference, index);

  const auto chosen = [&](const std::string& name) {
    if (request.boundary) {
      const Value* value = index.find(name);
      return request.boundary->contains(name) || (value != nullptr && value->is_output);
    }
    return request.tensors == "all" || ::fnmatch(request.tensors.c_str(), name.c_str(), 0) == 0;
  };
  TENONNX_ASSIGN_OR_RETURN(plan.output_order, check_outputs(request, chosen));
  // What lies behind a selection says nothing where the selection itself is not judged.
  std::set<std::string> judged;
  bool any = false;
  for (const ComputedTensor& tensor : computed) {
    if (!chosen(tensor.name)) continue;
    any = true;
    const auto found = behind.find(tensor.name);
    if (found == behind.end()) continue;
    for (const int i : found->second) {
      judged.insert(plan.selections[static_cast<std::size_t>(i)].scores);
      judged.insert(plan.selections[static_cast<std::size_t>(i)].boxes);
      judged.insert(plan.selections[static_cast<std::size_t>(i)].indices);
    }
  }
  if (!any) return nothing_matches(request.tensors, computed);

  std::unordered_map<std::string, int> indices;
  for (std::size_t i = 0; i < plan.selections.size(); ++i)
    indices[plan.selections[i].indices] = static_cast<int>(i);
  for (const ComputedTensor& tensor : computed) {
    if (!chosen(tensor.name) && !judged.contains(tensor.name)) continue;
    const onnx::NodeProto& node = graph.node(tensor.node);
    PlannedTensor planned;
    planned.tensor = tensor;
    planned.node = node_label(node);
    planned.op_type = node.op_type();
    if (node.op_type() == "Softmax") planned.axis = softmax_axis(node, request.reference->opset());
    planned.is_output = index.find(tensor.name)->is_output;
    if (const auto found = behind.find(tensor.name); found != behind.end())
      planned.behind = found->second;
    if (const auto found = indices.find(tensor.name); found != indices.end())
      planned.selected_by = found->second;
    mapping.map(tensor.info, planned);
    plan.tensors.push_back(std::move(planned));
  }
  for (const Selection& selection : plan.selections) {
    const Value* value = index.find(selection.indices);
    PlannedTensor planned;
    TensorInfo info;
    info.name = selection.indices;
    for (const ComputedTensor& tensor : computed)
      if (tensor.name == selection.indices) info = tensor.info;
    if (value != nullptr) {
      if (info.dtype == DType::kUndefined) info.has_rank = false;
      mapping.map(info, planned);
    }
    plan.candidate_indices.push_back(planned.candidate);
    std::string missing;
    if (planned.candidate.empty()) {
      const bool unrecorded = request.recorded && !request.recorded->contains(info.name);
      if (unrecorded && request.recorded->contains(selection.scores))
        missing = fmt::format("record '{}' too", info.name);
      else if (unrecorded)
        missing = selection.scores.empty()
                      ? fmt::format("record '{}' too", info.name)
                      : fmt::format("record '{}' and '{}' too", info.name, selection.scores);
      else
        missing = fmt::format("its indices '{}' have no counterpart: {}", info.name,
                              planned.why.empty() ? "unknown" : planned.why);
    }
    plan.missing_indices.push_back(std::move(missing));
  }
  if (plan.count(TensorState::kCompared) == 0)
    return InvalidArgument(
        "nothing can be compared: of {} tensors {} are unmapped, {} fused away, {} not recorded; "
        "first: '{}': {}",
        plan.tensors.size(), plan.count(TensorState::kUnmapped), plan.count(TensorState::kFused),
        plan.count(TensorState::kNotRecorded), plan.tensors.front().tensor.name,
        plan.tensors.front().why);
  return plan;
}

Status check_same_inputs(const Model& reference, const Model& candidate) {
  const auto list = [](const std::vector<TensorInfo>& infos) {
    std::string out;
    for (const TensorInfo& info : infos) out += (out.empty() ? "" : "; ") + to_string(info);
    return out.empty() ? std::string("none") : out;
  };
  const std::vector<TensorInfo> a = reference.inputs(), b = candidate.inputs();
  const auto has = [](const std::vector<TensorInfo>& infos, const TensorInfo& wanted) {
    return std::any_of(infos.begin(), infos.end(), [&](const TensorInfo& info) {
      return info.name == wanted.name && fits(info, wanted);
    });
  };
  const bool same = a.size() == b.size() &&
                    std::all_of(a.begin(), a.end(), [&](const auto& one) { return has(b, one); });
  if (same) return {};
  return InvalidArgument(
      "the two models take other inputs, so that nothing can be given to both: the reference takes "
      "{}; the candidate takes {}",
      list(a), list(b));
}

}  // namespace tenonnx
