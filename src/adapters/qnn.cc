// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/qnn.h"

#include <onnxruntime_session_options_config_keys.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "adapters/context.h"
#include "adapters/node_facts.h"
#include "adapters/qnn_library.h"
#include "adapters/qnn_options.h"
#include "adapters/qnn_refusal.h"
#include "adapters/result_cache.h"
#include "base/files.h"
#include "base/json.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "ort/library.h"
#include "ort/messages.h"
#include "ort/plugin.h"
#include "ort/session.h"
#include "passes/runner.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

using Entries = std::map<std::string, std::string>;

// Answers from the cache what was computed before.
class QnnGraph final : public ProviderGraph, public Recalls {
 public:
  QnnGraph(std::unique_ptr<LoadedGraph> session, ProviderRecord record, ResultCache cache)
      : ProviderGraph(std::move(session), std::move(record)), cache_(std::move(cache)) {}
  bool recalls(std::span<const Tensor> inputs) const override {
    return cache_.find(cache_.key(inputs), outputs()).size() == outputs().size();
  }
  using LoadedGraph::run;
  Status run(std::span<const Tensor> inputs, std::vector<Tensor>& given) override {
    const std::string key = cache_.key(inputs);
    std::vector<Tensor> known = cache_.find(key, outputs());
    if (known.size() == outputs().size()) {
      given = std::move(known);
      return {};
    }
    TENONNX_RETURN_IF_ERROR(ProviderGraph::run(inputs, given));
    cache_.keep(key, outputs(), given);
    return {};
  }

 private:
  const ResultCache cache_;
};

std::vector<AssignedNode> in_model_names(std::vector<AssignedNode> assigned) {
  for (AssignedNode& node : assigned) node.name = model_name(node.name);
  return assigned;
}

// The provider's own record of a compilation (option enable_framework_op_trace): each partition
// with the nodes, or groups of nodes, that became one of QNN's. A context that is loaded writes
// none.
std::vector<VendorNode> read_trace(const fs::path& directory) {
  std::vector<VendorNode> out;
  const auto json = read_json_file(directory / "qnn_op_trace.json");
  if (!json.ok()) return out;
  const auto list = [](const Json& of, const char* key) {
    const auto found = of.find(key);
    return found != of.end() && found->is_array() ? *found : Json::array();
  };
  for (const Json& graph : list(*json, "subgraph_traces"))
    for (const Json& mapping : list(graph, "op_mappings"))
      for (const Json& source : list(mapping, "sources"))
        out.push_back({model_name(source.value("name", "")), mapping.value("dst_qnn_op_type", ""),
                       graph.value("graph_name", ""), "device"});
  return out;
}

std::size_t taken(const std::vector<AssignedNode>& assigned) {
  return static_cast<std::size_t>(
      std::count_if(assigned.begin(), assigned.end(),
                    [](const AssignedNode& node) { return node.provider == kQnnProvider; }));
}

// A tensor without elements ends the vendor's library by a division, and the process with it.
Status check_not_empty(const Model& model) {
  for (const auto& tensors : {model.inputs(), model.outputs()})
    for (const TensorInfo& tensor : tensors)
      if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end())
        return Unsupported(
            "'{}' is {}: the vendor's library cannot compute tensors without elements; give it "
            "another shape",
            tensor.name, to_string(tensor.shape));
  return {};
}

class QnnExecutor final : public Executor {
 public:
  QnnExecutor(std::string address, QnnOptions options, QnnLibrary library)
      : address_(std::move(address)), options_(std::move(options)), library_(std::move(library)) {}

  const std::string& address() const override { return address_; }

  Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                            const LoadOptions& options) const override {
    return load(model, options, {});
  }

  // `entries` go into the session's configuration.
  Result<std::unique_ptr<LoadedGraph>> load(const Model& model, const LoadOptions& options,
                                            const Entries& entries) const {
    TENONNX_RETURN_IF_ERROR(check_not_empty(model).at(address_));
    TENONNX_ASSIGN_OR_RETURN(const OnnxRuntime* runtime, onnxruntime());
    TENONNX_RETURN_IF_ERROR(check_qnn_runtime(runtime->version).at(address_));
    const auto plugin =
        register_plugin(library_.file, std::string(kQnnProvider), std::string(kQnnProvider));
    if (!plugin.ok()) return plugin.status().at(address_);
    TENONNX_ASSIGN_OR_RETURN(const Model folded, as_loaded(model));
    const TemporaryDirectory work;
    if (work.path().empty())
      return Io("no temporary directory can be made; set TMPDIR to a writable directory");
    Entries to_provider = options_.provider;
    TENONNX_RETURN_IF_ERROR(add_affinity(work.path(), to_provider));
    if (options.profile) {
      to_provider["enable_framework_op_trace"] = "1";
      to_provider["framework_op_trace_dir"] = work.path().string();
    }
    SessionSetup setup;
    setup.provider =
        fmt::format("{} ({}), then CPUExecutionProvider", kQnnProvider, options_.record());
    setup.appends_provider = true;
    setup.configure = [&](Ort::SessionOptions& session) {
      append_plugin(*plugin, to_provider, session);
      for (const auto& [key, value] : entries) session.AddConfigEntry(key.c_str(), value.c_str());
      // A binary beside a context is looked for from where the model was, which bytes do not tell.
      if (entries.empty() && !model.source_path().empty())
        session.AddConfigEntry(kOrtSessionOptionEpContextFilePath, model.source_path().c_str());
    };
    LoadOptions unfused = options;
    unfused.optimization = Optimization::kDisabled;
    RuntimeMessages messages;
    auto loaded = load_session(folded, unfused, setup);
    const std::vector<std::string> said = messages.take();
    if (!loaded.ok()) return refused(folded, unfused, setup, loaded.status(), said);
    ProviderRecord record{std::string(kQnnProvider), options_.pinned,
                          in_model_names(assignment_of(**loaded)), read_trace(work.path()), true};
    if (taken(record.assigned) == 0)
      return Unsupported("{}: {}", address_, explain_qnn_refusal("", said, record.assigned));
    if (!keeps_results(options))
      return std::unique_ptr<LoadedGraph>(
          std::make_unique<ProviderGraph>(std::move(*loaded), std::move(record)));
    TENONNX_ASSIGN_OR_RETURN(const std::string subject,
                             everything_but_the_inputs(folded, *runtime));
    return std::unique_ptr<LoadedGraph>(
        std::make_unique<QnnGraph>(std::move(*loaded), std::move(record),
                                   ResultCache(ResultCache::default_directory(), subject)));
  }

  // Where the context of a model is kept, once it is compiled: the same graph compiled twice does
  // not give the same bytes (the vendor's compiler leaves some of them unset), so that what the
  // second one computes would not be found. nullopt: nothing is to be kept.
  Result<std::optional<ResultCache>> context_cache(const Model& model,
                                                   const LoadOptions& options) const {
    if (!keeps_results(options)) return std::optional<ResultCache>();
    TENONNX_ASSIGN_OR_RETURN(const OnnxRuntime* runtime, onnxruntime());
    TENONNX_ASSIGN_OR_RETURN(const Model folded, as_loaded(model));
    TENONNX_ASSIGN_OR_RETURN(const std::string subject,
                             everything_but_the_inputs(folded, *runtime));
    return std::optional<ResultCache>(
        ResultCache(ResultCache::default_directory(), "context embedded " + subject));
  }

  std::vector<std::pair<std::string, std::string>> versions() const override {
    std::vector<std::pair<std::string, std::string>> out = make_cpu_executor()->versions();
    out.emplace_back("onnxruntime-qnn", fmt::format("{} (QNN {})", library_.version, library_.qnn));
    out.emplace_back("qnn options", options_.record());
    out.emplace_back("qnn runs on", qnn_place() == QnnPlace::kEmulator
                                        ? "the vendor's HTP emulator on x86-64, not a chip"
                                        : "the board");
    return out;
  }

 private:
  // What a board computes is measured each time.
  static bool keeps_results(const LoadOptions& options) {
    return options.reuse_results && !options.profile && qnn_place() == QnnPlace::kEmulator;
  }

  Result<Model> as_loaded(const Model& model) const {
    Model folded = model.clone();
    if (count_contexts(model) > 0) return folded;
    name_nodes(folded);
    const std::vector<std::string> fold = {"fold_constants"};
    const auto passes = run_passes(folded, fold, {});
    if (!passes.ok()) return passes.status().at(address_);
    return folded;
  }

  Status add_affinity(const fs::path& work, Entries& to_provider) const {
    if (!options_.affinity_file.empty()) {
      std::error_code error;
      if (!fs::exists(options_.affinity_file, error))
        return NotFound("executor '{}': the file of 'op_affinity', '{}', does not exist", address_,
                        options_.affinity_file.string());
      to_provider["op_affinity"] = options_.affinity_file.string();
    }
    if (options_.pinned.empty()) return {};
    TENONNX_RETURN_IF_ERROR(
        write_file_atomic(work / "affinity.json", qnn_affinity_json(options_.pinned)));
    to_provider["op_affinity"] = (work / "affinity.json").string();
    return {};
  }

  // Where a session that may not fall back was refused, one that may tells which nodes do.
  Status refused(const Model& model, LoadOptions options, const SessionSetup& setup,
                 const Status& status, const std::vector<std::string>& said) const {
    constexpr std::string_view kFallback = "fallback to CPU EP has been explicitly disabled";
    std::vector<AssignedNode> assigned;
    if (status.message().find(kFallback) != std::string::npos) {
      options.disable_fallback = options.profile = false;
      const auto allowed = load_session(model, options, setup);
      if (allowed.ok()) assigned = in_model_names(assignment_of(**allowed));
    }
    return Unsupported("{}: {}", address_, explain_qnn_refusal(status.message(), said, assigned));
  }

  Result<std::string> everything_but_the_inputs(const Model& model,
                                                const OnnxRuntime& runtime) const {
    TENONNX_ASSIGN_OR_RETURN(const std::string bytes, model.serialize());
    std::string out =
        fmt::format("{} onnxruntime {} onnxruntime-qnn {} QNN {} {}", sha256_hex(bytes),
                    runtime.version, library_.version, library_.qnn, options_.record());
    for (const ExternalFile& file : model.external_files())
      out += fmt::format(" {} {}", file.location, sha256_hex(file.file->bytes()));
    // Binaries beside a context, and a file of affinities: what is in them counts, not their names.
    std::vector<fs::path> files;
    if (!options_.affinity_file.empty()) files.push_back(options_.affinity_file);
    std::error_code error;
    if (count_contexts(model) > 0)
      for (const auto& entry : fs::directory_iterator(model.directory(), error))
        if (entry.path().extension() == ".bin") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      TENONNX_ASSIGN_OR_RETURN(const std::string hash, sha256_file(file));
      out += " " + hash;
    }
    // Versions that cannot be told, and another library file under the same version.
    TENONNX_ASSIGN_OR_RETURN(const std::string provider, sha256_file(library_.file));
    return out + " " + provider;
  }

  const std::string address_;
  const QnnOptions options_;
  const QnnLibrary library_;
};

Result<std::unique_ptr<QnnExecutor>> make(std::string_view rest) {
  TENONNX_ASSIGN_OR_RETURN(QnnOptions options, qnn_options(rest, qnn_place()));
  const std::string address = fmt::format("qnn:{}", rest);
  auto library = find_qnn_library(options.library);
  if (!library.ok()) return library.status().at(fmt::format("executor '{}'", address));
  return std::make_unique<QnnExecutor>(address, std::move(options), std::move(*library));
}

}  // namespace

Result<std::unique_ptr<Executor>> make_qnn_executor(std::string_view rest) {
  TENONNX_ASSIGN_OR_RETURN(auto executor, make(rest));
  return std::unique_ptr<Executor>(std::move(executor));
}

Status compile_qnn_context(std::string_view rest, const Model& model, const fs::path& out,
                           bool embed, const LoadOptions& options) {
  TENONNX_ASSIGN_OR_RETURN(const auto executor, make(rest));
  const auto compile = [&] {
    return write_context(
        [&](const Entries& entries) { return executor->load(model, options, entries).status(); },
        out, embed, kQnnProvider);
  };
  std::error_code error;
  if (!embed || fs::exists(out, error)) return compile();
  TENONNX_ASSIGN_OR_RETURN(const auto cache, executor->context_cache(model, options));
  if (!cache) return compile();
  const std::vector<TensorInfo> infos = {{"context", DType::kUInt8, {-1}}};
  const std::string key = cache->key({});
  if (const std::vector<Tensor> kept = cache->find(key, infos); kept.size() == 1)
    return write_file_atomic(
        out, {static_cast<const char*>(kept[0].raw()), static_cast<std::size_t>(kept[0].bytes())});
  TENONNX_RETURN_IF_ERROR(compile());
  TENONNX_ASSIGN_OR_RETURN(const std::string bytes, read_file(out));
  Tensor tensor(DType::kUInt8, {static_cast<std::int64_t>(bytes.size())});
  std::memcpy(tensor.mutable_raw(), bytes.data(), bytes.size());
  const std::vector<Tensor> tensors = {std::move(tensor)};
  cache->keep(key, infos, tensors);
  return {};
}

}  // namespace tenonnx
