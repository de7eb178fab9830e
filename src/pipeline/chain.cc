// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/chain.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "adapters/address.h"
#include "base/files.h"
#include "base/status.h"
#include "ort/ops_library.h"
#include "pipeline/versions.h"

namespace tenonnx {
namespace {

Result<Optimization> optimization_of(const Manifest& manifest) {
  const JsonReader settings(manifest.settings, "manifest.json: /settings");
  TENONNX_ASSIGN_OR_RETURN(const std::string name, settings.string_or("optimization", "all"));
  for (const Optimization level :
       {Optimization::kDisabled, Optimization::kBasic, Optimization::kExtended, Optimization::kAll})
    if (name == to_string(level)) return level;
  return DataLoss(
      "manifest.json: /settings/optimization: \"{}\" is not one of \"disabled\", "
      "\"basic\", \"extended\", \"all\"",
      name);
}

// What the manifest says of a segment against what its file turned out to be.
Status compare(const Segment& segment, std::string_view kind, const std::vector<TensorInfo>& stated,
               const std::vector<TensorInfo>& loaded) {
  for (const TensorInfo& info : loaded) {
    const auto found = std::find_if(stated.begin(), stated.end(),
                                    [&](const TensorInfo& s) { return s.name == info.name; });
    if (found == stated.end())
      return DataLoss("segment '{}': {} has the {} '{}', which the manifest does not name",
                      segment.name, segment.file, kind, info.name);
    if (!fits(*found, info))
      return DataLoss("segment '{}': {} '{}' is {} {} in {}, the manifest says {} {}", segment.name,
                      kind, info.name, to_string(info.dtype), to_string(info.shape), segment.file,
                      to_string(found->dtype), to_string(found->shape));
  }
  if (loaded.size() != stated.size())
    return DataLoss("segment '{}': {} has {} {}s, the manifest names {}", segment.name,
                    segment.file, loaded.size(), kind, stated.size());
  return {};
}

Result<std::unique_ptr<LoadedGraph>> load_segment(const std::filesystem::path& package,
                                                  const Segment& segment, const Manifest& manifest,
                                                  const PackageChainOptions& options) {
  TENONNX_ASSIGN_OR_RETURN(const auto executor,
                           make_executor(segment.executor, AddressOrigin::kFile));
  if (options.check_versions)
    TENONNX_RETURN_IF_ERROR(check_versions(manifest.versions, executor->versions(), segment.name));
  TENONNX_ASSIGN_OR_RETURN(const auto path, resolve_inside(package, segment.file));
  TENONNX_ASSIGN_OR_RETURN(const Model model, Model::load(path));
  TENONNX_RETURN_IF_ERROR(check_ops_library(package, model));
  LoadOptions load = options.load;
  TENONNX_ASSIGN_OR_RETURN(load.optimization, optimization_of(manifest));
  load.disable_fallback = segment.executor != "cpu";
  TENONNX_ASSIGN_OR_RETURN(auto graph, executor->load(model, load));
  TENONNX_RETURN_IF_ERROR(compare(segment, "input", segment.inputs, graph->inputs()));
  TENONNX_RETURN_IF_ERROR(compare(segment, "output", segment.outputs, graph->outputs()));
  return graph;
}

}  // namespace

std::vector<std::string> output_names(const Contract& contract) {
  const Outputs& outputs = contract.outputs;
  if (outputs.kind == OutputKind::kRaw) return {outputs.logits, outputs.pred_boxes};
  return {outputs.labels, outputs.boxes, outputs.scores};
}

Result<PackageChain> PackageChain::load(const std::filesystem::path& package,
                                        const Manifest& manifest,
                                        const PackageChainOptions& options) {
  PackageChain chain;
  for (const Segment& segment : manifest.segments) {
    const auto begin = std::chrono::steady_clock::now();
    auto graph = load_segment(package, segment, manifest, options);
    if (!graph.ok())
      return graph.status().at(fmt::format("segment '{}' ({})", segment.name, segment.executor));
    Loaded loaded;
    loaded.name = segment.name;
    loaded.graph = std::move(graph).value();
    loaded.load_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    chain.segments_.push_back(std::move(loaded));
  }
  TENONNX_RETURN_IF_ERROR(chain.connect(manifest));
  return chain;
}

Status PackageChain::connect(const Manifest& manifest) {
  const Contract& contract = manifest.contract;
  std::vector<std::string> wanted = {contract.image.name};
  if (contract.size) wanted.push_back(contract.size->name);
  // The slots that the contract names come first.
  std::map<std::string, std::size_t> slot_of;
  for (const std::string& name : output_names(contract)) {
    slot_of[name] = slots_.size();
    slots_.push_back({name, DType::kUndefined, {}});
  }
  output_count_ = slots_.size();
  inputs_.resize(wanted.size());
  std::map<std::string, std::size_t> made;  // by segments so far
  for (Loaded& segment : segments_) {
    for (const TensorInfo& info : segment.graph->inputs()) {
      if (const auto slot = made.find(info.name); slot != made.end()) {
        segment.sources.push_back({true, slot->second});
        continue;
      }
      const auto at = std::find(wanted.begin(), wanted.end(), info.name);
      if (at == wanted.end())
        return DataLoss(
            "segment '{}' takes '{}', which is no input of the contract and no output of "
            "an earlier segment",
            segment.name, info.name);
      const auto index = static_cast<std::size_t>(at - wanted.begin());
      inputs_[index] = info;
      segment.sources.push_back({false, index});
    }
    for (const TensorInfo& info : segment.graph->outputs()) {
      const auto [slot, is_new] = slot_of.try_emplace(info.name, slots_.size());
      if (is_new) slots_.emplace_back();
      slots_[slot->second] = info;
      segment.targets.push_back(slot->second);
      made[info.name] = slot->second;
    }
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].name.empty())
      return DataLoss("the contract's input '{}' is an input of no segment", wanted[i]);
  for (std::size_t i = 0; i < output_count_; ++i)
    if (!made.contains(slots_[i].name))
      return DataLoss("the contract's output '{}' is an output of no segment", slots_[i].name);
  return {};
}

Status PackageChain::run(std::span<const Tensor> inputs, std::vector<Tensor>& values) const {
  if (inputs.size() != inputs_.size())
    return InvalidArgument("{} inputs were given, the package takes {}", inputs.size(),
                           inputs_.size());
  prepare(values);
  for (std::size_t i = 0; i < segments_.size(); ++i)
    TENONNX_RETURN_IF_ERROR(run_segment(i, inputs, values));
  return {};
}

void PackageChain::prepare(std::vector<Tensor>& values) const {
  values.resize(slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (!values[i].defined() && slots_[i].has_rank && element_count(slots_[i].shape) > 0)
      values[i] = Tensor(slots_[i].dtype, slots_[i].shape);
}

Status PackageChain::run_segment(std::size_t index, std::span<const Tensor> inputs,
                                 std::vector<Tensor>& values) const {
  const Loaded& segment = segments_[index];
  std::vector<Tensor> in, out;
  for (const Source& source : segment.sources)
    in.push_back(source.from_slot ? values[source.index] : inputs[source.index]);
  for (const std::size_t slot : segment.targets) out.push_back(values[slot]);
  const Status status = segment.graph->run(in, out);
  if (!status.ok()) return status.at(fmt::format("segment '{}'", segment.name));
  for (std::size_t i = 0; i < segment.targets.size(); ++i) values[segment.targets[i]] = out[i];
  return {};
}

std::string PackageChain::segment_description(std::size_t segment) const {
  return segments_[segment].graph->description();
}

}  // namespace tenonnx
