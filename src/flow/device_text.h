// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What `tenonnx device show` prints of a device file.
#pragma once

#include <string>

#include "base/json.h"
#include "device/device.h"

namespace tenonnx {

// docs/reference/json.md, "device show".
Json to_json(const Device& device);
std::string describe(const Device& device);

}  // namespace tenonnx
