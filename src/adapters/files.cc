// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/files.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "adapters/recording.h"
#include "base/files.h"
#include "base/nearest.h"
#include "base/status.h"
#include "metrics/tensor_error.h"
#include "model/graph.h"
#include "ort/inputs.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

// Dtype, shape and bytes.
std::string hash_of(const Tensor& tensor) {
  Sha256 hash;
  hash.update(fmt::format("{} {}\n", to_string(tensor.dtype()), to_string(tensor.shape())));
  hash.update({static_cast<const char*>(tensor.raw()), tensor.bytes()});
  return hash.hex();
}

// "by up to 0.52 in 76800 of 76800 elements"
std::string difference(const Tensor& recorded, const Tensor& given) {
  const auto error = compare_tensors(recorded, given);
  if (!error.ok())
    return fmt::format("is {} {}, {} {} was recorded", to_string(given.dtype()),
                       to_string(given.shape()), to_string(recorded.dtype()),
                       to_string(recorded.shape()));
  return fmt::format("differs in {} of {} elements, by up to {:.6g}", error->differing,
                     error->count, error->max_abs);
}

// The position that a case's name is: 7 of "007".
std::optional<std::size_t> position_of(std::string_view name) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

// What all graphs that were loaded from one recording share.
class SharedRecording {
 public:
  explicit SharedRecording(Recording recording) : recording_(std::move(recording)) {}
  const Recording& get() const { return recording_; }

  // Which of the model's inputs a case recorded, and in which file.
  static const NpzFile* file_of(const RecordedCase& one, std::string_view key) {
    if (one.inputs && one.inputs->has(key)) return &*one.inputs;
    return one.tensors.has(key) ? &one.tensors : nullptr;
  }

  Result<Tensor> read(const NpzFile& file, const TensorInfo& info) const {
    const std::string key(recording_.key_of(info.name));
    TENONNX_ASSIGN_OR_RETURN(const Tensor array, file.read(key));
    return adapt(array, recording_.entry(info.name), info,
                 fmt::format("{}: '{}'", file.path().string(), key));
  }

  // The hashes of a case's recorded inputs, by the model's names; computed once.
  Result<std::map<std::string, std::string>> input_hashes(std::size_t index,
                                                          const std::vector<TensorInfo>& inputs) {
    const std::lock_guard lock(mutex_);
    std::map<std::string, std::string> out;
    for (const TensorInfo& info : inputs) {
      const RecordedCase& one = recording_.cases[index];
      const NpzFile* file = file_of(one, recording_.key_of(info.name));
      if (file == nullptr) continue;
      std::string& hash = hashes_[{index, info.name}];
      if (hash.empty()) {
        TENONNX_ASSIGN_OR_RETURN(const Tensor tensor, read(*file, info));
        hash = hash_of(tensor);
      }
      out[info.name] = hash;
    }
    return out;
  }

 private:
  const Recording recording_;
  std::mutex mutex_;
  std::map<std::pair<std::size_t, std::string>, std::string> hashes_;
};

class RecordedGraph final : public LoadedGraph {
 public:
  RecordedGraph(std::shared_ptr<SharedRecording> shared, const Model& model, bool profile)
      : shared_(std::move(shared)),
        inputs_(model.inputs()),
        outputs_(model.outputs()),
        profile_(profile) {}

  const std::vector<TensorInfo>& inputs() const override { return inputs_; }
  const std::vector<TensorInfo>& outputs() const override { return outputs_; }
  using LoadedGraph::run;

  Status select_case(std::string_view name, std::size_t index) override {
    const auto& cases = recording().cases;
    const std::lock_guard lock(mutex_);
    selected_.reset();
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < cases.size(); ++i)
      if (cases[i].name == name || cases[i].name == fs::path(name).stem()) found.push_back(i);
    if (found.empty())
      for (std::size_t i = 0; i < cases.size(); ++i)
        if (position_of(cases[i].name) == index) found.push_back(i);
    // Where all of them hold inputs the bytes decide between them.
    if (found.size() > 1 && !std::all_of(found.begin(), found.end(),
                                         [&](std::size_t i) { return has_inputs(cases[i]); }))
      return InvalidArgument(
          "the recording '{}' has '{}.npz' and '{}.npz' for input '{}' (position {}): which of "
          "them "
          "is meant? Remove or rename one, or put the inputs into both",
          recording().path.string(), cases[found[0]].name, cases[found[1]].name, name, index);
    if (!found.empty()) selected_ = found.front();
    // Otherwise the bytes of the inputs decide; without them there must be one case.
    if (selected_ || cases.size() == 1 || any_inputs()) return {};
    return NotFound(
        "the recording '{}' has no case for input '{}' (position {}); it has {}. Name each .npz as "
        "the image, or by its position (0.npz), or put the inputs into it",
        recording().path.string(), name, index, recording().case_list());
  }

  Status run(std::span<const Tensor> inputs, std::vector<Tensor>& outputs) override {
    TENONNX_RETURN_IF_ERROR(check_inputs(inputs_, inputs));
    TENONNX_ASSIGN_OR_RETURN(const std::size_t index, find_case(inputs));
    const RecordedCase& one = recording().cases[index];
    outputs.resize(outputs_.size());
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const std::string key(recording().key_of(outputs_[i].name));
      if (!one.tensors.has(key))
        return NotFound(
            "{}: the tensor '{}' was not recorded in this case: there is no array '{}'; there are "
            "{}. Record it, or compare only what every case holds",
            one.tensors.path().string(), outputs_[i].name, key,
            nearest_names(key, one.tensors.names()));
      TENONNX_ASSIGN_OR_RETURN(Tensor tensor, shared_->read(one.tensors, outputs_[i]));
      Tensor& out = outputs[i];
      if (out.defined() && out.dtype() == tensor.dtype() && out.shape() == tensor.shape()) {
        if (out.bytes() > 0) std::memcpy(out.mutable_raw(), tensor.raw(), out.bytes());
      } else {
        out = std::move(tensor);
      }
    }
    return {};
  }

  Result<Placement> placement() override {
    if (!profile_)
      return FailedPrecondition("'{}' was not loaded with a profile", recording().path.string());
    Placement placement;
    placement.disagreement =
        fmt::format("the tensors of '{}' were recorded: where they were computed is not known",
                    recording().path.string());
    return placement;
  }

  std::string description() const override {
    const Recording& r = recording();
    return fmt::format("tensors recorded in '{}', {} case{}{}{}{}", r.path.string(), r.cases.size(),
                       r.cases.size() == 1 ? "" : "s", any_inputs() ? "" : " without their inputs",
                       r.source.empty() ? "" : ", from ", r.source);
  }

 private:
  const Recording& recording() const { return shared_->get(); }
  bool has_inputs(const RecordedCase& one) const {
    return std::any_of(inputs_.begin(), inputs_.end(), [&](const TensorInfo& info) {
      return SharedRecording::file_of(one, recording().key_of(info.name)) != nullptr;
    });
  }
  bool any_inputs() const {
    const auto& cases = recording().cases;
    return std::any_of(cases.begin(), cases.end(), [&](const auto& c) { return has_inputs(c); });
  }

  Result<bool> recorded_from(std::size_t index, const std::vector<std::string>& given) {
    TENONNX_ASSIGN_OR_RETURN(const auto hashes, shared_->input_hashes(index, inputs_));
    bool same = !hashes.empty();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const auto hash = hashes.find(inputs_[i].name);
      if (hash != hashes.end() && hash->second != given[i]) same = false;
    }
    return same;
  }

  Result<std::size_t> find_case(std::span<const Tensor> inputs) {
    const auto& cases = recording().cases;
    const std::lock_guard lock(mutex_);
    std::vector<std::string> given;
    for (const Tensor& tensor : inputs) given.push_back(hash_of(tensor));
    if (selected_ && !has_inputs(cases[*selected_])) {
      // Found by its name: it is this input's, and the next one may not take it as the only one.
      if (cases.size() == 1) taken_for_ = given;
      return *selected_;
    }
    std::vector<std::size_t> order;
    if (selected_) order.push_back(*selected_);
    for (std::size_t i = 0; i < cases.size(); ++i)
      if (i != selected_) order.push_back(i);
    for (const std::size_t i : order) {
      TENONNX_ASSIGN_OR_RETURN(const bool same, recorded_from(i, given));
      if (same) return i;
    }
    if (any_inputs()) return not_recorded(selected_.value_or(order.front()), inputs);
    if (cases.size() > 1)
      return FailedPrecondition(
          "the recording '{}' has {} cases ({}) without the inputs that they were recorded from, "
          "and "
          "nothing says which of them this run is: put the inputs into each .npz",
          recording().path.string(), cases.size(), recording().case_list());
    // One case, taken for the first inputs that came.
    if (!taken_for_.empty() && taken_for_ != given)
      return FailedPrecondition(
          "the recording '{}' has one case, '{}', without the inputs that it was recorded from; it "
          "was taken for the first inputs of this run, and these are others. Compare that one "
          "image "
          "alone, or record the others too",
          recording().path.string(), cases[0].name);
    taken_for_ = given;
    return std::size_t{0};
  }

  Status not_recorded(std::size_t index, std::span<const Tensor> inputs) const {
    const RecordedCase& one = recording().cases[index];
    std::string what, missing;
    fs::path inputs_file;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const NpzFile* file = SharedRecording::file_of(one, recording().key_of(inputs_[i].name));
      if (file == nullptr) continue;
      inputs_file = file->path();
      const auto recorded = shared_->read(*file, inputs_[i]);
      if (!recorded.ok()) return recorded.status();
      if (hash_of(*recorded) != hash_of(inputs[i]))
        what += fmt::format("{}'{}' {}", what.empty() ? "" : ", ", inputs_[i].name,
                            difference(*recorded, inputs[i]));
    }
    return InvalidArgument(
        "the recording '{}' holds no case of these inputs (cases: {}). Of '{}', {}. Run on the "
        "inputs that were recorded ({}), or record again with these",
        recording().path.string(), recording().case_list(), one.name,
        what.empty() ? "no input was recorded" : what, inputs_file.string());
  }

  const std::shared_ptr<SharedRecording> shared_;
  const std::vector<TensorInfo> inputs_, outputs_;
  const bool profile_;
  std::mutex mutex_;
  std::optional<std::size_t> selected_;
  std::vector<std::string> taken_for_;  // hashes of the inputs
};

class FilesExecutor final : public Executor {
 public:
  explicit FilesExecutor(Recording recording)
      : address_("files:" + recording.path.string()),
        shared_(std::make_shared<SharedRecording>(std::move(recording))) {}

  const std::string& address() const override { return address_; }

  Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                            const LoadOptions& options) const override {
    for (const TensorInfo& info : model.outputs()) {
      const auto& cases = shared_->get().cases;
      const std::string key(shared_->get().key_of(info.name));
      const bool held = std::any_of(cases.begin(), cases.end(),
                                    [&](const RecordedCase& one) { return one.tensors.has(key); });
      if (held) continue;
      return NotFound(
          "the tensor '{}' was not recorded: no .npz of '{}' has an array '{}'; there are {}. If "
          "it "
          "has another name there, say so in {}: {{\"schema_version\": 1, \"tensors\": {{\"{}\": "
          "\"its name there\"}}}}",
          info.name, shared_->get().path.string(), key,
          nearest_names(key, cases.front().tensors.names()), shared_->get().names_file.string(),
          info.name);
    }
    return std::unique_ptr<LoadedGraph>(
        std::make_unique<RecordedGraph>(shared_, model, options.profile));
  }

  Result<std::optional<std::vector<std::string>>> recorded_tensors(
      const Model& model) const override {
    const Recording& recording = shared_->get();
    const GraphIndex index(model.proto().graph());
    std::vector<std::string> all, held;
    for (const Value& value : index.values()) {
      all.emplace_back(value.name);
      const std::string key(recording.key_of(value.name));
      const auto has = [&](const RecordedCase& one) { return one.tensors.has(key); };
      if (value.producer >= 0 && std::all_of(recording.cases.begin(), recording.cases.end(), has))
        held.emplace_back(value.name);
    }
    for (const auto& [tensor, name] : recording.names)
      if (index.find(tensor) == nullptr)
        return InvalidArgument(
            "{}: '{}' (recorded as '{}') is no tensor of the model; the nearest are {}. Correct "
            "the "
            "name, or remove it",
            recording.names_file.string(), tensor, name.key, nearest_names(tensor, all));
    if (held.empty()) return none_recorded(model);
    return std::optional(std::move(held));
  }

  std::string what_is_recorded(const Model& model) const {
    const Recording& recording = shared_->get();
    const GraphIndex index(model.proto().graph());
    std::set<std::string> named, known, unknown;
    for (const auto& [tensor, name] : recording.names) named.insert(name.key);
    for (const RecordedCase& one : recording.cases)
      for (const std::string& array : one.tensors.names())
        (named.contains(array) || index.find(array) != nullptr ? known : unknown).insert(array);
    constexpr std::size_t kShown = 5;
    std::size_t count = 0;
    std::string text;
    for (const auto* arrays : {&unknown, &known})
      for (const std::string& array : *arrays)
        if (count++ < kShown) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", array);
    if (count > kShown) text += fmt::format(" and {} more", count - kShown);
    return fmt::format("it has {}{}", text.empty() ? "no array" : text,
                       unknown.empty() ? ""
                                       : fmt::format("; if one of them is it, say so in {}",
                                                     recording.names_file.string()));
  }

  std::vector<std::pair<std::string, std::string>> versions() const override {
    return {{"recording", "sha256 " + shared_->get().fingerprint}};
  }

 private:
  // Why there is no tensor of the model in every case.
  Status none_recorded(const Model& model) const {
    const Recording& recording = shared_->get();
    std::string outputs;
    for (const TensorInfo& info : model.outputs())
      outputs += fmt::format("{}'{}'", outputs.empty() ? "" : ", ", info.name);
    const std::string first = model.outputs().empty() ? "" : model.outputs().front().name;
    return NotFound(
        "no tensor of the model is in every .npz of '{}': {} holds {}, the model's outputs are {}. "
        "Say which is which in {}: {{\"schema_version\": 1, \"tensors\": {{\"{}\": \"its name "
        "there\"}}}}",
        recording.path.string(), recording.cases.front().tensors.path().filename().string(),
        nearest_names(first, recording.cases.front().tensors.names()), outputs,
        recording.names_file.string(), first);
  }

  const std::string address_;
  const std::shared_ptr<SharedRecording> shared_;
};

}  // namespace

Result<std::unique_ptr<Executor>> make_files_executor(const fs::path& path) {
  TENONNX_ASSIGN_OR_RETURN(Recording recording, read_recording(path));
  return std::unique_ptr<Executor>(std::make_unique<FilesExecutor>(std::move(recording)));
}

std::string what_is_recorded(const Executor& executor, const Model& model) {
  const auto* files = dynamic_cast<const FilesExecutor*>(&executor);
  return files == nullptr ? "" : files->what_is_recorded(model);
}

}  // namespace tenonnx
