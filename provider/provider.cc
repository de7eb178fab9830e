// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "provider.h"

#include <memory>
#include <utility>

#include "api.h"
#include "base/status.h"
#include "claim.h"
#include "kernel.h"

namespace tenonnx::simnpu {
namespace {

// A partition that is compiled holds its constants itself. A context was compiled before, and reads
// as an input what may have become a constant since, when a session folded what stands before it.
void add_partition(OrtEpGraphSupportInfo* info, const std::vector<const OrtNode*>& nodes,
                   bool holds_constants) {
  OrtNodeFusionOptions fusion{};
  fusion.ort_version_supported = ORT_API_VERSION;
  fusion.drop_constant_initializers = holds_constants;
  Ort::ThrowOnError(
      ep_api().EpGraphSupportInfo_AddNodesToFuse(info, nodes.data(), nodes.size(), &fusion));
}

}  // namespace

Provider::Provider(Settings settings, const OrtLogger* logger)
    : OrtEp{},
      settings_(std::move(settings)),
      logger_(logger),
      compatibility_(compatibility_of(settings_.device)) {
  ort_version_supported = ORT_API_VERSION;
  GetName = [](const OrtEp*) noexcept -> const char* { return kProviderName; };
  GetCapability = [](OrtEp* self, const OrtGraph* graph,
                     OrtEpGraphSupportInfo* info) noexcept -> OrtStatus* {
    return guarded([&] { return static_cast<Provider*>(self)->capability(graph, info); });
  };
  Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, std::size_t count,
               OrtNodeComputeInfo** kernels, OrtNode** context_nodes) noexcept -> OrtStatus* {
    return guarded([&] {
      return static_cast<Provider*>(self)->compile_all(graphs, fused, count, kernels,
                                                       context_nodes);
    });
  };
  ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** kernels, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) delete static_cast<Kernel*>(kernels[i]);
  };
  GetCompiledModelCompatibilityInfo = [](OrtEp* self, const OrtGraph*) noexcept -> const char* {
    return static_cast<Provider*>(self)->compatibility_.c_str();
  };
}

void Provider::warn(const std::string& message) const {
  if (logger_ == nullptr) return;
  Ort::Status ignored(Ort::GetApi().Logger_LogMessage(
      logger_, ORT_LOGGING_LEVEL_WARNING, message.c_str(), ORT_FILE, __LINE__, "capability"));
}

Status Provider::capability(const OrtGraph* raw, OrtEpGraphSupportInfo* info) {
  const Ort::ConstGraph graph{raw};
  if (!settings_.silent.empty()) warn(settings_.silent);
  const Claims claims = claim(graph, settings_);
  for (const int context : claims.contexts)
    add_partition(info, {claims.nodes[static_cast<std::size_t>(context)]}, false);
  for (const Partition& partition : convex_partitions(claims.to_group)) {
    std::vector<const OrtNode*> nodes;
    for (const int i : partition.nodes) nodes.push_back(claims.nodes[static_cast<std::size_t>(i)]);
    add_partition(info, nodes, true);
  }
  return {};
}

Status Provider::compile_all(const OrtGraph** graphs, const OrtNode** fused, std::size_t count,
                             OrtNodeComputeInfo** kernels, OrtNode** context_nodes) {
  for (std::size_t i = 0; i < count; ++i) {
    const Ort::ConstGraph graph{graphs[i]};
    TENONNX_ASSIGN_OR_RETURN(Compiled compiled,
                             compile(graph, Ort::ConstNode{fused[i]}, settings_));
    compiled.number = static_cast<int>(compiled_.size()) + 1;
    TENONNX_ASSIGN_OR_RETURN(auto kernel, Kernel::create(compiled, settings_.options));
    if (settings_.make_contexts && context_nodes != nullptr) {
      const bool dropped = settings_.options.drop_binary == compiled.number;
      const std::string bytes = dropped ? std::string() : write_context(compiled);
      TENONNX_ASSIGN_OR_RETURN(
          Ort::Node node, make_context_node(compiled, bytes, settings_.context_file, settings_));
      context_nodes[i] = node.release();
    }
    kernels[i] = kernel.release();
    compiled.model.clear();
    compiled_.push_back(std::move(compiled));
  }
  if (settings_.options.report.empty()) return {};
  return write_report(compiled_, settings_);
}

}  // namespace tenonnx::simnpu
