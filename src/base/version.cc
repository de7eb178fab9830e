// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "tenonnx/base.h"

namespace tenonnx {

std::string_view version() { return TENONNX_VERSION; }

}  // namespace tenonnx
