// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare.h"

#include <algorithm>
#include <cmath>

#include "adapters/address.h"
#include "adapters/files.h"
#include "base/files.h"
#include "base/status.h"
#include "contract/contract.h"
#include "device/device.h"
#include "flow/compare_checks.h"
#include "flow/compare_explain.h"
#include "flow/compare_journal.h"
#include "flow/compare_windows.h"
#include "flow/deploy.h"
#include "flow/noise_path.h"
#include "flow/parts_executor.h"
#include "flow/tensor_inputs.h"
#include "model/extract.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSim = "sim:", kExec = "exec:";

bool is_sim(std::string_view address) { return address.starts_with(kSim); }

// Everything that a comparison is made of, in the order in which it is found out.
class Comparer {
 public:
  explicit Comparer(const CompareOptions& options) : options_(options) {}

  Result<CompareResult> run() {
    TENONNX_RETURN_IF_ERROR(check_options());
    TENONNX_RETURN_IF_ERROR(open_executors());
    TENONNX_RETURN_IF_ERROR(choose_storage());
    TENONNX_RETURN_IF_ERROR(load_models());
    TENONNX_RETURN_IF_ERROR(open_inputs());
    TENONNX_RETURN_IF_ERROR(make_plan());
    TENONNX_ASSIGN_OR_RETURN(ComparedTensors compared, run_all());
    collect(std::move(compared));
    TENONNX_RETURN_IF_ERROR(add_checks());
    return std::move(result_);
  }

 private:
  void step(std::string_view name) const {
    if (options_.progress) options_.progress(name, 0, 0);
  }

  Status check_options() const {
    if (!options_.inputs.empty() && !options_.images.empty())
      return InvalidArgument("give --inputs or --images, not both: each says what is fed");
    if (!(options_.factor > 0) || !std::isfinite(options_.factor))
      return InvalidArgument("the factor of the noise floor is above 0, got {}", options_.factor);
    for (const std::string& gate : options_.gates)
      if (gate != "allclose" && gate != "psnr")
        return InvalidArgument("there is no gate '{}'; there are: allclose, psnr", gate);
    if (options_.memory_mib < 1)
      return InvalidArgument("--memory is at least 1 (MiB), got {}", options_.memory_mib);
    return {};
  }

  Status open_executors() {
    auto ref = make_executor(options_.ref);
    if (!ref.ok()) return ref.status().at("--ref");
    auto on = make_executor(options_.on);
    if (!on.ok()) return on.status().at("--on");
    ref_ = std::move(*ref);
    on_ = std::move(*on);
    result_.ref = options_.ref;
    result_.on = options_.on;
    return {};
  }

  // What rounds the results, as far as it is known: the coarser of the two sides.
  Status choose_storage() {
    result_.factor = options_.factor;
    settings_.factor = options_.factor;
    settings_.gates = options_.gates;
    DType storage = DType::kFloat32;
    for (const std::string& address : {options_.ref, options_.on}) {
      if (is_sim(address)) {
        TENONNX_ASSIGN_OR_RETURN(const Device device, find_device(address.substr(kSim.size())));
        if (!device.arithmetic) continue;  // make_executor has refused it
        if (device.arithmetic->storage != DType::kFloat32) storage = device.arithmetic->storage;
        settings_.ceiling =
            std::max(largest_kept(*device.arithmetic, device.arithmetic->elementwise),
                     largest_kept(*device.arithmetic, device.arithmetic->matmul_result));
      } else if (address != "cpu") {
        storage = DType::kFloat16;  // what NPUs compute in, unless --storage says otherwise
      }
    }
    if (!options_.storage.empty()) {
      const auto given = dtype_from_string(options_.storage);
      if (!given.ok() ||
          (*given != DType::kFloat16 && *given != DType::kBFloat16 && *given != DType::kFloat32))
        return InvalidArgument("--storage is float16, bfloat16 or float32, got '{}'",
                               options_.storage);
      storage = *given;
    }
    settings_.storage = result_.storage = storage;
    return {};
  }

  Status load_models() {
    step("load");
    TENONNX_ASSIGN_OR_RETURN(source_, Model::load(options_.reference));
    result_.reference = options_.reference.filename().string();
    result_.reference_sha256 = source_.sha256();
    reference_ = source_.clone();
    step("prepare");
    TENONNX_ASSIGN_OR_RETURN(const auto passes, prepare_graph(reference_, options_.preparation));
    for (const PassReport& pass : passes)
      folded_ |= pass.name == "fold_constants" && pass.outcome.applied > 0;
    two_models_ = !options_.candidate.empty();
    if (!two_models_) {
      result_.candidate = result_.reference;
      result_.candidate_sha256 = result_.reference_sha256;
      return {};
    }
    TENONNX_ASSIGN_OR_RETURN(candidate_, Model::load(options_.candidate));
    result_.candidate = options_.candidate.filename().string();
    result_.candidate_sha256 = candidate_.sha256();
    // The simulated device folds whatever it loads: once, not once a window.
    Preparation preparation = options_.preparation;
    preparation.fold_constants &= is_sim(options_.on);
    TENONNX_RETURN_IF_ERROR(prepare_graph(candidate_, preparation).status());
    TENONNX_RETURN_IF_ERROR(check_same_inputs(reference_, candidate_));
    return read_names();
  }

  Status read_names() {
    fs::path path = options_.names;
    if (path.empty()) {
      path = options_.candidate;
      path.replace_extension(".passes.json");
      std::error_code error;
      if (!fs::is_regular_file(path, error)) return {};
    }
    TENONNX_ASSIGN_OR_RETURN(const Json json, read_json_file(path));
    const JsonReader reader(json, path.string());
    JsonReader names = reader;
    if (reader.has("names")) {
      TENONNX_ASSIGN_OR_RETURN(names, reader.at("names"));
    }
    TENONNX_ASSIGN_OR_RETURN(names_, name_record_from_json(names));
    result_.names = path.filename().string();
    return {};
  }

  const Model& candidate() const { return two_models_ ? candidate_ : reference_; }

  Status open_inputs() {
    if (!options_.inputs.empty()) {
      TENONNX_ASSIGN_OR_RETURN(inputs_,
                               TensorInputs::from_files(options_.inputs, reference_.inputs()));
    } else {
      TENONNX_ASSIGN_OR_RETURN(contract_, find_or_guess());
      if (!options_.images.empty()) {
        TENONNX_ASSIGN_OR_RETURN(
            InputSource source,
            InputSource::from_images(options_.images, contract_, options_.max_images));
        inputs_ = TensorInputs::from_source(std::move(source));
      } else {
        TENONNX_ASSIGN_OR_RETURN(InputSource source,
                                 InputSource::random(reference_.inputs(), contract_,
                                                     options_.random_inputs, options_.seed));
        inputs_ = TensorInputs::from_source(std::move(source));
      }
    }
    result_.inputs = inputs_.description();
    result_.random_inputs = inputs_.is_random();
    return {};
  }

  Result<Contract> find_or_guess() {
    if (const auto path = find_contract(options_.reference)) {
      TENONNX_ASSIGN_OR_RETURN(Contract contract, read_contract(*path));
      const auto notes = check_contract(contract, reference_);
      if (!notes.ok()) return notes.status().at(path->filename().string());
      return contract;
    }
    std::vector<std::string> assumed;
    auto guessed = guess_contract(reference_, assumed);
    if (guessed.ok()) {
      if (!options_.images.empty())
        for (const std::string& line : assumed)
          result_.notes.push_back("contract guessed: " + line);
      return guessed;
    }
    // Random values need no contract; a name that no input has leaves all of them in [0,1).
    if (!options_.images.empty()) return guessed.status();
    Contract none;
    none.image.name.clear();
    return none;
  }

  Status make_plan() {
    PlanRequest request;
    request.reference = &reference_;
    request.candidate = two_models_ ? &candidate_ : nullptr;
    request.tensors = options_.tensors;
    request.names = two_models_ ? &names_ : nullptr;
    request.names_file = result_.names.empty() ? "" : fmt::format("'{}'", result_.names);
    TENONNX_RETURN_IF_ERROR(add_recorded(*ref_, source_, "--ref", ref_recorded_, request));
    bool on_recorded = false;
    TENONNX_RETURN_IF_ERROR(
        add_recorded(*on_, two_models_ ? candidate_ : source_, "--on", on_recorded, request));
    TENONNX_RETURN_IF_ERROR(choose_cut(request, on_recorded));
    // Under which names there is more, where a recording lacks what is asked for.
    std::string recorded = what_is_recorded(*ref_, source_);
    if (on_recorded) recorded = what_is_recorded(*on_, two_models_ ? candidate_ : source_);
    auto plan = plan_comparison(request);
    if (!plan.ok())
      return recorded.empty()
                 ? plan.status()
                 : Status(plan.status().code(), fmt::format("{}. Of the recording: {}",
                                                            plan.status().message(), recorded));
    plan_ = std::move(plan).value();
    for (const PlannedTensor& tensor : plan_.tensors)
      if (tensor.is_output && tensor.state == TensorState::kNotRecorded)
        result_.notes.push_back(fmt::format("the output '{}' is not in the recording: {}",
                                            tensor.tensor.name, recorded));
    if (on_recorded) result_.taken = "as recorded";
    return {};
  }

  // --tensors boundary: the tensors of the cut, and the candidate in parts.
  Status choose_cut(PlanRequest& request, bool on_recorded) {
    result_.taken = "as added outputs";
    if (options_.tensors != "boundary") {
      if (!options_.cut.empty())
        return InvalidArgument("--cut '{}' is of --tensors boundary, got --tensors '{}'",
                               options_.cut, options_.tensors);
      return {};
    }
    std::vector<std::string> cut;
    if (!options_.cut.empty()) {
      TENONNX_ASSIGN_OR_RETURN(cut, parse_cut(options_.cut));
    } else if (const auto path = find_contract(options_.reference)) {
      TENONNX_ASSIGN_OR_RETURN(const Contract contract, read_contract(*path));
      cut = contract.cut;
    }
    request.boundary.emplace();
    std::vector<std::string> theirs;  // the candidate's names
    for (const std::string& name : cut) {
      TENONNX_ASSIGN_OR_RETURN(const std::string ours, resolve_tensor(reference_, name));
      request.boundary->insert(ours);
      const auto renamed = names_.renamed.find(ours);
      theirs.push_back(renamed == names_.renamed.end() ? ours : renamed->second);
      TENONNX_RETURN_IF_ERROR(resolve_tensor(candidate(), theirs.back()).status().at("candidate"));
    }
    result_.taken = cut.empty() ? "as the outputs that the model has" : "at cuts, part after part";
    if (cut.empty() || on_recorded) return {};
    whole_on_ = std::move(on_);
    on_ = std::make_unique<PartsExecutor>(*whole_on_, theirs);
    return {};
  }

  static Status add_recorded(const Executor& executor, const Model& model, std::string_view option,
                             bool& is_recorded, PlanRequest& request) {
    const auto recorded = executor.recorded_tensors(model);
    if (!recorded.ok()) return recorded.status().at(option);
    is_recorded = recorded->has_value();
    if (!is_recorded) return {};
    std::set<std::string> names((*recorded)->begin(), (*recorded)->end());
    if (request.recorded)
      std::erase_if(names, [&](const auto& name) { return !request.recorded->contains(name); });
    request.recorded = std::move(names);
    return {};
  }

  // All that the figures depend on.
  Result<std::string> key() const {
    std::string text = fmt::format("tenonnx {} compare 2\n", version());
    for (const Model* model : {&source_, &candidate_})
      for (const auto& [name, hash] : model->source_hashes())
        text += fmt::format("{} {}\n", name, hash);
    for (const Executor* executor : {ref_.get(), on_.get()}) {
      text += executor->address() + "\n";
      for (const auto& [name, version] : executor->versions()) text += name + " " + version + "\n";
    }
    for (const auto& [name, shape] : options_.preparation.input_shapes)
      text += fmt::format("{}={}\n", name, shape);
    text += fmt::format("{} {} {} {} {} {} {} {} {} {}\n", options_.preparation.fold_constants,
                        options_.tensors, options_.cut, to_string(settings_.storage),
                        settings_.factor, options_.memory_mib, options_.load.intra_op_threads,
                        options_.load.inter_op_threads, options_.load.parallel,
                        to_string(options_.load.optimization));
    text += fmt::format("{}\n{}\n", fmt::join(options_.gates, ","), to_json(names_).dump());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, inputs_.load(i));
      text += input.name + " " + input.sha256 + "\n";
    }
    return text;
  }

  Result<ComparedTensors> run_all() {
    settings_.masks = mask_magnitudes(reference_, settings_.storage);
    TENONNX_ASSIGN_OR_RETURN(NoisePaths paths, noise_paths(reference_, settings_.storage));
    TENONNX_ASSIGN_OR_RETURN(const std::string text, key());
    fs::path cache = options_.cache.empty() ? CompareJournal::default_directory() : options_.cache;
    if (options_.cache == "none") cache.clear();
    for (const std::string& address : {options_.ref, options_.on}) {
      if (!address.starts_with(kExec) || cache.empty()) continue;
      cache.clear();
      result_.notes.push_back(
          fmt::format("nothing is kept or reused for --resume: the program of '{}' may change "
                      "without its address changing",
                      address));
    }
    TENONNX_ASSIGN_OR_RETURN(const CompareJournal journal,
                             CompareJournal::open(cache, text, options_.resume));
    WindowsRequest request;
    request.plan = &plan_;
    request.reference = &reference_;
    request.candidate = &candidate();
    request.ref = ref_.get();
    request.on = on_.get();
    request.ref_is_recorded = ref_recorded_;
    request.floors = paths.runs;
    request.inputs = &inputs_;
    request.settings = settings_;
    request.load = options_.load;
    request.memory = options_.memory_mib << 20;
    request.progress = options_.progress;
    request.recall = [&](std::size_t begin) { return journal.recall(begin); };
    request.remember = [&](std::size_t begin, const WindowFigures& figures) {
      return journal.remember(begin, figures);
    };
    return run_windows(request);
  }

  void collect(ComparedTensors compared) {
    result_.windows = compared.windows;
    result_.recalled = compared.recalled;
    result_.reused = compared.reused;
    if (options_.resume)
      result_.notes.push_back(fmt::format(
          "--resume: figures of {} of {} compared tensors are reused from an equal earlier run",
          compared.reused, plan_.count(TensorState::kCompared)));
    for (std::size_t i = 0; i < plan_.tensors.size(); ++i)
      result_.tensors.push_back({std::move(plan_.tensors[i]), std::move(compared.tensors[i])});
    for (std::size_t i = 0; i < plan_.selections.size(); ++i)
      result_.selections.push_back(
          {plan_.selections[i],
           compared.selections[i],
           !ref_recorded_ && !plan_.candidate_indices[i].empty(),
           ref_recorded_
               ? "run the reference too (--ref cpu), which a recording cannot do with the "
                 "candidate's rows"
               : plan_.missing_indices[i],
           {}});
    result_.versions.emplace_back("tenonnx", version());
    for (const Executor* executor : {ref_.get(), on_.get()})
      for (const auto& entry : executor->versions())
        if (std::find(result_.versions.begin(), result_.versions.end(), entry) ==
            result_.versions.end())
          result_.versions.push_back(entry);
  }

  Status add_checks() {
    judge_all(result_, settings_);
    result_.checks = compare_checks(result_);
    if (!plan_.output_order.empty())
      result_.checks.push_back(inconclusive_check("order of the outputs", plan_.output_order));
    TENONNX_RETURN_IF_ERROR(check_folding());
    for (std::string& note : order_notes(result_)) result_.notes.push_back(std::move(note));
    result_.verdict = overall_verdict(result_.checks);
    if (result_.verdict != Verdict::kPass) {
      // It explains a verdict that stands already: what goes wrong here is a note.
      const Status status = explain();
      if (!status.ok())
        result_.notes.push_back("mistakes in feeding the model were not tried: " +
                                status.message());
    }
    return {};
  }

  // The reference of everything above has its constants folded, so that no window computes them
  // again. That must change nothing.
  Status check_folding() {
    if (!folded_ || options_.ref != "cpu" || inputs_.size() == 0) return {};
    TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, inputs_.load(0));
    TENONNX_ASSIGN_OR_RETURN(Check check,
                             folding_check(*ref_, source_, reference_, input, options_.load));
    result_.checks.push_back(std::move(check));
    return {};
  }

  // One model on two executors is fed with the same tensors on both sides; a recording, or another
  // model with its own preprocessing, may have been fed otherwise.
  Status explain() {
    const InputSource* images = inputs_.images();
    const bool recorded = ref_recorded_ || result_.taken == "as recorded";
    if (images == nullptr || !(two_models_ || recorded)) return {};
    FedSides sides{{ref_.get(), &reference_, "reference"}, {on_.get(), &candidate(), "candidate"}};
    if (ref_recorded_) std::swap(sides.runnable, sides.other);
    TENONNX_ASSIGN_OR_RETURN(result_.explanations,
                             explain_difference(sides, contract_, *images, options_.load));
    return {};
  }

  const CompareOptions& options_;
  CompareResult result_;
  CompareSettings settings_;
  std::unique_ptr<Executor> ref_, whole_on_, on_;
  Model source_, reference_, candidate_;
  bool two_models_ = false, folded_ = false, ref_recorded_ = false;
  NameRecord names_;
  Contract contract_;
  TensorInputs inputs_;
  ComparePlan plan_;
};

}  // namespace

Result<CompareResult> compare(const CompareOptions& options) { return Comparer(options).run(); }

}  // namespace tenonnx
