// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/device_versions.h"

#include "base/status.h"
#include "ort/executor.h"

namespace tenonnx {

std::vector<std::pair<std::string, std::string>> device_versions(const Device& device) {
  auto versions = make_cpu_executor()->versions();
  versions.emplace_back(
      "device file", fmt::format("{} sha256 {}", device.file.filename().string(), device.sha256));
  return versions;
}

}  // namespace tenonnx
