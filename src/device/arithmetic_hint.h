// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#pragma once

#include <string>

#include "device/device.h"

namespace tenonnx {

// "device 'sim-htp' (devices/sim-htp.json) has no arithmetic section: it is a target that runs
// sim:htp-v73; name 'htp-v73'", of a target that simulates none, and of any other file, the names
// of those that have the section.
std::string no_arithmetic(const Device& device);

}  // namespace tenonnx
