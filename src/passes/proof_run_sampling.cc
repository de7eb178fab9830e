// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "passes/proof_run.h"

namespace tenonnx {
namespace {

// Every tensor that one of `nodes`, rising, reads on the way to `outputs`. What further up another
// layer alone reads is taken by nodes of a region too, and says nothing about its outputs.
std::set<std::string_view> read_for(const Model& model, std::span<const int> nodes,
                                    const std::vector<std::string_view>& outputs) {
  std::set<std::string_view> wanted(outputs.begin(), outputs.end());
  for (std::size_t k = nodes.size(); k-- > 0;) {
    const onnx::NodeProto& node = model.proto().graph().node(nodes[k]);
    if (std::none_of(node.output().begin(), node.output().end(),
                     [&](const std::string& name) { return wanted.contains(name); }))
      continue;
    wanted.insert(node.input().begin(), node.input().end());
    for (const std::string_view name : captured_names(node)) wanted.insert(name);
  }
  return wanted;
}

}  // namespace

Result<bool> ProofRun::check_sampling(const ChangedRegion& region, const TensorMap& values) {
  const ChangedRegion* const one[] = {&region};
  const std::set<std::string> kept = kept_inputs(one);
  SamplingRegion sampling(executor_, threads(), options_.seed, before_, after_, region, values,
                          kept);
  if (!sampling.samples()) return false;
  TENONNX_RETURN_IF_ERROR(sampling.prepare());
  if (pass_.exactness != PassClass::kApproximate) {
    sampling_ = true;
    RegionSessions sessions = sessions_of({&region});
    for (const SamplingInputs& made : sampling.made()) {
      TensorMap inputs = made.values;
      keep_within(inputs);
      TENONNX_RETURN_IF_ERROR(check(sessions, inputs, made.name + " (made)", true));
    }
    sampling_ = false;
  }
  if (growing_) return sampling.reaches_all();
  if (pass_.exactness == PassClass::kApproximate || !one_sided(region)) {
    TENONNX_RETURN_IF_ERROR(report_sampling(sampling, region));
    return sampling.reaches_all();
  }
  TENONNX_ASSIGN_OR_RETURN(const std::optional<Grown> grown, two_sided(region));
  if (!grown) {
    result_.notes.push_back(
        fmt::format("taps around {} were not read: the two forms take different tensors there, and "
                    "{} steps further up still",
                    label(region), kMostProofSteps));
    return sampling.reaches_all();
  }
  const ChangedRegion* const wide[] = {grown->region};
  const std::set<std::string> kept_further_up = kept_inputs(wide);
  SamplingRegion further_up(executor_, threads(), options_.seed, before_, after_, *grown->region,
                            grown->values, kept_further_up);
  TENONNX_RETURN_IF_ERROR(further_up.prepare());
  TENONNX_RETURN_IF_ERROR(report_sampling(further_up, *grown->region));
  return sampling.reaches_all();
}

Status ProofRun::report_sampling(SamplingRegion& sampling, const ChangedRegion& region) {
  const double bound = outcome_.bound ? outcome_.bound->value : 0;
  TENONNX_ASSIGN_OR_RETURN(SamplingProof proof, sampling.report(pass_.exactness, bound));
  result_.sampling.push_back(std::move(proof));
  if (!sampling.failure()) return {};
  RegionSessions sessions = sessions_of({&region});
  const TensorMap& inputs = sampling.failing()->values;
  auto reference = sessions.run(RegionForm::kBefore, inputs);
  report(region, *sampling.failure(), sampling.failing()->name, inputs,
         reference.ok() ? *reference : TensorMap(), sessions.outputs()[0], false);
  return {};
}

bool ProofRun::one_sided(const ChangedRegion& region) const {
  std::vector<std::string_view> was, is;
  for (const RegionTensor& output : region.outputs) {
    was.push_back(output.before);
    is.push_back(output.after);
  }
  const auto read_before = read_for(before_, region.before, was);
  const auto read_after = read_for(after_, region.after, is);
  // Inputs of the graph are free, whichever form takes them, and constants have one value.
  return std::any_of(region.inputs.begin(), region.inputs.end(), [&](const RegionTensor& input) {
    const Value* value = before_index_.find(input.before);
    return read_before.contains(input.before) != read_after.contains(input.after) &&
           value != nullptr && value->producer >= 0 && !is_constant(input);
  });
}

Result<std::optional<ProofRun::Grown>> ProofRun::two_sided(const ChangedRegion& region) {
  ChangedRegion grown = region;
  for (int step = 0; step < kMostProofSteps && one_sided(grown); ++step)
    if (!grow(grown)) return std::optional<Grown>();
  if (one_sided(grown)) return std::optional<Grown>();
  const ChangedRegion* const one[] = {&grown};
  TENONNX_ASSIGN_OR_RETURN(const TensorMap real, data_.load(0));
  TENONNX_ASSIGN_OR_RETURN(TensorMap values, capture_of(one).take(real));
  grown_.push_back(std::move(grown));
  return std::optional<Grown>({&grown_.back(), std::move(values)});
}

Status ProofRun::describe_sampling() {
  infos_ = infer_shapes(before_);
  std::vector<const ChangedRegion*> regions;
  for (const ChangedRegion& region : diff_.regions)
    if (region_bytes(region) >= 0 && !sampling_nodes(before_, region.before).empty())
      regions.push_back(&region);
  if (regions.empty()) return {};
  TENONNX_ASSIGN_OR_RETURN(const TensorMap real, data_.load(0));
  for (const ChangedRegion* region : regions) {
    const ChangedRegion* const one[] = {region};
    TENONNX_ASSIGN_OR_RETURN(const TensorMap values, capture_of(one).take(real));
    if (!is_first_of_its_kind(*region, values)) continue;
    TENONNX_RETURN_IF_ERROR(check_sampling(*region, values).status());
  }
  return {};
}

}  // namespace tenonnx
