// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What an executor of a device file records of its versions (Executor::versions).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "device/device.h"

namespace tenonnx {

// Those of the cpu, whose kernels compute, and ("device file", "htp-v73.json sha256 ...").
std::vector<std::pair<std::string, std::string>> device_versions(const Device& device);

}  // namespace tenonnx
