// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/whole_check.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "adapters/sim.h"
#include "base/status.h"
#include "base/wording.h"
#include "flow/comparison.h"
#include "flow/disturbed_graphs.h"
#include "flow/one_run.h"
#include "flow/segments.h"
#include "flow/whole_floor.h"
#include "metrics/elements.h"
#include "metrics/tensor_error.h"
#include "model/shapes.h"
#include "passes/proof_floor.h"

namespace tenonnx {
namespace {

// Nothing of what is being checked is left to a fusion.
LoadOptions without_optimization(LoadOptions load) {
  load.optimization = Optimization::kDisabled;
  return load;
}

// What the outputs hold that a comparison can say something of.
class Substance {
 public:
  void add(const Tensor& output) {
    visit_elements(output, [&]<typename T>(const T* elements) {
      if constexpr (is_float_element<T>) {
        floating_ = true;
        finite_ |= std::any_of(elements, elements + output.size(),
                               [](T value) { return std::isfinite(to_double(value)); });
      } else {
        other_ |= output.size() > 0;
      }
    });
  }
  // Labels of a detector are whole numbers even where all of its scores are NaN.
  bool any() const { return floating_ ? finite_ : other_; }

 private:
  bool floating_ = false, finite_ = false, other_ = false;
};

class Whole {
 public:
  Whole(const Model& before, const Model& after, PassClass exactness, const TensorInputs& inputs,
        const Contract* contract, const LoadOptions& load,
        const std::map<std::string, std::string>& renamed,
        const std::map<std::string, double>& recomputed, const Model& reduced)
      : before_(before),
        reduced_(reduced),
        after_(after),
        exactness_(exactness),
        inputs_(inputs),
        contract_(contract),
        load_(without_optimization(load)),
        renamed_(renamed),
        executor_(make_proof_executor()),
        disturbed_(before, *executor_, load_, recomputed),
        floor_(before, disturbed_, exactness),
        comparison_(exactness == PassClass::kApproximate ? TaskGates::heterogeneous()
                                                         : TaskGates::cpu_reexport(),
                    output_names(before)) {}

  Result<WholeCheck> run() {
    const auto load = [this](std::size_t k) { return inputs_.load(k); };
    // The next one is made or read while something runs.
    std::future<Result<ReferenceInput>> next;
    if (inputs_.size() > 0) next = std::async(std::launch::async, load, 0);
    if (inputs_.size() > 0 &&
        (exactness_ == PassClass::kBitwise || exactness_ == PassClass::kAlgebraic)) {
      TENONNX_ASSIGN_OR_RETURN(
          one_run_,
          OneRun::prepare(reduced_, after_, renamed_,
                          bits_decide() ? PassClass::kBitwise : exactness_, *executor_, load_));
    }
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, next.get());
      if (k + 1 < inputs_.size()) next = std::async(std::launch::async, load, k + 1);
      TENONNX_RETURN_IF_ERROR(add(input));
    }
    WholeCheck result;
    result.checks = checks();
    if (by_task() && exactness_ != PassClass::kApproximate &&
        overall_verdict(result.checks) == Verdict::kFail && broken_.empty()) {
      TENONNX_RETURN_IF_ERROR(judge_narrow(result.checks));
      TENONNX_RETURN_IF_ERROR(judge_bounded(result.checks));
    }
    result.verdict = overall_verdict(result.checks);
    return result;
  }

 private:
  static std::vector<std::string> output_names(const Model& model) {
    std::vector<std::string> names;
    for (const TensorInfo& info : model.outputs()) names.push_back(info.name);
    return names;
  }

  bool by_task() const { return contract_ != nullptr && inputs_.images() != nullptr; }

  Status add(const ReferenceInput& input) {
    Observation was, is;
    if (settled_by_one_run(input, was)) {
      is = was;
    } else {
      TENONNX_RETURN_IF_ERROR(run_both(input, was, is));
    }
    TENONNX_ASSIGN_OR_RETURN(Difference difference, differ(was, is));
    // Kernels split a tensor among threads, and the ends of the parts take another path than their
    // middle: what differs may be that. One thread decides (as in proof.cc).
    if (exactness_ == PassClass::kBitwise && difference.elements > 0) {
      TENONNX_RETURN_IF_ERROR(load_single());
      TENONNX_ASSIGN_OR_RETURN(was, run_whole(*single_before_, input.tensors));
      TENONNX_ASSIGN_OR_RETURN(is, run_whole(*single_after_, input.tensors));
      TENONNX_ASSIGN_OR_RETURN(difference, differ(was, is));
    }
    for (const auto& [name, tensor] : was.outputs) substance_.add(tensor);
    if (difference.elements > 0 && differing_ == 0)
      first_ = fmt::format("first in '{}' of '{}'", difference.first, input.name);
    differing_ += difference.elements;
    if (exactness_ == PassClass::kBitwise) return {};
    if (by_task()) {
      TENONNX_RETURN_IF_ERROR(decode(*contract_, input, was));
      if (const Status status = decode(*contract_, input, is); !status.ok()) {
        broken_ = fmt::format("'{}': {}", input.name, status.message());
        return {};
      }
      return comparison_.add(input.name, was, is);
    }
    if (difference.elements == 0 || exactness_ == PassClass::kApproximate) return {};
    return add_floor(input, was, is);
  }

  // Where there is a task its gates judge what differs, and not the noise floors of parts.
  bool bits_decide() const { return exactness_ == PassClass::kBitwise || by_task(); }

  bool settled_by_one_run(const ReferenceInput& input, Observation& outputs) {
    if (one_run_ == nullptr) return false;
    auto found = one_run_->run(input.tensors);
    if (!found.ok() || !*found) {  // and so it will be of the next input
      one_run_.reset();
      return false;
    }
    outputs.outputs = std::move((*found)->outputs);
    if ((*found)->worst && (!part_ || severity(*(*found)->worst) > severity(*part_)))
      part_ = std::move((*found)->worst);
    parts_ = std::max(parts_, (*found)->differing);
    return true;
  }

  // The two graphs run at the same time.
  Status run_both(const ReferenceInput& input, Observation& was, Observation& is) {
    auto before = std::async(std::launch::async, [&]() -> Result<Observation> {
      TENONNX_RETURN_IF_ERROR(load_before());
      return run_whole(*graph_before_, input.tensors);
    });
    const auto run_after = [&]() -> Result<Observation> {
      if (graph_after_ == nullptr) {
        TENONNX_ASSIGN_OR_RETURN(graph_after_, executor_->load(after_, load_));
      }
      return run_whole(*graph_after_, input.tensors);
    };
    auto after = run_after();
    TENONNX_ASSIGN_OR_RETURN(was, before.get());
    TENONNX_ASSIGN_OR_RETURN(is, std::move(after));
    return {};
  }

  Status load_before() {
    if (graph_before_ != nullptr) return {};
    // With its shapes in it a raw graph of thousands of nodes is planned in half the time: ONNX
    // Runtime 1.29 searches freed memory for each tensor, and finds none without a shape.
    Model known = before_.clone();
    TENONNX_RETURN_IF_ERROR(annotate_shapes(known));
    TENONNX_ASSIGN_OR_RETURN(graph_before_, executor_->load(known, load_));
    return {};
  }

  struct Difference {
    std::int64_t elements = 0;
    std::string first;  // the first output that has any
  };

  static Result<Difference> differ(const Observation& was, const Observation& is) {
    Difference all;
    for (const auto& [name, tensor] : was.outputs) {
      const auto other = is.outputs.find(name);
      if (other == is.outputs.end()) return Internal("the new graph lacks the output '{}'", name);
      auto identity = compare_identical(tensor, other->second);
      const std::int64_t count = identity.ok() ? identity->differing : tensor.size();
      if (count > 0 && all.elements == 0) all.first = name;
      all.elements += count;
    }
    return all;
  }

  Status load_single() {
    if (single_before_ != nullptr) return {};
    LoadOptions load = load_;
    load.intra_op_threads = 1;
    TENONNX_ASSIGN_OR_RETURN(single_before_, executor_->load(before_, load));
    TENONNX_ASSIGN_OR_RETURN(single_after_, executor_->load(after_, load));
    return {};
  }

  Status add_floor(const ReferenceInput& input, const Observation& was, const Observation& is) {
    TENONNX_RETURN_IF_ERROR(load_before());
    TENONNX_ASSIGN_OR_RETURN(auto checks, floor_.judge(*graph_before_, input, was, is));
    if (!checks) {
      ++unmeasured_;
      return {};
    }
    for (Check& check : *checks) {
      check.note = fmt::format("largest in '{}'", input.name);
      const auto [it, inserted] = worst_.try_emplace(check.name, check);
      if (!inserted && severity(check) > severity(it->second)) it->second = check;
    }
    return {};
  }

  // The gates of a cpu re-export are for float32. Where float16 is inside, what one rounding more
  // does to scores and boxes is measured, and kProofFactor times that is allowed, but never more
  // than of a part on a device. A cosine falls with the square of an error.
  Status judge_narrow(std::vector<Check>& checks) {
    TENONNX_ASSIGN_OR_RETURN(LoadedGraph * noisy, disturbed_.storage());
    if (noisy == nullptr) return {};
    return widen_gates(
        *noisy, kProofFactor,
        fmt::format("{:g} x one rounding more of what is float16 inside", kProofFactor), checks);
  }

  // What errors of the size of their bounds do is the most that a bounded pass may do.
  Status judge_bounded(std::vector<Check>& checks) {
    if (overall_verdict(checks) != Verdict::kFail) return {};
    TENONNX_ASSIGN_OR_RETURN(LoadedGraph * moved, with_bounds());
    if (moved == nullptr) return {};
    return widen_gates(*moved, 1, "what errors as large as the bounds do", checks);
  }

  // nullptr where there is nothing that a bound allows.
  Result<LoadedGraph*> with_bounds() {
    if (exactness_ != PassClass::kBounded) return nullptr;
    return disturbed_.bounds();
  }

  // Judges again, by `factor` times what `noisy` does to scores and boxes where that is more than
  // the gates allow.
  Status widen_gates(LoadedGraph& noisy, double factor, const std::string& origin,
                     std::vector<Check>& checks) {
    TENONNX_RETURN_IF_ERROR(load_before());
    ChainComparison noise(comparison_.gates(), output_names(before_));
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, inputs_.load(k));
      TENONNX_ASSIGN_OR_RETURN(Observation was, run_whole(*graph_before_, input.tensors));
      TENONNX_ASSIGN_OR_RETURN(Observation rounded, run_whole(noisy, input.tensors));
      TENONNX_RETURN_IF_ERROR(decode(*contract_, input, was));
      if (!decode(*contract_, input, rounded).ok()) return {};  // says nothing about the gates
      TENONNX_RETURN_IF_ERROR(noise.add(input.name, was, rounded));
    }
    const TaskSummary& measured = noise.summary();
    const TaskGates most = TaskGates::heterogeneous();
    TaskGates gates = comparison_.gates();
    gates.name += ", or " + origin;
    gates.score_difference = std::clamp(factor * measured.max_score_difference,
                                        gates.score_difference, most.score_difference);
    gates.iou = std::clamp(1 - factor * (1 - measured.min_iou), most.iou, gates.iou);
    if (std::isfinite(measured.min_scores_cosine))
      gates.scores_cosine = std::clamp(1 - factor * factor * (1 - measured.min_scores_cosine),
                                       most.scores_cosine, gates.scores_cosine);
    for (Check& judged : task_checks(comparison_.summary(), gates)) {
      judged.name = "whole graph: " + judged.name;
      const auto same = std::find_if(checks.begin(), checks.end(),
                                     [&](const Check& check) { return check.name == judged.name; });
      if (same != checks.end()) *same = std::move(judged);
    }
    return {};
  }

  std::vector<Check> checks() const {
    const std::string over = fmt::format("over {}", inputs_.description());
    if (inputs_.size() == 0) return {inconclusive_check("whole graph", "there are no inputs")};
    if (!substance_.any() && differing_ == 0)
      return {
          inconclusive_check("whole graph",
                             "the outputs of the graph before hold not one finite number: "
                             "nothing was compared; give inputs that it computes something of")};
    if (differing_ == 0 && part_) {
      Check check = *part_;
      check.name = fmt::format("whole graph: {}", check.name);
      check.note = fmt::format("the worst of {}; {}; {}", counted(parts_, "changed part"),
                               one_run_ ? one_run_->description() : "both graphs ran", over);
      return {check};
    }
    if (differing_ == 0)
      return {make_check(
          "whole graph: differing elements", 0, Comparison::kAtMost,
          {0, one_run_ ? fmt::format("identical element by element: {}", one_run_->description())
                       : "identical element by element"},
          over)};
    if (exactness_ == PassClass::kBitwise)
      return {make_check("whole graph: differing elements", static_cast<double>(differing_),
                         Comparison::kAtMost, {0, "class bitwise: every bit"}, first_)};
    std::vector<Check> out;
    if (!broken_.empty())
      out.push_back(make_check("whole graph: decodes", 1, Comparison::kAtMost,
                               {0, "as before the passes"}, broken_));
    if (by_task()) {
      for (Check& check : comparison_.checks(false)) {
        check.name = "whole graph: " + check.name;
        out.push_back(std::move(check));
      }
      return out;
    }
    if (exactness_ == PassClass::kApproximate)
      return {inconclusive_check("whole graph",
                                 "another model: needs the task gate; give --images "
                                 "of a model with a contract")};
    if (unmeasured_ > 0)
      out.push_back(inconclusive_check(
          "whole graph: noise floor",
          fmt::format("in {} of {} roundings alone exchange rows behind a selection, so that no "
                      "floor can be measured: give --images of a model with a contract, or another "
                      "--seed",
                      unmeasured_, counted(static_cast<std::int64_t>(inputs_.size()), "input"))));
    for (const auto& [name, check] : worst_) {
      Check copy = check;
      copy.name = "whole graph: " + name;
      if (copy.verdict == Verdict::kFail && floor_.selects()) {
        copy.verdict = Verdict::kInconclusive;
        copy.note +=
            "; behind a selection rows may change places: give --images of a model with a "
            "contract";
      }
      out.push_back(std::move(copy));
    }
    return out;
  }

  const Model& before_;
  const Model& reduced_;
  const Model& after_;
  const PassClass exactness_;
  const TensorInputs& inputs_;
  const Contract* contract_;
  LoadOptions load_;
  const std::map<std::string, std::string>& renamed_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<OneRun> one_run_;  // while it settles every input
  std::optional<Check> part_;        // the worst of the parts that give other bits there
  std::size_t parts_ = 0;            // how many they are
  std::unique_ptr<LoadedGraph> graph_before_, graph_after_;
  std::unique_ptr<LoadedGraph> single_before_, single_after_;  // loaded with one thread
  DisturbedGraphs disturbed_;                                  // of `before`
  WholeFloor floor_;
  ChainComparison comparison_;
  Substance substance_;          // of the graph before
  std::int64_t unmeasured_ = 0;  // inputs without a noise floor
  std::int64_t differing_ = 0;
  std::string first_, broken_;
  std::map<std::string, Check> worst_;
};

}  // namespace

Result<WholeCheck> check_whole(const Model& before, const Model& after, PassClass exactness,
                               const TensorInputs& inputs, const Contract* contract,
                               const LoadOptions& load,
                               const std::map<std::string, std::string>& renamed,
                               const std::map<std::string, double>& recomputed,
                               const Model* reduced) {
  return Whole(before, after, exactness, inputs, contract, load, renamed, recomputed,
               reduced != nullptr ? *reduced : before)
      .run();
}

}  // namespace tenonnx
