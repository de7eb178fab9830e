// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/plugin.h"

#include <mutex>
#include <unordered_map>

#include "base/status.h"
#include "ort/library.h"

namespace tenonnx {
namespace {

// Never destroyed, as the OrtEnv itself (library.h).
Ort::Env& environment() {
  static auto* env = new Ort::Env(onnxruntime_env());
  return *env;
}

}  // namespace

Result<PluginProvider> register_plugin(const std::filesystem::path& library,
                                       const std::string& provider,
                                       const std::string& registration) {
  TENONNX_RETURN_IF_ERROR(onnxruntime().status());
  static std::mutex mutex;
  static std::map<std::filesystem::path, std::string> registered;  // file -> registration name
  const std::lock_guard lock(mutex);
  try {
    if (!registered.contains(library)) {
      const std::string name = registration.empty()
                                   ? fmt::format("tenonnx.{}.virtual", registered.size())
                                   : registration;
      environment().RegisterExecutionProviderLibrary(name.c_str(), library);
      registered[library] = name;
    }
    PluginProvider plugin{provider, {}};
    for (const auto& device : environment().GetEpDevices())
      if (provider == device.EpName()) plugin.devices.push_back(device);
    if (plugin.devices.empty())
      return FailedPrecondition("'{}' offers no device of the provider '{}' on this machine",
                                library.string(), provider);
    return plugin;
  } catch (const Ort::Exception& error) {
    return FailedPrecondition("'{}' cannot be loaded as a provider: {}", library.string(),
                              error.what());
  }
}

void append_plugin(const PluginProvider& plugin, const std::map<std::string, std::string>& options,
                   Ort::SessionOptions& session) {
  session.AppendExecutionProvider_V2(
      environment(), plugin.devices,
      std::unordered_map<std::string, std::string>(options.begin(), options.end()));
}

}  // namespace tenonnx
