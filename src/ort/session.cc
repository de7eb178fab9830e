// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/session.h"

#include <onnx/onnx_pb.h>
#include <onnxruntime_session_options_config_keys.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "model/tensor_proto.h"
#include "ort/domain_lock.h"
#include "ort/errors.h"
#include "ort/inputs.h"
#include "ort/library.h"
#include "ort/ops_library.h"
#include "ort/placement.h"
#include "ort/values.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

GraphOptimizationLevel to_ort(Optimization level) {
  switch (level) {
    case Optimization::kDisabled:
      return ORT_DISABLE_ALL;
    case Optimization::kBasic:
      return ORT_ENABLE_BASIC;
    case Optimization::kExtended:
      return ORT_ENABLE_EXTENDED;
    case Optimization::kAll:
      break;
  }
  return ORT_ENABLE_ALL;
}

std::string describe(const LoadOptions& options, const SessionSetup& setup) {
  const auto runtime = onnxruntime();
  return fmt::format(
      "onnxruntime {}, {}, {} intra-op threads, {} inter-op, {} execution, spinning "
      "{}, optimisation {}",
      runtime.ok() ? (*runtime)->version : "not available", setup.provider,
      options.intra_op_threads == 0 ? "default" : std::to_string(options.intra_op_threads),
      options.inter_op_threads, options.parallel ? "parallel" : "sequential",
      options.spinning ? "on" : "off", to_string(options.optimization));
}

Status check_options(const LoadOptions& options) {
  // A thread pool of more threads than any machine has is a mistyped number, and each thread costs
  // a stack.
  static constexpr int kMostThreads = 1024;
  const auto check = [](const char* name, int value) -> Status {
    if (value >= 0 && value <= kMostThreads) return {};
    return InvalidArgument("{} is {}; 0 (the runtime's choice) to {} is allowed", name, value,
                           kMostThreads);
  };
  TENONNX_RETURN_IF_ERROR(check("intra_op_threads", options.intra_op_threads));
  return check("inter_op_threads", options.inter_op_threads);
}

Ort::SessionOptions make_options(const LoadOptions& options, const SessionSetup& setup) {
  Ort::SessionOptions made;
  made.SetIntraOpNumThreads(options.intra_op_threads);
  made.SetInterOpNumThreads(options.inter_op_threads);
  made.SetExecutionMode(options.parallel ? ORT_PARALLEL : ORT_SEQUENTIAL);
  made.SetGraphOptimizationLevel(to_ort(options.optimization));
  const char* spinning = options.spinning ? "1" : "0";
  made.AddConfigEntry(kOrtSessionOptionsConfigAllowIntraOpSpinning, spinning);
  made.AddConfigEntry(kOrtSessionOptionsConfigAllowInterOpSpinning, spinning);
  made.AddConfigEntry(kOrtSessionOptionsRecordEpGraphAssignmentInfo, "1");
  if (options.disable_fallback && setup.appends_provider)
    made.AddConfigEntry(kOrtSessionOptionsDisableCPUEPFallback, "1");
  for (const auto& ops : setup.custom_ops) made.Add(ops->get());
  return made;
}

// Never destroyed, as the OrtEnv itself (library.h).
const Ort::Env& environment() {
  static const auto* env = new Ort::Env(onnxruntime_env());
  return *env;
}

// External data stay in their mapping until ONNX Runtime reads them from there.
void add_external_data(const Model& model, Ort::SessionOptions& options) {
  std::vector<std::string> names;
  std::vector<char*> buffers;
  std::vector<std::size_t> lengths;
  const auto files = model.external_files();  // keeps the mappings until the session is there
  for (const ExternalFile& file : files) {
    names.push_back(file.location);
    buffers.push_back(const_cast<char*>(file.file->bytes().data()));  // only read
    lengths.push_back(file.file->bytes().size());
  }
  if (!names.empty()) options.AddExternalInitializersFromFilesInMemory(names, buffers, lengths);
}

using Weights = std::vector<std::pair<std::string, Tensor>>;

// Of rtdetr_r18 (81 MB) a session takes 0.18 s with them, and 0.44 s with a protobuf that holds its
// weights.
Status add_initializers(const Weights& weights, Ort::SessionOptions& options) {
  std::vector<std::string> names;
  std::vector<Ort::Value> values;
  for (const auto& [name, tensor] : weights) {
    TENONNX_ASSIGN_OR_RETURN(Ort::Value value, value_from_tensor(tensor));
    names.push_back(name);
    values.push_back(std::move(value));
  }
  if (!names.empty()) options.AddExternalInitializers(names, values);
  return {};
}

// The model with its shared weights as inputs.
Model with_weights_as_inputs(const Model& model, const Weights& weights) {
  auto proto = std::make_unique<onnx::ModelProto>(model.proto());
  onnx::GraphProto& graph = *proto->mutable_graph();
  std::unordered_set<std::string_view> inputs;
  for (const auto& input : graph.input()) inputs.insert(input.name());
  std::vector<onnx::ValueInfoProto> more;
  for (const auto& [name, tensor] : weights)
    if (!inputs.contains(name))
      more.push_back(to_value_info({name, tensor.dtype(), tensor.shape(), true}));
  auto& initializers = *graph.mutable_initializer();
  initializers.erase(std::remove_if(initializers.begin(), initializers.end(), is_shared),
                     initializers.end());
  for (auto& info : more) *graph.add_input() = std::move(info);
  return model.with_proto(std::move(proto));
}

Result<TensorInfo> tensor_info(std::string name, const Ort::TypeInfo& type, const char* role) {
  if (type.GetONNXType() != ONNX_TYPE_TENSOR) {
    return Unsupported(
        "{} '{}' is a sequence, map, optional or sparse tensor; only dense tensors "
        "are handled",
        role, name);
  }
  const auto info = type.GetTensorTypeAndShapeInfo();
  const DType dtype = dtype_from_ort(info.GetElementType());
  if (dtype == DType::kUndefined) {
    return Unsupported("{} '{}' holds {}, which is not handled", role, name,
                       info.GetElementType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING
                           ? std::string("strings")
                           : fmt::format("ONNX element type {}", int(info.GetElementType())));
  }
  return TensorInfo{std::move(name), dtype, info.HasShape() ? info.GetShape() : Shape{},
                    info.HasShape()};
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto* a0 = static_cast<const char*>(a.raw());
  const auto* b0 = static_cast<const char*>(b.raw());
  return a.bytes() > 0 && b.bytes() > 0 && a0 < b0 + b.bytes() && b0 < a0 + a.bytes();
}

bool overlaps_any(const Tensor& tensor, std::span<const Tensor> others) {
  return std::any_of(others.begin(), others.end(),
                     [&](const Tensor& other) { return overlap(tensor, other); });
}

std::string describe_inputs(const std::vector<TensorInfo>& infos, std::span<const Tensor> given) {
  std::string text;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    text += fmt::format("{}{} {} {}", i == 0 ? "" : "; ", infos[i].name,
                        to_string(given[i].dtype()), to_string(given[i].shape()));
  }
  return text;
}

class OrtGraph final : public LoadedGraph {
 public:
  OrtGraph(const LoadOptions& options, const SessionSetup& setup)
      : options_(options), setup_(setup), description_(describe(options, setup)) {}

  // Throws Ort::Exception.
  Status create(const Model& model) {
    auto options = make_options(options_, setup_);
    if (options_.profile) {
      profile_directory_.emplace();
      if (profile_directory_->path().empty()) {
        return Io("no directory can be made for the profile; set TMPDIR to a writable directory");
      }
      options.EnableProfiling((profile_directory_->path() / "profile").c_str());
    }
    add_external_data(model, options);
    std::vector<std::string> domains;
    for (const auto& ops : setup_.custom_ops) domains.push_back(ops->domain());
    if (uses_ops_library(model)) {
      TENONNX_ASSIGN_OR_RETURN(const fs::path library, find_ops_library());
      options.RegisterCustomOpsLibrary(library.c_str());
      domains.emplace_back(kOpsDomain);
    }
    if (setup_.configure) setup_.configure(options);
    TENONNX_ASSIGN_OR_RETURN(const std::string bytes, serialize(model, options));
    DomainLock lock(std::move(domains));
    session_ = Ort::Session(environment(), bytes.data(), bytes.size(), options);
    lock.created();
    return read_signature();
  }

  const std::vector<TensorInfo>& inputs() const override { return inputs_; }
  const std::vector<TensorInfo>& outputs() const override { return outputs_; }
  std::string description() const override { return description_; }
  const std::vector<AssignedNode>& assigned() const { return assigned_; }

  Status run(std::span<const Tensor> inputs, std::vector<Tensor>& outputs) override {
    TENONNX_RETURN_IF_ERROR(check_inputs(inputs_, inputs));
    try {
      return run_bound(inputs, outputs);
    } catch (const Ort::Exception& e) {
      return explain_ort_error(OrtStage::kRun, e.GetOrtErrorCode(), e.what(), nullptr,
                               describe_inputs(inputs_, inputs));
    }
  }

  Result<Placement> placement() override {
    if (!options_.profile) {
      return FailedPrecondition(
          "the graph was loaded without LoadOptions::profile, so nothing tells where its nodes "
          "ran");
    }
    const std::lock_guard lock(placement_mutex_);
    if (placement_) return *placement_;
    try {
      Ort::AllocatorWithDefaultOptions allocator;
      const auto file = session_.EndProfilingAllocated(allocator);
      TENONNX_ASSIGN_OR_RETURN(const std::string profile, read_file(file.get()));
      placement_ = placement_from_profile(profile, assigned_);
      std::error_code ignored;
      fs::remove(file.get(), ignored);
    } catch (const Ort::Exception& e) {
      return Internal("ONNX Runtime cannot end its profile: {}", e.what());
    }
    return *placement_;
  }

 private:
  Result<std::string> serialize(const Model& model, Ort::SessionOptions& options) {
    // A provider may write a compiled model from the weights, or look for them in the protobuf.
    if (setup_.appends_provider) return model.serialize();
    TENONNX_ASSIGN_OR_RETURN(weights_, model.shared_weights());
    if (binds_weights()) return with_weights_as_inputs(model, weights_).serialize();
    TENONNX_RETURN_IF_ERROR(add_initializers(weights_, options));
    return model.serialize_references();
  }

  bool binds_weights() const {
    return setup_.binds_weights && options_.optimization == Optimization::kDisabled;
  }

  Status read_signature() {
    Ort::AllocatorWithDefaultOptions allocator;
    std::unordered_set<std::string_view> bound;
    if (binds_weights())
      for (const auto& [name, tensor] : weights_) bound.insert(name);
    for (std::size_t i = 0; i < session_.GetInputCount(); ++i) {
      TENONNX_ASSIGN_OR_RETURN(auto info,
                               tensor_info(session_.GetInputNameAllocated(i, allocator).get(),
                                           session_.GetInputTypeInfo(i), "input"));
      if (!bound.contains(info.name)) inputs_.push_back(std::move(info));
    }
    for (std::size_t i = 0; i < session_.GetOutputCount(); ++i) {
      TENONNX_ASSIGN_OR_RETURN(auto info,
                               tensor_info(session_.GetOutputNameAllocated(i, allocator).get(),
                                           session_.GetOutputTypeInfo(i), "output"));
      outputs_.push_back(std::move(info));
    }
    int partition = 0;
    for (const auto& subgraph : session_.GetEpGraphAssignmentInfo()) {
      const std::string provider = subgraph.GetEpName();
      for (const auto& node : subgraph.GetNodes())
        assigned_.push_back({provider, node.GetName(), node.GetOperatorType(), partition});
      ++partition;
    }
    return {};
  }

  // A binding per run, since a binding belongs to one thread; it costs a few microseconds.
  Status run_bound(std::span<const Tensor> inputs, std::vector<Tensor>& outputs) {
    Ort::IoBinding binding(session_);
    if (binds_weights())
      for (const auto& [name, tensor] : weights_) {
        TENONNX_ASSIGN_OR_RETURN(const Ort::Value value, value_from_tensor(tensor));
        binding.BindInput(name.c_str(), value);
      }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      TENONNX_ASSIGN_OR_RETURN(const Ort::Value value, value_from_tensor(inputs[i]));
      binding.BindInput(inputs_[i].name.c_str(), value);
    }
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
    outputs.resize(outputs_.size());
    std::vector<bool> bound(outputs_.size());
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Tensor& output = outputs[i];
      // A shape with a dynamic dimension never equals a tensor's: the runtime allocates, because
      // the size is known only afterwards. Memory that an input or another output lies in would be
      // overwritten while it is still read.
      bound[i] = output.defined() && outputs_[i].has_rank && output.dtype() == outputs_[i].dtype &&
                 output.shape() == outputs_[i].shape && !overlaps_any(output, inputs) &&
                 !overlaps_any(output, std::span(outputs).first(i));
      if (!bound[i]) {
        binding.BindOutput(outputs_[i].name.c_str(), memory);
        continue;
      }
      TENONNX_ASSIGN_OR_RETURN(const Ort::Value value, value_from_tensor(output));
      binding.BindOutput(outputs_[i].name.c_str(), value);
    }
    session_.Run(Ort::RunOptions{}, binding);
    auto values = binding.GetOutputValues();
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (bound[i]) continue;
      TENONNX_ASSIGN_OR_RETURN(outputs[i],
                               tensor_from_value(std::move(values[i]), outputs_[i].name));
      // An output that is an input under another name is the input's memory, which the caller owns.
      if (overlaps_any(outputs[i], inputs)) outputs[i] = outputs[i].clone();
    }
    return {};
  }

  LoadOptions options_;
  SessionSetup setup_;  // keeps the custom operators alive; declared before the session for that
  std::string description_;
  // Before the session, whose end writes the profile into it.
  std::optional<TemporaryDirectory> profile_directory_;
  Weights weights_;  // that the session reads
  Ort::Session session_{nullptr};
  std::vector<TensorInfo> inputs_;
  std::vector<TensorInfo> outputs_;
  std::vector<AssignedNode> assigned_;
  std::mutex placement_mutex_;
  std::optional<Placement> placement_;
};

}  // namespace

const std::vector<AssignedNode>& assignment_of(const LoadedGraph& graph) {
  static const std::vector<AssignedNode> none;
  const auto* session = dynamic_cast<const OrtGraph*>(&graph);
  return session != nullptr ? session->assigned() : none;
}

SessionSetup without_packing() {
  SessionSetup setup;
  setup.binds_weights = true;
  setup.configure = [](Ort::SessionOptions& session) {
    session.AddConfigEntry(kOrtSessionOptionsConfigDisablePrepacking, "1");
    // Looks at each node for a function's body beforehand; what has no kernel is inlined later too.
    session.AddConfigEntry(kOrtSessionOptionsDisableAheadOfTimeFunctionInlining, "1");
  };
  return setup;
}

Result<std::unique_ptr<LoadedGraph>> load_session(const Model& model, const LoadOptions& options,
                                                  const SessionSetup& setup) {
  TENONNX_RETURN_IF_ERROR(check_options(options));
  TENONNX_RETURN_IF_ERROR(onnxruntime().status());
  try {
    auto graph = std::make_unique<OrtGraph>(options, setup);
    TENONNX_RETURN_IF_ERROR(graph->create(model));
    return std::unique_ptr<LoadedGraph>(std::move(graph));
  } catch (const Ort::Exception& e) {
    return explain_ort_error(OrtStage::kLoad, e.GetOrtErrorCode(), e.what(), &model);
  } catch (const std::bad_alloc&) {
    return Internal("out of memory while creating a session");
  } catch (const std::exception& e) {
    return Internal("a session could not be created: {}", e.what());
  }
}

}  // namespace tenonnx
