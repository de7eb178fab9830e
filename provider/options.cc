// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "options.h"

#include <onnxruntime_session_options_config_keys.h>

#include <filesystem>
#include <map>
#include <system_error>

#include "api.h"
#include "base/status.h"

namespace tenonnx::simnpu {
namespace {

bool is_on(Ort::ConstSessionOptions session, const char* key) {
  return session.GetConfigEntryOrDefault(key, "0") == "1";
}

std::string silent_reason(const SimNpuOptions& options) {
  if (!options.soc.empty() && options.soc != options.device)
    return fmt::format("soc '{}' is not '{}': invalid configuration", options.soc, options.device);
  std::error_code error;
  if (!options.backend.empty() && !std::filesystem::exists(options.backend, error))
    return fmt::format("backend library '{}' cannot be loaded", options.backend);
  if (options.affinity_drops_all && !options.pinned.empty())
    return "an operator is pinned to the CPU: the graph is not taken";
  return "";
}

}  // namespace

Result<Settings> read_settings(Ort::ConstSessionOptions session) {
  std::map<std::string, std::string> given;
  for (const auto& [key, form] : simnpu_option_forms()) {
    const std::string entry = kOptionPrefix + key;
    if (session.HasConfigEntry(entry.c_str())) given[key] = session.GetConfigEntry(entry.c_str());
  }
  Settings settings;
  TENONNX_ASSIGN_OR_RETURN(settings.options, simnpu_options(given));
  TENONNX_ASSIGN_OR_RETURN(settings.device, find_device(settings.options.device));
  const Device& device = settings.device;
  if (!device.arithmetic || device.supported.empty())
    return InvalidArgument("device '{}' ({}) has no \"{}\" section, which this provider needs",
                           device.name, device.file.string(),
                           device.arithmetic ? "supported" : "arithmetic");
  settings.make_contexts = is_on(session, kOrtSessionOptionEpContextEnable);
  settings.embed_contexts = is_on(session, kOrtSessionOptionEpContextEmbedMode);
  settings.context_file = session.GetConfigEntryOrDefault(kOrtSessionOptionEpContextFilePath, "");
  settings.context_prefix =
      session.GetConfigEntryOrDefault(kOrtSessionOptionEpContextNodeNamePrefix, "");
  settings.silent = silent_reason(settings.options);
  return settings;
}

}  // namespace tenonnx::simnpu
