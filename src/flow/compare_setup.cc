// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare_setup.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <system_error>

#include "adapters/address.h"
#include "adapters/qnn_chips.h"
#include "adapters/sim.h"
#include "base/files.h"
#include "base/status.h"
#include "contract/contract.h"
#include "device/device.h"
#include "flow/labels.h"
#include "flow/match_structure.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::string_view, 3> kGates = {"allclose", "psnr", "map"};

bool asks_for_map(const CompareOptions& options) {
  return std::find(options.gates.begin(), options.gates.end(), "map") != options.gates.end();
}

// Labels and what they are for come together.
Status check_labels(const CompareOptions& options) {
  if (!asks_for_map(options)) {
    if (options.labels.empty()) return {};
    return InvalidArgument(
        "labels ('{}') are for the average precision, which '--gate map' asks for: add it, or "
        "leave --labels out",
        options.labels.string());
  }
  if (options.images.empty())
    return InvalidArgument(
        "the gate 'map' compares the average precision over labelled images: give --images DIR, "
        "with an annotations.json (COCO) in it or --labels FILE");
  std::error_code error;
  const fs::path folder =
      fs::is_directory(options.images, error) ? options.images : options.images.parent_path();
  if (find_labels(options.labels, folder).empty())
    return InvalidArgument(
        "the gate 'map' needs labels, and there is no 'annotations.json' in '{}': give COCO "
        "annotations of these images (--labels FILE), or leave the gate out",
        folder.string());
  if (find_contract(options.reference)) return {};
  return InvalidArgument(
      "the gate 'map' needs a contract, which says what the outputs are and names the classes, and "
      "there is none beside '{}': write '{}' (docs/reference/contract.md)",
      options.reference.string(), options.reference.stem().string() + ".contract.json");
}

Status check_options(const CompareOptions& options) {
  if (!options.inputs.empty() && !options.images.empty())
    return InvalidArgument("give --inputs or --images, not both: each says what is fed");
  if (!(options.factor > 0) || !std::isfinite(options.factor))
    return InvalidArgument("the factor of the noise floor is above 0, got {}", options.factor);
  for (const std::string& gate : options.gates)
    if (std::find(kGates.begin(), kGates.end(), gate) == kGates.end())
      return InvalidArgument("there is no gate '{}'; there are: {}", gate, fmt::join(kGates, ", "));
  if (options.memory_mib < 1)
    return InvalidArgument("--memory is at least 1 (MiB), got {}", options.memory_mib);
  return check_labels(options);
}

Status open_executors(const CompareOptions& options, CompareSetup& setup) {
  auto ref = make_executor(options.ref);
  if (!ref.ok()) return ref.status().at("--ref");
  auto on = make_executor(options.on);
  if (!on.ok()) return on.status().at("--on");
  setup.ref = std::move(*ref);
  setup.on = std::move(*on);
  return {};
}

// What rounds the results, as far as it is known: the coarser of the two sides.
Status choose_storage(const CompareOptions& options, CompareSettings& settings,
                      DeviceForms& forms) {
  settings.factor = options.factor;
  for (const std::string& gate : options.gates)  // 'map' is of whole models
    if (gate != "map") settings.gates.push_back(gate);
  DType storage = DType::kFloat32;
  for (const std::string& address : {options.ref, options.on}) {
    TENONNX_ASSIGN_OR_RETURN(const auto device, simulated_device(address));
    if (device) {
      if (!device->arithmetic) continue;  // make_executor has refused it
      const Arithmetic& arithmetic = *device->arithmetic;
      forms = forms_of(*device);
      if (arithmetic.storage != DType::kFloat32) storage = arithmetic.storage;
      settings.ceiling = std::max(largest_kept(arithmetic, arithmetic.elementwise),
                                  largest_kept(arithmetic, arithmetic.matmul_result));
    } else if (address != "cpu") {
      if (const auto chip = simulation_of_chip(address)) forms = forms_of(*chip);
      storage = DType::kFloat16;  // what NPUs compute in, unless --storage says otherwise
    }
  }
  if (!options.storage.empty()) {
    const auto given = dtype_from_string(options.storage);
    if (!given.ok() ||
        (*given != DType::kFloat16 && *given != DType::kBFloat16 && *given != DType::kFloat32))
      return InvalidArgument("--storage is float16, bfloat16 or float32, got '{}'",
                             options.storage);
    storage = *given;
  }
  settings.storage = storage;
  return {};
}

Status read_names(const CompareOptions& options, CompareSetup& setup) {
  fs::path path = options.names;
  if (path.empty()) {
    path = options.candidate;
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
  const auto recorded = [&](std::string_view side) {
    const auto entry = reader.at(side);
    if (!entry.ok()) return std::string();
    const auto hash = entry->string_or("sha256", "");
    return hash.ok() ? *hash : std::string();
  };
  if (const std::string after = recorded("after");
      !after.empty() && after != setup.other.sha256()) {
    if (!options.names.empty())
      return InvalidArgument(
          "the record of names '{}' (--names) is of another model than the candidate '{}': it was "
          "written for SHA-256 {}, the candidate's is {}; give the .passes.json that was written "
          "with the candidate",
          path.string(), options.candidate.string(), after, setup.other.sha256());
    setup.notes.push_back(fmt::format(
        "'{}' is not used: it was written for another model than the candidate (SHA-256 {}.., not "
        "{}..)",
        path.filename().string(), after.substr(0, 12), setup.other.sha256().substr(0, 12)));
    return {};
  }
  if (const std::string before = recorded("before");
      !before.empty() && before != setup.source.sha256())
    setup.notes.push_back(fmt::format(
        "the record of names '{}' begins at another model than the reference (SHA-256 {}.., not "
        "{}..): tensors that its passes took away count as fused",
        path.filename().string(), before.substr(0, 12), setup.source.sha256().substr(0, 12)));
  TENONNX_ASSIGN_OR_RETURN(setup.names, name_record_from_json(names));
  setup.names_file = path.filename().string();
  return {};
}

// Tensors that the candidate has under other names, as far as its structure tells.
void match_the_rest(CompareSetup& setup) {
  const auto matched = match_structure(setup.reference, setup.other, setup.names);
  if (matched.empty()) return;
  setup.notes.push_back(fmt::format(
      "{} under other names in the candidate: matched by what makes and what reads "
      "them, as '{}', which is '{}' there",
      matched.size() == 1 ? "1 tensor is" : fmt::format("{} tensors are", matched.size()),
      matched.begin()->first, matched.begin()->second));
  setup.names.renamed.insert(matched.begin(), matched.end());
}

Status load_models(const CompareOptions& options, CompareSetup& setup) {
  const auto step = [&](std::string_view name) {
    if (options.progress) options.progress(name, 0, 0);
  };
  step("load");
  TENONNX_ASSIGN_OR_RETURN(setup.source, Model::load(options.reference));
  setup.reference = setup.source.clone();
  step("prepare");
  TENONNX_ASSIGN_OR_RETURN(const auto passes, prepare_graph(setup.reference, options.preparation));
  for (const PassReport& pass : passes)
    setup.folded |= pass.name == "fold_constants" && pass.outcome.applied > 0;
  setup.two_models = !options.candidate.empty();
  if (!setup.two_models) return {};
  TENONNX_ASSIGN_OR_RETURN(setup.other, Model::load(options.candidate));
  // The simulated device folds whatever it loads: once, not once a window.
  Preparation preparation = options.preparation;
  preparation.fold_constants &= is_sim(options.on);
  TENONNX_RETURN_IF_ERROR(prepare_graph(setup.other, preparation).status());
  TENONNX_RETURN_IF_ERROR(check_same_inputs(setup.reference, setup.other));
  TENONNX_RETURN_IF_ERROR(read_names(options, setup));
  match_the_rest(setup);
  return {};
}

Status read_declared(const fs::path& path, CompareSetup& setup) {
  TENONNX_ASSIGN_OR_RETURN(setup.contract, read_contract(path));
  const auto notes = check_contract(setup.contract, setup.reference);
  if (!notes.ok()) return notes.status().at(path.filename().string());
  setup.contract_is_declared = true;
  return {};
}

Status find_or_guess(const CompareOptions& options, CompareSetup& setup) {
  if (const auto path = find_contract(options.reference)) return read_declared(*path, setup);
  std::vector<std::string> assumed;
  auto guessed = guess_contract(setup.reference, assumed);
  if (guessed.ok()) {
    if (!options.images.empty())
      for (const std::string& line : assumed) setup.notes.push_back("contract guessed: " + line);
    setup.contract = std::move(*guessed);
    return {};
  }
  // Random values need no contract; a name that no input has leaves all of them in [0,1).
  if (!options.images.empty()) return guessed.status();
  setup.contract.image.name.clear();
  return {};
}

Status open_inputs(const CompareOptions& options, CompareSetup& setup) {
  if (!options.inputs.empty()) {
    // The tensors are what they are; a contract adds the ranges that it declares.
    if (const auto path = find_contract(options.reference)) {
      const Status read = read_declared(*path, setup);
      if (!read.ok()) setup.notes.push_back("no range is declared: " + read.message());
    }
    TENONNX_ASSIGN_OR_RETURN(setup.inputs,
                             TensorInputs::from_files(options.inputs, setup.reference.inputs()));
    return {};
  }
  TENONNX_RETURN_IF_ERROR(find_or_guess(options, setup));
  if (!options.images.empty()) {
    TENONNX_ASSIGN_OR_RETURN(
        InputSource source,
        InputSource::from_images(options.images, setup.contract, options.max_images));
    setup.inputs = TensorInputs::from_source(std::move(source));
    return {};
  }
  TENONNX_ASSIGN_OR_RETURN(InputSource source,
                           InputSource::random(setup.reference.inputs(), setup.contract,
                                               options.random_inputs, options.seed));
  setup.inputs = TensorInputs::from_source(std::move(source));
  return {};
}

}  // namespace

bool is_sim(std::string_view address) { return address.starts_with("sim:"); }

Result<CompareSetup> set_up_comparison(const CompareOptions& options) {
  TENONNX_RETURN_IF_ERROR(check_options(options));
  CompareSetup setup;
  TENONNX_RETURN_IF_ERROR(open_executors(options, setup));
  TENONNX_RETURN_IF_ERROR(choose_storage(options, setup.settings, setup.forms));
  TENONNX_RETURN_IF_ERROR(load_models(options, setup));
  TENONNX_RETURN_IF_ERROR(open_inputs(options, setup));
  return setup;
}

std::vector<std::pair<std::string, std::string>> versions_of(const CompareSetup& setup) {
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("tenonnx", version());
  for (const Executor* executor : {setup.ref.get(), setup.on.get()})
    for (auto& entry : executor->versions())
      if (std::find(out.begin(), out.end(), entry) == out.end()) out.push_back(std::move(entry));
  return out;
}

Result<bool> add_recorded(const Executor& executor, const Model& model, PlanRequest& request) {
  TENONNX_ASSIGN_OR_RETURN(const auto recorded, executor.recorded_tensors(model));
  if (!recorded) return false;
  std::set<std::string> names(recorded->begin(), recorded->end());
  if (request.recorded)
    std::erase_if(names, [&](const auto& name) { return !request.recorded->contains(name); });
  request.recorded = std::move(names);
  return true;
}

Result<std::string> comparison_key(const CompareOptions& options, const CompareSetup& setup,
                                   std::string_view command) {
  std::string text = fmt::format("tenonnx {} {}\n", version(), command);
  for (const Model* model : {&setup.source, &setup.other})
    for (const auto& [name, hash] : model->source_hashes())
      text += fmt::format("{} {}\n", name, hash);
  for (const Executor* executor : {setup.ref.get(), setup.on.get()}) {
    text += executor->address() + "\n";
    for (const auto& [name, version] : executor->versions())
      text += fmt::format("{} {}\n", name, version);
  }
  for (const auto& [name, shape] : options.preparation.input_shapes)
    text += fmt::format("{}={}\n", name, shape);
  text += fmt::format("{} {} {} {} {} {} {} {} {} {}\n", options.preparation.fold_constants,
                      options.tensors, options.cut, to_string(setup.settings.storage),
                      setup.settings.factor, options.memory_mib, options.load.intra_op_threads,
                      options.load.inter_op_threads, options.load.parallel,
                      to_string(options.load.optimization));
  text += fmt::format("{}\n{}\n", fmt::join(options.gates, ","), to_json(setup.names).dump());
  if (setup.contract_is_declared) text += to_json(setup.contract).dump() + "\n";
  for (std::size_t i = 0; i < setup.inputs.size(); ++i) {
    TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, setup.inputs.load(i));
    text += input.name + " " + input.sha256 + "\n";
  }
  return text;
}

}  // namespace tenonnx
