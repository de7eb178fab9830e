// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/segments.h"

#include <algorithm>
#include <set>

#include "adapters/address.h"
#include "adapters/context.h"
#include "adapters/provider.h"
#include "adapters/provider_refusal.h"
#include "adapters/result_cache.h"
#include "base/status.h"
#include "base/wording.h"
#include "ort/ops_library.h"
#include "pipeline/decode.h"

namespace tenonnx {
namespace {

// The graph's inputs out of `tensors`; a missing one is named.
Result<TensorMap> pick(const LoadedGraph& graph, const TensorMap& tensors) {
  TensorMap out;
  for (const TensorInfo& info : graph.inputs()) {
    const auto found = tensors.find(info.name);
    if (found == tensors.end())
      return InvalidArgument("input '{}' ({} {}) is missing", info.name, to_string(info.dtype),
                             to_string(info.shape));
    out.emplace(info.name, found->second);
  }
  return out;
}

// A segment that a provider is to run, and nodes on the CPU all the same.
void check_provider(const LoadedGraph& graph, const Placement& placement, SegmentPlacement& out) {
  const ProviderRecord* record = provider_record(graph);
  if (record == nullptr) return;
  std::size_t on_cpu = 0;
  for (const auto& [provider, count] : placement.providers)
    if (provider != record->provider) on_cpu += static_cast<std::size_t>(count);
  if (on_cpu == 0) return;
  out.failed = true;
  out.problem = on_cpu == placement.nodes.size()
                    ? listed_but_unused(record->provider, on_cpu, "ran")
                    : fmt::format("{} of this segment ran on the CPU; tenonnx placement says which",
                                  counted(on_cpu, "node"));
}

std::string names_of(const std::vector<TensorInfo>& tensors) {
  std::vector<std::string_view> names;
  for (const TensorInfo& tensor : tensors) names.push_back(tensor.name);
  return fmt::format("'{}'", fmt::join(names, "', '"));
}

// A runtime that binds by position would exchange tensors where the file's order is another.
Status check_order(const Segment& segment, const Model& model) {
  const auto check = [](std::string_view what, const std::vector<TensorInfo>& recorded,
                        const std::vector<TensorInfo>& have) -> Status {
    const bool same =
        std::equal(recorded.begin(), recorded.end(), have.begin(), have.end(),
                   [](const TensorInfo& a, const TensorInfo& b) { return a.name == b.name; });
    if (same) {
      for (std::size_t i = 0; i < have.size(); ++i)
        if (!fits(recorded[i], have[i]))
          return DataLoss("'{}' of its {} is {} {}, in the manifest {} {}; deploy the model again",
                          have[i].name, what, to_string(have[i].dtype), to_string(have[i].shape),
                          to_string(recorded[i].dtype), to_string(recorded[i].shape));
      return {};
    }
    return DataLoss(
        "its {} are {}, in the manifest {}: the file was made again or exchanged; deploy the model "
        "again",
        what, names_of(have), names_of(recorded));
  };
  TENONNX_RETURN_IF_ERROR(check("inputs", segment.inputs, model.inputs()));
  return check("outputs", segment.outputs, model.outputs());
}

}  // namespace

Result<LoadedSegments> LoadedSegments::load(const std::filesystem::path& package,
                                            const std::vector<Segment>& segments,
                                            const LoadOptions& options,
                                            const std::string& executor) {
  LoadedSegments out;
  out.versions_.emplace_back("tenonnx", version());
  for (const Segment& segment : segments) {
    const std::string where = fmt::format("segment '{}'", segment.name);
    TENONNX_ASSIGN_OR_RETURN(const auto path, resolve_inside(package, segment.file));
    const std::string& address = executor.empty() ? segment.executor : executor;
    const auto made =
        make_executor(address, executor.empty() ? AddressOrigin::kFile : AddressOrigin::kUser);
    if (!made.ok()) return made.status().at(where);
    auto model = Model::load(path);
    if (!model.ok()) return model.status().at(where);
    TENONNX_RETURN_IF_ERROR(check_ops_library(package, *model).at(where));
    TENONNX_RETURN_IF_ERROR(check_contexts(*model, package).at(where));
    TENONNX_RETURN_IF_ERROR(check_order(segment, *model).at(where));
    // A node of a device's segment that silently ran on the cpu would be proved there, not here.
    LoadOptions own = options;
    own.disable_fallback = address != "cpu";
    auto graph = (*made)->load(*model, own);
    if (!graph.ok()) return graph.status().at(fmt::format("{} on '{}'", where, address));
    out.segments_.push_back({segment.name, address, std::move(*graph)});
    out.add_versions(**made, segment.name);
  }
  return out;
}

Result<std::vector<std::pair<std::string, std::string>>> LoadedSegments::versions_of(
    const std::vector<Segment>& segments) {
  LoadedSegments out;
  out.versions_.emplace_back("tenonnx", version());
  for (const Segment& segment : segments) {
    TENONNX_ASSIGN_OR_RETURN(const auto executor,
                             make_executor(segment.executor, AddressOrigin::kFile));
    out.add_versions(*executor, segment.name);
  }
  return out.versions_;
}

void LoadedSegments::add_versions(const Executor& executor, const std::string& segment) {
  for (const auto& [name, version] : executor.versions()) {
    const auto same = [&name = name](const auto& one) { return one.first == name; };
    const auto found = std::find_if(versions_.begin(), versions_.end(), same);
    if (found == versions_.end())
      versions_.emplace_back(name, version);
    else if (found->second != version)
      versions_.emplace_back(fmt::format("{} of {}", name, segment), version);
  }
}

std::size_t LoadedSegments::on_devices() const {
  return static_cast<std::size_t>(std::count_if(
      segments_.begin(), segments_.end(), [](const Loaded& one) { return one.executor != "cpu"; }));
}

Status LoadedSegments::spend(const Loaded& segment, const TensorMap& inputs) const {
  if (budget_ == nullptr || segment.executor == "cpu") return {};
  const auto* recalls = dynamic_cast<const Recalls*>(segment.graph.get());
  if (recalls != nullptr) {
    std::vector<Tensor> ordered;
    for (const TensorInfo& info : segment.graph->inputs()) ordered.push_back(inputs.at(info.name));
    if (recalls->recalls(ordered)) {
      budget_->recall();
      return {};
    }
  }
  if (budget_->take(recalls != nullptr)) return {};
  return FailedPrecondition("the budget of {} is used up", counted(budget_->limit(), "device run"));
}

Result<Observation> LoadedSegments::run(const TensorMap& inputs) const {
  Observation out;
  TensorMap known = inputs;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const Loaded& segment = segments_[i];
    const std::string where = fmt::format("segment '{}' on '{}'", segment.name, segment.executor);
    const auto picked = pick(*segment.graph, known);
    if (!picked.ok()) return picked.status().at(where);
    TENONNX_RETURN_IF_ERROR(spend(segment, *picked));
    auto result = segment.graph->run(*picked);
    if (!result.ok()) return result.status().at(where);
    std::set<std::string> wanted;  // by later segments
    for (std::size_t j = i + 1; j < segments_.size(); ++j)
      for (const TensorInfo& info : segments_[j].graph->inputs()) wanted.insert(info.name);
    for (auto& [name, tensor] : *result) {
      (wanted.contains(name) ? out.boundaries : out.outputs).emplace(name, tensor);
      known.insert_or_assign(name, tensor);
    }
  }
  return out;
}

std::vector<SegmentPlacement> LoadedSegments::placement() const {
  std::vector<SegmentPlacement> out;
  for (const Loaded& segment : segments_) {
    SegmentPlacement one{segment.name, segment.executor, {}, ""};
    const auto placement = segment.graph->placement();
    if (placement.ok()) {
      one.providers = placement->providers;
      one.problem = placement->disagreement;
      check_provider(*segment.graph, *placement, one);
    } else {
      one.problem = placement.status().message();
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<TensorInfo> LoadedSegments::inputs() const {
  std::vector<TensorInfo> out;
  std::set<std::string> known;
  for (const Loaded& segment : segments_) {
    for (const TensorInfo& info : segment.graph->inputs())
      if (known.insert(info.name).second) out.push_back(info);
    for (const TensorInfo& info : segment.graph->outputs()) known.insert(info.name);
  }
  return out;
}

std::vector<TensorInfo> LoadedSegments::outputs() const {
  std::vector<TensorInfo> out;
  for (const Loaded& segment : segments_)
    for (const TensorInfo& info : segment.graph->outputs()) out.push_back(info);
  return out;
}

std::vector<std::string> LoadedSegments::description() const {
  std::vector<std::string> out;
  for (const Loaded& segment : segments_)
    out.push_back(fmt::format("{}: {}", segment.name, segment.graph->description()));
  return out;
}

Result<Observation> run_whole(LoadedGraph& graph, const TensorMap& inputs) {
  TENONNX_ASSIGN_OR_RETURN(const TensorMap picked, pick(graph, inputs));
  Observation out;
  TENONNX_ASSIGN_OR_RETURN(out.outputs, graph.run(picked));
  return out;
}

Status decode(const Contract& contract, const ReferenceInput& input, Observation& observation) {
  // Below every score: scores are compared by rank, so all of them count.
  constexpr float kAll = -1.0F;
  TENONNX_ASSIGN_OR_RETURN(
      observation.detections,
      decode_detections(contract, observation.outputs, input.width, input.height, kAll));
  return {};
}

}  // namespace tenonnx
