// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <onnx/onnx_pb.h>

#include "base/status.h"
#include "passes/proof_floor.h"
#include "passes/proof_run.h"
#include "passes/region_model.h"

namespace tenonnx {
namespace {

// Nodes of a region with its context. An attention block has some 40 nodes.
constexpr std::size_t kMostContext = 200;
// A pass with so many failing regions is wrong; no context will save it.
constexpr std::size_t kMostFailures = 8;

}  // namespace

std::string ProofRun::label(const ChangedRegion& region) const {
  if (!region.before.empty()) return node_label(before_.proto().graph().node(region.before.back()));
  if (!region.after.empty()) return node_label(after_.proto().graph().node(region.after.back()));
  return fmt::format("'{}'", region.outputs.front().before);
}

void ProofRun::report(const ChangedRegion& region, const Check& check, const std::string& where,
                      const TensorMap& values, const TensorMap& reference,
                      const std::vector<std::string>& outputs, bool made) {
  if (growing_) {
    grown_failed_ = true;
    return;
  }
  if (failed_.contains(&region)) return;
  if (made && result_.failures.size() < kMostFailures && holds_with_context(region)) {
    if (held_.insert(&region).second) ++result_.with_context;
    return;
  }
  failed_.insert(&region);
  std::filesystem::path directory;
  if (!options_.failures.empty() && result_.failures.size() < kMostFailures) {
    directory = options_.failures / fmt::format("{}_{}", pass_.name, result_.failures.size());
    const ChangedRegion* const one[] = {&region};
    const RegionNames names(one);
    TensorMap expected;
    // Alone the region may have other names of outputs than among others.
    for (std::size_t o = 0; o < outputs.size(); ++o)
      if (const auto it = reference.find(outputs[o]); it != reference.end())
        expected.emplace(names.outputs[0][o], it->second);
    const Status status = write_minimal_case(
        directory,
        fmt::format("Pass {} ({}), region around {}, on {}:\n{}", pass_.name,
                    to_string(pass_.exactness), label(region), where, to_text(check)),
        before_, after_, region, values, expected);
    if (!status.ok()) {
      result_.notes.push_back("no minimal case was written: " + status.message());
      directory.clear();
    }
  }
  const auto labels = [](const onnx::GraphProto& graph, const std::vector<int>& nodes) {
    std::vector<std::string> out;
    for (const int i : nodes) {
      if (out.size() == RegionFailure::kMaxLabels) break;
      out.push_back(node_label(graph.node(i)));
    }
    return out;
  };
  fail(labels(before_.proto().graph(), region.before), labels(after_.proto().graph(), region.after),
       check, where);
  result_.failures.back().minimal_case = directory;
}

void ProofRun::fail(std::vector<std::string> before, std::vector<std::string> after,
                    const Check& check, const std::string& where) {
  result_.failures.push_back({std::move(before), std::move(after), where, check, {}});
  if (result_.failures.size() == 1) result_.worst = check;
}

bool ProofRun::holds_with_context(const ChangedRegion& region) {
  const bool sampling = sampling_;  // on such coordinates it failed: on such it must hold
  if (!sampling && held_.contains(&region)) return true;
  ChangedRegion grown = region;
  for (int step = 0; step < kMostProofSteps; ++step) {
    if (!grow(grown)) return false;
    const ChangedRegion* const one[] = {&grown};
    BoundaryCapture capture = capture_of(one);
    const auto real = data_.load(0);
    if (!real.ok()) return false;
    const auto values = capture.take(*real);
    if (!values.ok()) return false;
    growing_ = true;
    grown_failed_ = false;
    const PassProof kept = result_;
    const bool ran = check_made({&grown}, *values).ok();
    const bool ran_any = result_.made_inputs > kept.made_inputs;
    bool reached = true;
    if (sampling) {
      const auto all = check_sampling(grown, *values);
      reached = all.ok() && *all;
      sampling_ = true;
    }
    result_ = kept;
    growing_ = false;
    if (ran && ran_any && reached && !grown_failed_) return true;
  }
  return false;
}

bool ProofRun::grow(ChangedRegion& region) const {
  return grow_region(before_, after_, diff_, outcome_.renamed, region) &&
         region.before.size() + region.after.size() <= kMostContext;
}

}  // namespace tenonnx
