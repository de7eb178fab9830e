// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/placement_proof.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "adapters/address.h"
#include "adapters/context.h"
#include "adapters/node_facts.h"
#include "adapters/provider.h"
#include "adapters/provider_refusal.h"
#include "adapters/qnn_options.h"
#include "base/nearest.h"
#include "base/status.h"
#include "base/wording.h"
#include "contract/contract.h"
#include "flow/inputs.h"
#include "flow/placement_checks.h"
#include "flow/placement_context.h"
#include "flow/placement_fingerprint.h"
#include "flow/placement_nodes.h"
#include "model/graph.h"

namespace tenonnx {
namespace {

// The address with --affinity as an option of the provider.
Result<std::string> address_with(const PlacementOptions& options) {
  if (options.affinity.empty()) return options.on;
  if (!compiles_contexts(options.on))
    return InvalidArgument(
        "--affinity: executor '{}' has no such option; provider:simnpu and qnn: have", options.on);
  if (options.on.find(",affinity=") != std::string::npos)
    return InvalidArgument("--affinity: the address '{}' has an affinity of its own", options.on);
  return fmt::format("{},affinity={}", options.on, fmt::join(options.affinity, "+"));
}

Result<TensorMap> random_tensors(const Model& model, std::uint64_t seed) {
  std::vector<std::string> assumed;
  const auto guessed = guess_contract(model, assumed);
  TENONNX_ASSIGN_OR_RETURN(
      const InputSource source,
      InputSource::random(model.inputs(), guessed.ok() ? *guessed : Contract(), 1, seed));
  TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, source.load(0));
  return input.tensors;
}

class PlacementProver {
 public:
  PlacementProver(const PlacementOptions& options, PlacementResult& result)
      : options_(options), result_(result) {}

  Status run() {
    TENONNX_ASSIGN_OR_RETURN(result_.address, address_with(options_));
    if (result_.address.starts_with("sim:") || result_.address.starts_with("files:"))
      return Unsupported(
          "executor '{}' has no placement: sim: computes a device's arithmetic on the CPU, files: "
          "computes nothing",
          result_.address);
    TENONNX_ASSIGN_OR_RETURN(executor_, make_executor(result_.address));
    const auto simnpu = simnpu_options_of(result_.address);
    if (simnpu) {
      TENONNX_ASSIGN_OR_RETURN(device_, find_device(simnpu->device));
    }
    if (!options_.context.empty() && !compiles_contexts(result_.address))
      return InvalidArgument("--context: executor '{}' compiles none; provider:simnpu and qnn: do",
                             result_.address);
    report("load");
    TENONNX_ASSIGN_OR_RETURN(original_, Model::load(options_.model));
    result_.model = options_.model.filename().string();
    name_nodes(original_);
    prepared_ = original_.clone();
    TENONNX_RETURN_IF_ERROR(prepare_graph(prepared_, options_.preparation).status());
    TENONNX_ASSIGN_OR_RETURN(inputs_, random_tensors(prepared_, options_.seed));
    TENONNX_RETURN_IF_ERROR(create());
    if (graph_ != nullptr) {
      report("run");
      TENONNX_RETURN_IF_ERROR(prove());
    }
    TENONNX_RETURN_IF_ERROR(affinity());
    if (!options_.context.empty() && made_) {
      report("context");
      TENONNX_RETURN_IF_ERROR(
          prove_context({options_, result_.address, prepared_, inputs_, *made_}, result_));
    }
    result_.verdict = overall_verdict(result_.checks);
    return {};
  }

 private:
  void report(std::string_view step) const {
    if (options_.progress) options_.progress(step, 0, 0);
  }

  // Fallback is disabled where the model is meant for the device; the session that explains a
  // refusal may fall back.
  Status create() {
    LoadOptions load = options_.load;
    load.profile = true;
    // Fusions rename nodes; those of a provider are loaded without them anyway.
    if (result_.address == "cpu") load.optimization = Optimization::kDisabled;
    load.disable_fallback = result_.address != "cpu" && !options_.allow_fallback;
    auto graph = executor_->load(prepared_, load);
    const Status strict = graph.status();
    if (!strict.ok() && load.disable_fallback) {
      load.disable_fallback = false;
      graph = executor_->load(prepared_, load);
    }
    if (!graph.ok()) {
      result_.checks.push_back(failed_check("session", graph.status().message()));
      return {};
    }
    if (!options_.allow_fallback && result_.address != "cpu")
      result_.checks.push_back(strict.ok()
                                   ? passed_check("session without fallback")
                                   : failed_check("session without fallback", strict.message()));
    graph_ = std::move(*graph);
    record_ = provider_record(*graph_);
    result_.provider = record_ != nullptr ? record_->provider : result_.address;
    return {};
  }

  Status prove() {
    auto made = graph_->run(inputs_);
    if (!made.ok()) {
      result_.checks.push_back(failed_check("run", made.status().message()));
      result_.findings.push_back(
          "the model compiled, and does not run: what a compiler converts may have no kernel in "
          "the "
          "runtime. Where the nodes behind the failure would run is not known");
    } else {
      made_ = std::move(*made);
    }
    TENONNX_ASSIGN_OR_RETURN(const Placement profile, graph_->placement());
    Fingerprint fingerprint;
    if (made_ && record_ != nullptr && device_) {
      report("arithmetic");
      TENONNX_ASSIGN_OR_RETURN(fingerprint, take_fingerprint(*executor_, prepared_, *record_,
                                                             *device_, inputs_, options_.load));
    }
    place_nodes({original_, prepared_, profile, record_, device_ ? &*device_ : nullptr,
                 fingerprint.mislabelled, !made_},
                result_);
    find_boundaries(prepared_, result_);
    if (is_emulated(result_.address)) drop_emulator_time();
    if (!made_) return {};  // the profile of a run that failed says nothing of the rest
    add_placement_checks(fingerprint, profile, options_.allow_fallback, result_);
    if (record_ != nullptr && device_ && took_nothing())
      result_.causes = causes_of_unused(*device_);
    return {};
  }

  void drop_emulator_time() {
    for (PlacedPartition& partition : result_.partitions) partition.duration_us = 0;
    result_.findings.emplace_back(
        "it ran on the vendor's emulator, not on a chip: the vendor's compiler has placed the "
        "nodes "
        "as it does for a chip, which was not tried; emulator time is not device time, so that "
        "none "
        "is shown");
  }

  bool took_nothing() const {
    return result_.partitions.empty() && result_.count(NodePlace::kUnknown) == 0;
  }

  // What pinning did beside moving the operators that were pinned: the same model without it.
  Status affinity() {
    if (record_ == nullptr || record_->pinned.empty()) return {};
    // A misspelt type would read as "pinning it moves nothing".
    std::set<std::string> types;
    for_each_graph(prepared_.proto().graph(), [&](const onnx::GraphProto& graph) {
      for (const auto& node : graph.node()) types.insert(node.op_type());
    });
    for (const std::string& pinned : record_->pinned)
      if (!types.contains(pinned))
        return InvalidArgument(
            "--affinity {}=cpu: the model has no node of that type; the nearest are {}", pinned,
            nearest_names(pinned, {types.begin(), types.end()}));
    PlacementOptions free = options_;
    const std::size_t at = result_.address.find(",affinity=");
    const std::size_t end = result_.address.find(',', at + 1);
    free.on = result_.address.substr(0, at) +
              (end == std::string::npos ? "" : result_.address.substr(end));
    TENONNX_ASSIGN_OR_RETURN(const auto executor, make_executor(free.on));
    const auto graph = executor->load(prepared_, options_.load);
    if (!graph.ok()) return {};
    const ProviderRecord* without = provider_record(**graph);
    if (without != nullptr) add_affinity_findings(*record_, *without, result_);
    return {};
  }

  const PlacementOptions& options_;
  PlacementResult& result_;
  std::unique_ptr<Executor> executor_;
  std::optional<Device> device_;
  Model original_, prepared_;
  TensorMap inputs_;
  std::unique_ptr<LoadedGraph> graph_;
  const ProviderRecord* record_ = nullptr;  // of graph_
  std::optional<TensorMap> made_;
};

}  // namespace

std::string_view to_string(NodePlace place) {
  switch (place) {
    case NodePlace::kDevice:
      return "device";
    case NodePlace::kFallback:
      return "provider fallback";
    case NodePlace::kVendorCpu:
      return "vendor's CPU backend";
    case NodePlace::kCpu:
      return "CPU";
    case NodePlace::kFolded:
      return "folded";
    case NodePlace::kUnknown:
      break;
  }
  return "unknown";
}

std::size_t PlacementResult::count(NodePlace place) const {
  return static_cast<std::size_t>(std::count_if(
      nodes.begin(), nodes.end(), [&](const PlacedNode& node) { return node.place == place; }));
}

Result<PlacementResult> prove_placement(const PlacementOptions& options) {
  PlacementResult result;
  TENONNX_RETURN_IF_ERROR(PlacementProver(options, result).run());
  return result;
}

}  // namespace tenonnx
