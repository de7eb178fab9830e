// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/status.h"
#include "flow/agree.h"
#include "flow/agree_sides.h"
#include "flow/compare_setup.h"
#include "model/extract.h"
#include "ort/capture.h"
#include "passes/sim_gelu.h"
#include "passes/sim_nodes.h"

namespace tenonnx {
namespace {

// Added outputs of one compilation. The emulator takes some hundred at a time; a compilation of the
// example detector takes seconds, whatever their number.
constexpr std::size_t kMostOutputs = 48;

struct Wanted {
  std::string name, op_type;
  std::vector<std::string> inputs;  // what it is computed from, constants left out
};

// Tensors of float32 that the main graph computes, in its order; `own`: without those whose
// operator only moves values.
Result<std::vector<Wanted>> wanted_tensors(const Model& model, bool own) {
  Model copy = model.clone();
  TENONNX_ASSIGN_OR_RETURN(const SimGelus gelus, find_sim_gelus(copy));
  std::vector<Wanted> wanted;
  const GraphIndex index(model.proto().graph());
  const std::vector<ComputedTensor> tensors = computed_tensors(model, index);
  std::set<std::string> changing;
  for (const ComputedTensor& tensor : tensors) changing.insert(tensor.name);
  for (const TensorInfo& input : model.inputs()) changing.insert(input.name);
  for (const ComputedTensor& tensor : tensors) {
    const onnx::NodeProto& node = model.proto().graph().node(tensor.node);
    if (tensor.info.dtype != DType::kFloat32 || gelus.inside.contains(tensor.name) ||
        (own && only_moves(node)))
      continue;
    Wanted one{tensor.name, node.op_type()};
    if (const auto gelu = gelus.inputs.find(tensor.name); gelu != gelus.inputs.end())
      one = {tensor.name, "Gelu", {gelu->second}};
    else
      for (const std::string& name : node.input())
        if (changing.contains(name) &&
            std::find(one.inputs.begin(), one.inputs.end(), name) == one.inputs.end())
          one.inputs.push_back(name);
    wanted.push_back(std::move(one));
  }
  return wanted;
}

class ModelAgreement {
 public:
  ModelAgreement(const AgreeOptions& options, const AgreeSides& sides, const CompareSetup& setup,
                 AgreeResult& result)
      : options_(options), sides_(sides), setup_(setup), result_(result) {}

  Status run() {
    TENONNX_ASSIGN_OR_RETURN(wanted_, wanted_tensors(setup_.reference, options_.own));
    for (std::size_t i = 0; i < setup_.inputs.size(); ++i) {
      TENONNX_ASSIGN_OR_RETURN(ReferenceInput input, setup_.inputs.load(i));
      inputs_.push_back(std::move(input.tensors));
    }
    for (std::size_t begin = 0; begin < wanted_.size(); begin += kMostOutputs)
      TENONNX_RETURN_IF_ERROR(part(begin, std::min(begin + kMostOutputs, wanted_.size())));
    if (options_.progress) report(wanted_.size());
    return {};
  }

 private:
  void report(std::size_t done) const {
    options_.progress("tensors", static_cast<std::int64_t>(done),
                      static_cast<std::int64_t>(wanted_.size()));
  }

  // A part that the device does not take as outputs is tried in halves.
  Status part(std::size_t begin, std::size_t end) {
    if (options_.progress) report(begin);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    if (options_.budget_seconds > 0 && spent.count() > options_.budget_seconds) {
      for (std::size_t i = begin; i < end; ++i)
        result_.not_run.emplace_back(wanted_[i].name, "the budget was used up");
      return {};
    }
    if (options_.own) return pieces(begin, end);
    const Status status = outputs(begin, end);
    if (status.ok()) return {};
    if (end - begin == 1) {
      result_.not_run.emplace_back(wanted_[begin].name, status.message());
      return {};
    }
    const std::size_t middle = begin + (end - begin) / 2;
    TENONNX_RETURN_IF_ERROR(part(begin, middle));
    return part(middle, end);
  }

  Status outputs(std::size_t begin, std::size_t end) {
    std::vector<std::string> names;
    for (std::size_t i = begin; i < end; ++i) names.push_back(wanted_[i].name);
    TENONNX_ASSIGN_OR_RETURN(const auto device, load_with_outputs(*sides_.device, setup_.reference,
                                                                  names, sides_.on_device));
    TENONNX_ASSIGN_OR_RETURN(
        const auto simulation,
        load_with_outputs(*sides_.simulation, setup_.reference, names, sides_.on_simulation));
    return compare(*device, *simulation, inputs_, begin, end);
  }

  // Both graphs make the wanted tensors.
  Status compare(LoadedGraph& device, LoadedGraph& simulation, const std::vector<TensorMap>& inputs,
                 std::size_t begin, std::size_t end) {
    std::vector<Agreement> made;
    for (std::size_t i = begin; i < end; ++i) made.push_back({wanted_[i].op_type, wanted_[i].name});
    for (const TensorMap& input : inputs) {
      TENONNX_ASSIGN_OR_RETURN(const TensorMap a, device.run(inputs_of(device, input)));
      TENONNX_ASSIGN_OR_RETURN(const TensorMap b, simulation.run(inputs_of(simulation, input)));
      for (Agreement& one : made) add_elements(a.at(one.name), b.at(one.name), one);
    }
    for (Agreement& one : made) result_.cases.push_back(std::move(one));
    return {};
  }

  // Each operator alone, from what the simulation of the whole graph gives it.
  Status pieces(std::size_t begin, std::size_t end) {
    std::vector<std::string> names;
    for (std::size_t i = begin; i < end; ++i)
      for (const std::string& name : wanted_[i].inputs)
        if (!inputs_.front().contains(name) &&
            std::find(names.begin(), names.end(), name) == names.end())
          names.push_back(name);
    std::vector<TensorMap> values = inputs_;
    if (!names.empty()) {
      TENONNX_ASSIGN_OR_RETURN(
          const auto whole,
          load_with_outputs(*sides_.simulation, setup_.reference, names, sides_.on_simulation));
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        TENONNX_ASSIGN_OR_RETURN(TensorMap made, whole->run(inputs_of(*whole, inputs_[i])));
        values[i].merge(made);
      }
    }
    for (std::size_t i = begin; i < end; ++i) {
      const Status status = piece(i, values);
      if (!status.ok()) result_.not_run.emplace_back(wanted_[i].name, status.message());
    }
    return {};
  }

  Status piece(std::size_t at, const std::vector<TensorMap>& values) {
    const Wanted& wanted = wanted_[at];
    TENONNX_ASSIGN_OR_RETURN(const Model model,
                             extract(setup_.reference, wanted.inputs, {wanted.name}));
    TENONNX_ASSIGN_OR_RETURN(const auto device, sides_.device->load(model, sides_.on_device));
    TENONNX_ASSIGN_OR_RETURN(const auto simulation,
                             sides_.simulation->load(model, sides_.on_simulation));
    return compare(*device, *simulation, values, at, at + 1);
  }

  const AgreeOptions& options_;
  const AgreeSides& sides_;
  const CompareSetup& setup_;
  AgreeResult& result_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<Wanted> wanted_;
  std::vector<TensorMap> inputs_;
};

}  // namespace

Result<AgreeResult> agree_on_model(const AgreeOptions& options, const CompareOptions& feed) {
  if (!options.only.empty() || !options.write.empty())
    return InvalidArgument(
        "--model compares the tensors of a model: --only and --write are of the pack of graphs");
  AgreeResult result;
  TENONNX_ASSIGN_OR_RETURN(const AgreeSides sides, open_sides(options, result));
  CompareOptions compared = feed;
  compared.ref = compared.on = "cpu";
  TENONNX_ASSIGN_OR_RETURN(const CompareSetup setup, set_up_comparison(compared));
  result.model = feed.reference.filename().string();
  result.model_sha256 = setup.source.sha256();
  result.inputs = setup.inputs.description();
  TENONNX_RETURN_IF_ERROR(ModelAgreement(options, sides, setup, result).run());
  for (Agreement& one : result.cases) sides.set_reason(one);
  return result;
}

}  // namespace tenonnx
