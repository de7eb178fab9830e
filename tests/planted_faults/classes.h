// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#pragma once

#include <vector>

#include "fault.h"

namespace tenonnx::planted {

void add_value_classes(std::vector<FaultClass>& to);
void add_place_classes(std::vector<FaultClass>& to);

}  // namespace tenonnx::planted
