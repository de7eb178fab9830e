// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/prove.h"

#include <algorithm>
#include <memory>

#include "adapters/qnn_chips.h"
#include "base/status.h"
#include "base/wording.h"
#include "flow/cut_proof.h"
#include "flow/diagnosis.h"
#include "flow/proof_references.h"
#include "flow/segments.h"
#include "flow/selected_rows.h"
#include "pipeline/size_order.h"

namespace tenonnx {
namespace {

constexpr const char *kCutTitle = "cut", *kWholeTitle = "prepared graph";

bool all_on_cpu(const std::vector<Segment>& segments) {
  return std::all_of(segments.begin(), segments.end(),
                     [](const Segment& segment) { return segment.executor == "cpu"; });
}

// Boundaries first, then outputs, each in the order of the segments.
std::vector<std::string> computed_order(const std::vector<Segment>& segments) {
  std::vector<std::string> out;
  for (const Segment& segment : segments)
    for (const TensorInfo& output : segment.outputs) out.push_back(output.name);
  return out;
}

Check failed(std::string name, const Status& status) {
  Check check =
      make_check(std::move(name), 1, Comparison::kAtMost, {0, "no error"}, status.message());
  return check;
}

Result<TensorMap> outputs_of(Result<Observation> ran) {
  if (!ran.ok()) return ran.status();
  return std::move(ran->outputs);
}

// Runs the proof; one object, so that its steps share what is loaded.
class Prover {
 public:
  explicit Prover(const ProofRequest& request)
      : request_(request),
        contract_(*request.contract),
        segments_(*request.segments),
        inputs_(*request.inputs),
        comparison_(gates_for(segments_), computed_order(segments_)),
        cut_(
            segments_.size() > 1 ? kCutTitle : kWholeTitle, contract_,
            [this](const ReferenceInput& input) { return references_->whole_disabled(input); },
            [this](const ReferenceInput& input) { return references_->package_disabled(input); }) {}

  Result<Proof> run() {
    TENONNX_RETURN_IF_ERROR(prepare());
    std::vector<std::string> unlabelled;
    const auto total = static_cast<std::int64_t>(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      report("prove", static_cast<std::int64_t>(i), total);
      TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, inputs_.load(i));
      proof_.input_hashes.push_back(input.sha256);
      TENONNX_ASSIGN_OR_RETURN(const Observation reference, reference_of(input));
      TENONNX_ASSIGN_OR_RETURN(const bool goes_on, graph_level(input, reference));
      if (!goes_on) break;
      TENONNX_ASSIGN_OR_RETURN(const bool ran, chain_level(input, reference, unlabelled));
      if (!ran) break;
    }
    report("prove", total, total);
    if (!unlabelled.empty())
      proof_.notes.push_back(fmt::format("the labels do not name {} of {}, first '{}'",
                                         unlabelled.size(), counted(total, "image"),
                                         unlabelled.front()));
    if (proof_.cut_is_right && init_error_.ok() && forward_error_.ok() && !proof_.budget.stopped &&
        !has_failed_on_emulator())
      TENONNX_RETURN_IF_ERROR(measure_placement());
    TENONNX_RETURN_IF_ERROR(finish());
    if (proof_.verdict == Verdict::kFail && proof_.cut_is_right &&
        references_->all_parts() != nullptr && !proof_.budget.stopped)
      diagnose();
    return std::move(proof_);
  }

 private:
  void report(std::string_view step, std::int64_t done, std::int64_t total) const {
    if (request_.progress) request_.progress(step, done, total);
  }

  Status prepare() {
    TENONNX_RETURN_IF_ERROR(read_labels());  // before the long part
    if (segments_.size() > 1) {
      TENONNX_ASSIGN_OR_RETURN(SelectedRows rows, selected_rows(request_.package, segments_));
      selected_ = rows.tensors;
      comparison_.set_selected(std::move(rows.tensors));
      first_selection_ = std::move(rows.first);
    }
    TENONNX_ASSIGN_OR_RETURN(references_, ProofReferences::load(request_));
    if (request_.source != nullptr && contract_.size) {
      TENONNX_ASSIGN_OR_RETURN(SizeOrderFinding found,
                               check_size_order(contract_, [this](const TensorMap& inputs) {
                                 return outputs_of(references_->run_whole(inputs));
                               }));
      if (found.settled)
        proof_.notes.push_back(std::move(found.note));
      else
        size_order_ = inconclusive_check(size_order_check_name(contract_), std::move(found.note));
      if (found.settled) {
        TENONNX_RETURN_IF_ERROR(check_own_size_order());
      }
    }
    return {};
  }

  // Images of one size do not show that the package takes no notice of it.
  Status check_own_size_order() {
    if (!references_->runs_package()) return {};
    const auto found = check_size_order(contract_, [this](const TensorMap& inputs) {
      return outputs_of(references_->run_package(inputs));
    });
    if (!found.ok())
      size_order_ = failed(size_order_check_name(contract_) + " in the package", found.status());
    else if (!found->settled)
      size_order_ =
          inconclusive_check(size_order_check_name(contract_) + " in the package", found->note);
    return {};
  }

  Status read_labels() {
    if (request_.labels.empty() || inputs_.is_random()) return {};
    if (contract_.classes.empty() && !request_.labels_given) {
      proof_.notes.push_back(
          fmt::format("no average precision: the contract names no classes, so that the labels "
                      "'{}' cannot be matched with them",
                      request_.labels.filename().string()));
      return {};
    }
    TENONNX_ASSIGN_OR_RETURN(labelled_, LabelledRun::create(request_.labels, contract_));
    const auto& files = inputs_.files();
    const auto known = [&](const std::filesystem::path& file) {
      return labelled_->knows(file.filename().string());
    };
    if (!request_.labels_given || std::any_of(files.begin(), files.end(), known)) return {};
    return InvalidArgument(
        "the labels '{}' (--labels) name none of the {} (first '{}'); images are found by their "
        "file name: give the labels of these images, or --labels none to do without",
        request_.labels.string(), inputs_.description(), files.front().filename().string());
  }

  Result<Observation> reference_of(const ReferenceInput& input) {
    if (request_.source != nullptr) {
      TENONNX_ASSIGN_OR_RETURN(Observation out, references_->run_whole(input.tensors));
      TENONNX_RETURN_IF_ERROR(
          decode(contract_, input, out).at(fmt::format("the whole model on '{}'", input.name)));
      return out;
    }
    const auto found =
        std::find_if(request_.evidence->begin(), request_.evidence->end(),
                     [&](const DetectionEvidence& one) { return one.input == input.name; });
    if (found == request_.evidence->end())
      return InvalidArgument(
          "the package's evidence knows no image '{}'; give the images that it was deployed with, "
          "or "
          "the source model (--model)",
          input.name);
    if (found->sha256 != input.sha256)
      return InvalidArgument(
          "image '{}' gives inputs with SHA-256 {}, the evidence is about {}: another image of "
          "that "
          "name; give the source model (--model) to compare with it instead",
          input.name, input.sha256, found->sha256);
    Observation out;
    out.detections = found->reference;
    return out;
  }

  // False where the cut is wrong, and nothing else is to be tried.
  Result<bool> graph_level(const ReferenceInput& input, const Observation& reference) {
    parts_observation_ = {};
    if (!references_->runs_package()) return true;
    TENONNX_ASSIGN_OR_RETURN(parts_observation_, references_->run_package(input.tensors));
    // Where the parts went wrong their outputs may not decode; the proof says so by itself.
    const Status decoded = decode(contract_, input, parts_observation_);
    if (!decoded.ok()) parts_observation_.detections.clear();
    // One input shows which tensor is which.
    BoundarySources* sources = references_->sources();
    if (sources != nullptr && references_->all_parts() != nullptr &&
        proof_.input_hashes.size() == 1) {
      TENONNX_ASSIGN_OR_RETURN(const TensorMap own, sources->run(input.tensors));
      TENONNX_RETURN_IF_ERROR(
          sources->compare(own, parts_observation_.boundaries, selected_, true));
    }
    if (!request_.graph_level) return true;
    TENONNX_RETURN_IF_ERROR(cut_.add(input, reference, parts_observation_));
    proof_.cut_is_right = cut_.verdict() != Verdict::kFail;
    return proof_.cut_is_right;
  }

  Result<bool> chain_level(const ReferenceInput& input, const Observation& whole,
                           std::vector<std::string>& unlabelled) {
    Observation candidate;
    if (request_.source != nullptr && request_.plain.empty() && all_on_cpu(segments_)) {
      candidate = parts_observation_;  // the same files in the same kind of session
    } else {
      if (chain_ == nullptr && !load_chain()) return false;
      auto ran = chain_->run(input.tensors);
      if (!ran.ok() && budget_used_up()) {
        // The images that are left, and the run that shows the placement.
        stop_for_budget((inputs_.size() - proof_.evidence.size() + 1) * chain_->on_devices());
        return false;
      }
      if (!ran.ok()) {
        forward_error_ = ran.status();
        return false;
      }
      candidate = std::move(*ran);
      if (const Status decoded = decode(contract_, input, candidate); !decoded.ok())
        proof_.notes.push_back(fmt::format("the package's outputs for '{}' do not decode: {}",
                                           input.name, decoded.message()));
    }
    Observation reference = whole;
    TENONNX_ASSIGN_OR_RETURN(reference.boundaries, boundaries_of(input, candidate));
    TENONNX_RETURN_IF_ERROR(comparison_.add(input.name, reference, candidate));
    // NaN, which is no comparison's winner, is the worst there is.
    const double cosine = scores_cosine(reference.detections, candidate.detections);
    if (!(cosine >= worst_cosine_)) {
      worst_cosine_ = cosine;
      worst_input_ = proof_.input_hashes.size() - 1;
    }
    if (labelled_ && !labelled_->add(input.name, reference.detections, candidate.detections))
      unlabelled.push_back(input.name);
    proof_.evidence.push_back({input.name, input.width, input.height, input.sha256,
                               reference.detections, candidate.detections});
    return true;
  }

  // What the boundaries are to be compared with: the same segments on the cpu; or, where the
  // package holds them compiled only, the source model's own tensors.
  Result<TensorMap> boundaries_of(const ReferenceInput& input, const Observation& candidate) {
    BoundarySources* sources = references_->sources();
    if (references_->all_parts() != nullptr || sources == nullptr)
      return parts_observation_.boundaries;
    TensorMap own = parts_observation_.boundaries;
    if (!references_->has_tail()) {
      TENONNX_ASSIGN_OR_RETURN(own, sources->run(input.tensors));
    }
    TENONNX_RETURN_IF_ERROR(sources->compare(own, candidate.boundaries, selected_, false));
    // Of another shape there is no cosine; that is a failed check already.
    std::erase_if(own, [&](const auto& one) {
      const auto found = candidate.boundaries.find(one.first);
      return found == candidate.boundaries.end() || found->second.shape() != one.second.shape();
    });
    return own;
  }

  // A run of an emulator takes minutes, and no cache answers the one that shows the placement: of a
  // package that fails anyway nobody asks where its nodes ran.
  bool has_failed_on_emulator() const {
    const bool emulated =
        std::any_of(segments_.begin(), segments_.end(),
                    [](const Segment& segment) { return !emulator_of(segment.executor).empty(); });
    return emulated && overall_verdict(comparison_.checks(inputs_.is_random())) == Verdict::kFail;
  }

  // Where the nodes ran, from a profile of one more run: profiling would slow the others down.
  Status measure_placement() {
    if (inputs_.size() == 0) return {};
    report("placement", 0, 1);
    LoadOptions options = request_.load;
    options.profile = true;
    TENONNX_ASSIGN_OR_RETURN(LoadedSegments profiled,
                             LoadedSegments::load(request_.package, segments_, options));
    TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, inputs_.load(0));
    profiled.set_budget(request_.budget);
    const auto ran = profiled.run(input.tensors);
    if (!ran.ok() && budget_used_up()) {
      stop_for_budget(profiled.on_devices());
      return {};
    }
    if (!ran.ok()) return ran.status();
    proof_.placement = profiled.placement();
    report("placement", 1, 1);
    return {};
  }

  // Where a failure of a simulated device begins, on the input that came out worst. It explains a
  // verdict that stands already: what goes wrong here is a note.
  void diagnose() {
    report("diagnose", 0, 0);
    const Status status = diagnose_worst();
    if (!status.ok()) proof_.notes.push_back("no diagnosis: " + status.message());
  }

  Status diagnose_worst() {
    TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, inputs_.load(worst_input_));
    TENONNX_ASSIGN_OR_RETURN(const Observation parts, references_->run_package(input.tensors));
    TENONNX_ASSIGN_OR_RETURN(Diagnosis found, diagnose_simulated(plain_package(request_), segments_,
                                                                 input, parts, request_.progress));
    if (!found.first_bad_tensor.empty())
      proof_.first_bad_tensor = std::move(found.first_bad_tensor);
    proof_.diagnosis = std::move(found.text);
    if (!found.note.empty()) proof_.notes.push_back(std::move(found.note));
    return {};
  }

  bool load_chain() {
    LoadOptions options = request_.load;
    options.reuse_results =
        true;  // of an emulator; the placement is measured in a session of its own
    auto loaded = LoadedSegments::load(request_.package, segments_, options);
    if (!loaded.ok()) {
      init_error_ = loaded.status();
      return false;
    }
    chain_ = std::make_unique<LoadedSegments>(std::move(*loaded));
    chain_->set_budget(request_.budget);
    return true;
  }

  bool budget_used_up() const { return request_.budget != nullptr && request_.budget->used_up(); }
  void stop_for_budget(std::size_t left) {
    const std::size_t compared = proof_.evidence.size();
    proof_.budget = stop_of(*request_.budget, compared, inputs_.size(), left);
    proof_.input_hashes.resize(compared);
  }

  Status finish() {
    if (request_.source != nullptr && request_.graph_level && references_->runs_package()) {
      proof_.checks = cut_.checks();
      proof_.fusion_crosses = cut_.fusion_crosses();
    }
    if (references_->sources() != nullptr && proof_.cut_is_right)
      proof_.checks.push_back(references_->sources()->check());
    if (proof_.cut_is_right) add_chain_checks();
    if (size_order_) proof_.checks.push_back(*size_order_);
    proof_.verdict = overall_verdict(proof_.checks);
    if (const std::size_t selected = comparison_.selected_boundaries(); selected > 0)
      proof_.notes.push_back(fmt::format(
          "{} of {} boundaries lie behind a selection ({}): their rows come in the order in which "
          "each side chose, so that their cosine is no gate (it is in the summary); the gates of "
          "the task judge what is made of them",
          selected, comparison_.boundaries(), first_selection_));
    for (const Segment& segment : segments_)
      if (const std::string emulator = emulator_of(segment.executor); !emulator.empty())
        proof_.notes.push_back(fmt::format(
            "segment '{}' ran on {}, not on a chip: the vendor's compiler and its "
            "arithmetic, but no chip's time, and nothing here was compared with silicon",
            segment.name, emulator));
    proof_.task = comparison_.summary();
    proof_.classes = contract_.classes;
    proof_.figures = comparison_.figures();
    proof_.images = comparison_.images();
    proof_.first_bad_tensor = comparison_.first_broken();
    if (labelled_ && labelled_->images() > 0) {
      TENONNX_ASSIGN_OR_RETURN(proof_.precision, labelled_->figures());
      proof_.labelled_images = labelled_->images();
    }
    const LoadedSegments* used = chain_ != nullptr ? chain_.get() : references_->all_parts();
    if (used != nullptr) proof_.versions = used->versions();
    set_stages();
    return {};
  }

  void add_chain_checks() {
    if (!init_error_.ok()) {
      proof_.checks.push_back(failed("runtime initialisation", init_error_));
    } else if (!forward_error_.ok()) {
      proof_.checks.push_back(failed("forward", forward_error_));
    } else {
      // Of no input at all there is nothing to say but that.
      if (proof_.budget.stopped)
        proof_.checks.push_back(inconclusive_check(kBudgetCheck, proof_.budget.text));
      if (!proof_.budget.stopped || proof_.budget.compared > 0)
        for (Check& check : comparison_.checks(inputs_.is_random()))
          proof_.checks.push_back(std::move(check));
      for (const SegmentPlacement& placement : proof_.placement)
        if (!placement.problem.empty())
          proof_.checks.push_back(
              placement.failed
                  ? failed("placement of " + placement.segment, Internal("{}", placement.problem))
                  : inconclusive_check("placement of " + placement.segment, placement.problem));
    }
  }

  void set_stages() {
    const bool tried = proof_.cut_is_right;
    StageStatus init{"runtime_init", "ok", ""};
    StageStatus forward{"forward", "ok", ""};
    if (!tried) {
      init = {"runtime_init", "not run", "the cut is wrong: nothing else is tried"};
      forward = {"forward", "not run", "the cut is wrong: nothing else is tried"};
    } else if (!init_error_.ok()) {
      init = {"runtime_init", "failed", init_error_.message()};
      forward = {"forward", "not run", "no session"};
    } else if (!forward_error_.ok()) {
      forward = {"forward", "failed", forward_error_.message()};
    } else if (proof_.budget.stopped && proof_.budget.compared == 0) {
      forward = {"forward", "not run", proof_.budget.text};
    } else {
      forward.detail = inputs_.description();
      if (proof_.budget.stopped) forward.detail += ": " + proof_.budget.text;
    }
    proof_.stages = {std::move(init), std::move(forward)};
  }

  const ProofRequest& request_;
  const Contract& contract_;
  const std::vector<Segment>& segments_;
  const InputSource& inputs_;
  std::unique_ptr<ProofReferences> references_;
  std::unique_ptr<LoadedSegments> chain_;
  std::optional<LabelledRun> labelled_;
  std::optional<Check> size_order_;  // where it is not settled
  ChainComparison comparison_;
  CutProof cut_;
  std::set<std::string> selected_;
  Observation parts_observation_;
  double worst_cosine_ = 2;  // above every cosine
  std::size_t worst_input_ = 0;
  std::string first_selection_;
  Status init_error_, forward_error_;
  Proof proof_;
};

}  // namespace

TaskGates gates_for(const std::vector<Segment>& segments) {
  return all_on_cpu(segments) ? TaskGates::cpu_reexport() : TaskGates::heterogeneous();
}

bool is_graph_level(const Check& check) {
  return check.name.starts_with(std::string(kCutTitle) + ": ") ||
         check.name.starts_with(std::string(kWholeTitle) + ": ");
}

std::string size_order_check_name(const Contract& contract) {
  return fmt::format("order of '{}'", contract.size ? contract.size->name : "");
}

Result<Proof> prove(const ProofRequest& request) {
  if ((request.source == nullptr) == (request.evidence == nullptr))
    return InvalidArgument("a proof needs the source model or the evidence, one of the two");
  return Prover(request).run();
}

}  // namespace tenonnx
