// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/address.h"

#include <cstdlib>
#include <string>

#include "adapters/exec.h"
#include "adapters/files.h"
#include "adapters/provider.h"
#include "adapters/qnn.h"
#include "adapters/sim.h"
#include "base/status.h"
#include "device/device.h"

namespace tenonnx {
namespace {

Result<std::unique_ptr<Executor>> make_cpu(std::string_view rest) {
  if (!rest.empty())
    return InvalidArgument("executor 'cpu' takes nothing after it, got '{}'", rest);
  return make_cpu_executor();
}

Result<std::unique_ptr<Executor>> make_sim(std::string_view rest) {
  if (rest.empty()) {
    std::string list;
    for (const std::string& name : device_names()) {
      const auto device = find_device(name);
      if (device.ok() && device->arithmetic)
        list += fmt::format("{}sim:{}", list.empty() ? "" : ", ", name);
    }
    return InvalidArgument("executor 'sim' needs the name of a device: there are {}",
                           list.empty() ? "none" : list);
  }
  TENONNX_ASSIGN_OR_RETURN(const Device device, find_device(rest));
  return make_sim_executor(device);
}

Result<std::unique_ptr<Executor>> make_files(std::string_view rest) {
  if (rest.empty())
    return InvalidArgument(
        "executor 'files' needs the directory (or .npz) of a recording: files:DIR");
  return make_files_executor(rest);
}

Result<std::unique_ptr<Executor>> make_exec(std::string_view rest) {
  return make_exec_executor(rest);
}

Result<std::unique_ptr<Executor>> make_provider(std::string_view rest) {
  return make_provider_executor(rest);
}

Result<std::unique_ptr<Executor>> make_qnn(std::string_view rest) {
  return make_qnn_executor(rest);
}

struct Adapter {
  std::string_view kind;
  std::string_view form;
  Result<std::unique_ptr<Executor>> (*make)(std::string_view rest);
};

constexpr Adapter kAdapters[] = {
#define TENONNX_ADAPTER(kind, form, factory) {kind, form, &factory},
#include "adapters/adapters.inc"
#undef TENONNX_ADAPTER
};

}  // namespace

std::string executor_forms() {
  std::string forms;
  for (const Adapter& adapter : kAdapters)
    forms += fmt::format("{}{}", forms.empty() ? "" : ", ", adapter.form);
  return forms;
}

Result<std::unique_ptr<Executor>> make_executor(std::string_view address, AddressOrigin origin) {
  const std::size_t colon = address.find(':');
  const std::string_view kind = address.substr(0, colon);
  if (origin == AddressOrigin::kFile && kind == "exec" &&
      std::getenv("TENONNX_ALLOW_EXEC") == nullptr)
    return FailedPrecondition(
        "executor '{}' would run a command that a file names (a package, or a device file), which "
        "may be somebody else's: look at it, and set TENONNX_ALLOW_EXEC=1 to allow it",
        address);
  if (origin == AddressOrigin::kFile && kind == "provider" &&
      address.find(",report=") != std::string_view::npos)
    return InvalidArgument(
        "executor '{}' would write a file that a package or a device file names: leave 'report' "
        "out there; it is for addresses on the command line",
        address);
  if (origin == AddressOrigin::kFile && kind == "qnn")
    for (const std::string_view key : {"library", "op_affinity"})
      if (address.find(fmt::format("{}=", key)) != std::string_view::npos)
        return InvalidArgument(
            "executor '{}': '{}' names a file that would be loaded on the word of a package or a "
            "device file: leave it out there (TENONNX_QNN names the library); it is for addresses "
            "on "
            "the command line",
            address, key);
  for (const Adapter& adapter : kAdapters) {
    if (adapter.kind != kind) continue;
    // Of "qnn:" the options say themselves what is missing.
    if (colon != std::string_view::npos && colon + 1 == address.size() && kind != "qnn")
      return InvalidArgument("executor address '{}' ends in ':'; expected {}", address,
                             adapter.form);
    return adapter.make(colon == std::string_view::npos ? "" : address.substr(colon + 1));
  }
  return InvalidArgument("unknown executor address '{}': expected one of {}", address,
                         executor_forms());
}

}  // namespace tenonnx
