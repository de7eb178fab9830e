// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/inject.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/status.h"
#include "base/wording.h"
#include "flow/compare_setup.h"
#include "metrics/tensor_error.h"
#include "model/extract.h"
#include "model/graph.h"
#include "ort/capture.h"
#include "pipeline/decode.h"

namespace tenonnx {
namespace {

// All detections, whatever they score: gates choose.
constexpr float kAll = 0;

class Injector {
 public:
  Injector(const InjectOptions& options, InjectedError error, CompareSetup& setup,
           InjectResult& result)
      : options_(options), error_(std::move(error)), setup_(setup), result_(result) {}

  Status run() {
    TENONNX_RETURN_IF_ERROR(load());
    for (const double dose : options_.doses) {
      if (!std::isfinite(dose) || dose <= 0)
        return InvalidArgument("a dose is above 0 and finite, got {}", dose);
      InjectedDose one;
      one.dose = dose;
      result_.doses.push_back(one);
    }
    std::sort(result_.doses.begin(), result_.doses.end(),
              [](const auto& a, const auto& b) { return a.dose < b.dose; });
    for (std::size_t n = 0; n < setup_.inputs.size(); ++n) {
      if (options_.common.progress) options_.common.progress("inject", n, setup_.inputs.size());
      TENONNX_RETURN_IF_ERROR(run_input(n));
    }
    for (InjectedDose& dose : result_.doses) {
      if (!result_.has_task) continue;
      dose.moves_task = dose.unjudged > 0;
      // Whether the sample is large enough for a proof does not matter to a counter-example.
      for (const Check& check : task_checks(dose.task, TaskGates::heterogeneous()))
        dose.moves_task |= check.verdict == Verdict::kFail;
    }
    note_what_is_no_number();
    return {};
  }

 private:
  Status load() {
    TENONNX_ASSIGN_OR_RETURN(result_.tensor, resolve_tensor(setup_.reference, options_.at));
    const GraphIndex index(setup_.reference.proto().graph());
    const Value* value = index.find(result_.tensor);
    if (value == nullptr || value->is_initializer())
      return InvalidArgument(
          "'{}' is a constant of the model: give a tensor that is computed from the inputs",
          result_.tensor);
    const onnx::NodeProto* node = index.producer(result_.tensor);
    if (node != nullptr) result_.node = node_label(*node);
    if (!error_.device.empty())
      TENONNX_RETURN_IF_ERROR(round_as_made_by(node == nullptr ? "" : node->op_type(), error_));
    std::vector<std::string> inputs, outputs, captured;
    for (const TensorInfo& info : setup_.reference.inputs()) inputs.push_back(info.name);
    // An input or a constant that is given out follows from nothing.
    for (const TensorInfo& info : setup_.reference.outputs())
      if (const Value* output = index.find(info.name); output != nullptr && output->producer >= 0)
        outputs.push_back(info.name);
    captured = outputs;
    std::erase(outputs, result_.tensor);  // others may follow from it all the same
    if (value->uses.empty())
      return InvalidArgument("'{}' is an output of the model: nothing follows from it",
                             result_.tensor);
    if (outputs.empty())
      return InvalidArgument("no node makes an output that could follow from '{}'", result_.tensor);
    outputs_ = outputs;
    if (std::find(captured.begin(), captured.end(), result_.tensor) == captured.end() &&
        !value->is_input)
      captured.push_back(result_.tensor);
    LoadOptions exact = options_.common.load;
    exact.optimization = Optimization::kDisabled;
    TENONNX_ASSIGN_OR_RETURN(whole_,
                             load_with_outputs(*setup_.ref, setup_.reference, captured, exact));
    TENONNX_RETURN_IF_ERROR(read_error_file(error_, result_.tensor));
    if (!value->is_input) inputs.push_back(result_.tensor);
    TENONNX_ASSIGN_OR_RETURN(const Model part, extract(setup_.reference, inputs, outputs));
    TENONNX_ASSIGN_OR_RETURN(rest_, setup_.ref->load(part, exact));
    return {};
  }

  Status run_input(std::size_t n) {
    TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, setup_.inputs.load(n));
    TENONNX_ASSIGN_OR_RETURN(TensorMap right, whole_->run(inputs_of(*whole_, input.tensors)));
    if (const auto fed = input.tensors.find(result_.tensor); fed != input.tensors.end())
      right.try_emplace(result_.tensor, fed->second);
    const Tensor& y = right.at(result_.tensor);
    std::vector<Detection> expected;
    result_.has_task = setup_.contract_is_declared && !setup_.inputs.is_random() && input.width > 0;
    if (result_.has_task) {
      TENONNX_ASSIGN_OR_RETURN(
          expected, decode_detections(setup_.contract, right, input.width, input.height, kAll));
    }
    for (InjectedDose& dose : result_.doses) {
      TENONNX_ASSIGN_OR_RETURN(const Tensor wrong, with_error(y, error_, result_.tensor, dose.dose,
                                                              options_.common.seed + n));
      TENONNX_ASSIGN_OR_RETURN(const TensorError size, compare_tensors(y, wrong));
      dose.not_finite = std::max(dose.not_finite, size.broken);
      // What the error turns into Inf or NaN has no finite size.
      dose.relative_l2 =
          std::max(dose.relative_l2, size.broken > 0 ? INFINITY : size.relative_l2.value_or(0));
      TensorMap fed = input.tensors;
      fed.insert_or_assign(result_.tensor, wrong);
      TENONNX_ASSIGN_OR_RETURN(const TensorMap got, rest_->run(inputs_of(*rest_, fed)));
      TENONNX_RETURN_IF_ERROR(add_outputs(right, got, dose));
      if (!result_.has_task) continue;
      if (n == 0) dose.reference_top_score = expected.empty() ? 0 : expected.front().score;
      auto detected = decode_detections(setup_.contract, got, input.width, input.height, kAll);
      if (!detected.ok()) {  // Inf or NaN among them
        if (dose.unjudged++ == 0)
          dose.unjudged_why = fmt::format("'{}': {}", input.name, detected.status().message());
        continue;
      }
      dose.task.add_image(input.name, expected, *detected);
      if (n == 0) dose.top_score = detected->empty() ? 0 : detected->front().score;
    }
    return {};
  }

  // Once for all doses: mostly it is the same at each.
  void note_what_is_no_number() {
    const InjectedDose* infinite = nullptr;
    const InjectedDose* first = nullptr;
    std::string doses;
    std::int64_t least = 0, most = 0;
    for (const InjectedDose& dose : result_.doses) {
      if (infinite == nullptr && dose.not_finite > 0) infinite = &dose;
      if (dose.unjudged == 0) continue;
      if (first == nullptr) first = &dose;
      doses += fmt::format("{}{:g}", doses.empty() ? "" : ", ", dose.dose);
      least = least == 0 ? dose.unjudged : std::min(least, dose.unjudged);
      most = std::max(most, dose.unjudged);
    }
    if (infinite != nullptr && error_.kind == InjectedError::Kind::kRound && error_.device.empty())
      result_.notes.push_back(fmt::format(
          "{} of '{}' {} beyond what {} holds ({:g}): Inf, at every dose alike. A device that "
          "saturates stores a number instead: round:DEVICE stores as a device file says",
          counted(infinite->not_finite, "element"), result_.tensor,
          infinite->not_finite == 1 ? "is" : "are", to_string(error_.rounding.storage),
          error_.rounding.storage == DType::kFloat16 ? 65504.0 : 0x1.FEp127));
    else if (infinite != nullptr)
      result_.notes.push_back(
          fmt::format("from dose {:g} on the error turns {} of '{}' into Inf or NaN",
                      infinite->dose, counted(infinite->not_finite, "element"), result_.tensor));
    if (first == nullptr) return;
    const std::string images =
        least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
    result_.notes.push_back(
        fmt::format("dose {}: no detections can be judged in {} of {}, which counts as moving the "
                    "task; the figures leave them out. {}",
                    doses, images, counted(setup_.inputs.size(), "image"), first->unjudged_why));
  }

  Status add_outputs(const TensorMap& right, const TensorMap& got, InjectedDose& dose) const {
    for (const std::string& name : outputs_) {
      TENONNX_ASSIGN_OR_RETURN(const TensorError error,
                               compare_tensors(right.at(name), got.at(name)));
      if (!error.relative_l2 && error.broken == 0) continue;
      auto found = std::find_if(dose.outputs.begin(), dose.outputs.end(),
                                [&](const auto& o) { return o.first == name; });
      if (found == dose.outputs.end()) found = dose.outputs.insert(found, {name, 0});
      found->second =
          std::max(found->second, error.broken > 0 ? INFINITY : error.relative_l2.value_or(0));
    }
    return {};
  }

  const InjectOptions& options_;
  InjectedError error_;
  CompareSetup& setup_;
  InjectResult& result_;
  std::unique_ptr<LoadedGraph> whole_, rest_;
  std::vector<std::string> outputs_;  // that may follow from the tensor
};

}  // namespace

std::optional<double> InjectResult::least_moving() const {
  for (const InjectedDose& dose : doses)
    if (dose.moves_task) return dose.dose;
  return std::nullopt;
}

Result<InjectResult> inject(const InjectOptions& options) {
  TENONNX_ASSIGN_OR_RETURN(InjectedError error, parse_error(options.error));
  CompareOptions common = options.common;
  common.on = common.ref;
  TENONNX_ASSIGN_OR_RETURN(CompareSetup setup, set_up_comparison(common));
  InjectResult result;
  result.model = common.reference.filename().string();
  result.sha256 = setup.source.sha256();
  result.ref = common.ref;
  result.inputs = setup.inputs.description();
  result.random_inputs = setup.inputs.is_random();
  result.error = options.error;
  result.notes = setup.notes;
  TENONNX_RETURN_IF_ERROR(Injector(options, std::move(error), setup, result).run());
  return result;
}

}  // namespace tenonnx
