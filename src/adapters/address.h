// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// An executor's address ("cpu", "sim:htp-v73") to the executor. One line a kind: adapters.inc.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ort/executor.h"

namespace tenonnx {

// InvalidArgument lists the kinds that exist.
Result<std::unique_ptr<Executor>> make_executor(std::string_view address);

// "cpu, sim:NAME": the kinds, for messages.
std::string executor_forms();

}  // namespace tenonnx
