// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/provider.h"

#include <onnxruntime_session_options_config_keys.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "adapters/context.h"
#include "adapters/device_versions.h"
#include "adapters/node_facts.h"
#include "adapters/provider_refusal.h"
#include "base/files.h"
#include "base/json.h"
#include "base/own_directory.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "device/device.h"
#include "ort/library.h"
#include "ort/plugin.h"
#include "ort/session.h"
#include "passes/runner.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kName = "simnpu";
constexpr const char* kForm = "provider:simnpu[:DEVICE][,KEY=VALUE...]";

Result<fs::path> find_library() {
#ifdef TENONNX_DEFAULT_SIMNPU_LIBRARY
  const fs::path configured = TENONNX_DEFAULT_SIMNPU_LIBRARY;
#else
  const fs::path configured;
#endif
  return find_own_library("the library of the simulated provider", "libtenonnx_simnpu.so",
                          "TENONNX_SIMNPU", configured);
}

// "simnpu:htp-v73,threads=1" as options.
Result<std::map<std::string, std::string>> parse(std::string_view rest) {
  const auto wrong = [&](std::string_view what) {
    return InvalidArgument("executor 'provider:{}': {}; expected {}", rest, what, kForm);
  };
  std::map<std::string, std::string> given;
  const std::string_view head = rest.substr(0, rest.find(','));
  const std::string_view name = head.substr(0, head.find(':'));
  if (name != kName) return wrong(fmt::format("there is no provider '{}'", name));
  if (head.size() > name.size()) {
    if (head.size() == name.size() + 1) return wrong("no device behind ':'");
    given["device"] = head.substr(name.size() + 1);
  }
  for (std::size_t at = head.size(); at < rest.size();) {
    const std::size_t end = std::min(rest.find(',', at + 1), rest.size());
    const std::string_view option = rest.substr(at + 1, end - at - 1);
    const std::size_t equal = option.find('=');
    if (equal == std::string_view::npos || equal == 0)
      return wrong(fmt::format("'{}' is no KEY=VALUE", option));
    if (!given.emplace(option.substr(0, equal), option.substr(equal + 1)).second)
      return wrong(fmt::format("'{}' is given twice", option.substr(0, equal)));
    at = end;
  }
  return given;
}

Result<std::vector<VendorNode>> read_report(const fs::path& file) {
  std::vector<VendorNode> out;
  std::error_code error;
  if (!fs::exists(file, error)) return out;  // nothing was taken
  TENONNX_ASSIGN_OR_RETURN(const Json json, read_json_file(file));
  const JsonReader reader(json, "record of the provider");
  TENONNX_ASSIGN_OR_RETURN(const JsonReader partitions, reader.at("partitions"));
  TENONNX_ASSIGN_OR_RETURN(const auto items, partitions.items());
  for (const JsonReader& partition : items) {
    TENONNX_ASSIGN_OR_RETURN(const std::string name, partition.string("partition"));
    TENONNX_ASSIGN_OR_RETURN(const JsonReader list, partition.at("nodes"));
    TENONNX_ASSIGN_OR_RETURN(const auto nodes, list.items());
    for (const JsonReader& one : nodes) {
      VendorNode& node = out.emplace_back();
      node.partition = name;
      TENONNX_ASSIGN_OR_RETURN(node.node, one.string("node"));
      TENONNX_ASSIGN_OR_RETURN(node.op_type, one.string("op_type"));
      TENONNX_ASSIGN_OR_RETURN(node.backend, one.string("backend"));
    }
  }
  return out;
}

class ProviderExecutor final : public Executor {
 public:
  ProviderExecutor(std::string address, SimNpuOptions options,
                   std::map<std::string, std::string> given, Device device, fs::path library)
      : address_(std::move(address)),
        options_(std::move(options)),
        given_(std::move(given)),
        device_(std::move(device)),
        library_(std::move(library)) {}

  const std::string& address() const override { return address_; }

  Result<std::unique_ptr<LoadedGraph>> load(const Model& model,
                                            const LoadOptions& options) const override {
    return load(model, options, {});
  }

  // `entries` go into the session's configuration.
  Result<std::unique_ptr<LoadedGraph>> load(
      const Model& model, const LoadOptions& options,
      const std::map<std::string, std::string>& entries) const {
    TENONNX_ASSIGN_OR_RETURN(const PluginProvider plugin,
                             register_plugin(library_, std::string(kSimNpuProvider)));
    Model folded = model.clone();
    name_nodes(folded);
    const std::vector<std::string> fold = {"fold_constants"};
    const auto passes = run_passes(folded, fold, {});
    if (!passes.ok()) return passes.status().at(address_);

    const TemporaryDirectory work;
    std::map<std::string, std::string> to_provider = given_;
    if (!to_provider.contains("threads"))
      to_provider["threads"] = std::to_string(options.intra_op_threads);
    const bool own_report = options_.report.empty() && !work.path().empty();
    const fs::path report = own_report ? work.path() / "report.json" : fs::path(options_.report);
    if (own_report) to_provider["report"] = report.string();
    SessionSetup setup;
    setup.provider =
        fmt::format("{} ({}), then CPUExecutionProvider", kSimNpuProvider, device_.name);
    setup.appends_provider = true;
    setup.configure = [&](Ort::SessionOptions& session) {
      append_plugin(plugin, to_provider, session);
      for (const auto& [key, value] : entries) session.AddConfigEntry(key.c_str(), value.c_str());
      // Contexts beside a model are looked for from where the model was, which bytes do not tell.
      if (entries.empty() && !model.source_path().empty())
        session.AddConfigEntry(kOrtSessionOptionEpContextFilePath, model.source_path().c_str());
    };
    LoadOptions unfused = options;
    unfused.optimization = Optimization::kDisabled;
    auto loaded = load_session(folded, unfused, setup);
    if (!loaded.ok() && options.disable_fallback) return refused(folded, unfused, setup, loaded);
    if (!loaded.ok()) return loaded.status().at(address_);
    ProviderRecord record{
        std::string(kSimNpuProvider), options_.pinned, assignment_of(**loaded), {}, false};
    TENONNX_ASSIGN_OR_RETURN(record.vendor, read_report(report));
    return std::unique_ptr<LoadedGraph>(
        std::make_unique<ProviderGraph>(std::move(*loaded), std::move(record)));
  }

  std::vector<std::pair<std::string, std::string>> versions() const override {
    return device_versions(device_);
  }

 private:
  // Why the session could not be made without falling back: where that was the reason, a session
  // that may fall back tells which nodes do.
  Status refused(const Model& model, LoadOptions options, const SessionSetup& setup,
                 const Result<std::unique_ptr<LoadedGraph>>& loaded) const {
    options.disable_fallback = options.profile = false;
    const auto allowed = load_session(model, options, setup);
    if (!allowed.ok()) return loaded.status().at(address_);
    return Unsupported(
        "{}: {}", address_,
        explain_refusal(std::string(kSimNpuProvider), device_, model, assignment_of(**allowed)));
  }

  const std::string address_;
  const SimNpuOptions options_;
  const std::map<std::string, std::string> given_;
  const Device device_;
  const fs::path library_;
};

Result<std::unique_ptr<ProviderExecutor>> make(std::string_view rest) {
  if (rest.empty())
    return InvalidArgument("executor 'provider' needs the name of a provider: {}", kForm);
  const std::string address = fmt::format("provider:{}", rest);
  TENONNX_ASSIGN_OR_RETURN(auto given, parse(rest));
  auto options = simnpu_options(given);
  if (!options.ok()) return options.status().at(fmt::format("executor '{}'", address));
  TENONNX_ASSIGN_OR_RETURN(Device device, find_device(options->device));
  if (!device.arithmetic || device.supported.empty())
    return InvalidArgument(
        "executor '{}': device '{}' ({}) has no \"{}\" section, which the provider needs", address,
        device.name, device.file.string(), device.arithmetic ? "supported" : "arithmetic");
  TENONNX_ASSIGN_OR_RETURN(fs::path library, find_library());
  return std::make_unique<ProviderExecutor>(address, std::move(*options), std::move(given),
                                            std::move(device), std::move(library));
}

}  // namespace

Result<std::unique_ptr<Executor>> make_provider_executor(std::string_view rest) {
  TENONNX_ASSIGN_OR_RETURN(auto executor, make(rest));
  return std::unique_ptr<Executor>(std::move(executor));
}

Status compile_context(std::string_view rest, const Model& model, const fs::path& out, bool embed,
                       const LoadOptions& options) {
  TENONNX_ASSIGN_OR_RETURN(const auto executor, make(rest));
  return write_context(
      [&](const std::map<std::string, std::string>& entries) {
        return executor->load(model, options, entries).status();
      },
      out, embed, kSimNpuProvider);
}

std::optional<SimNpuOptions> simnpu_options_of(std::string_view address) {
  constexpr std::string_view kKind = "provider:";
  if (!address.starts_with(kKind)) return std::nullopt;
  const auto given = parse(address.substr(kKind.size()));
  if (!given.ok()) return std::nullopt;
  auto options = simnpu_options(*given);
  if (!options.ok()) return std::nullopt;
  return std::move(*options);
}

}  // namespace tenonnx
