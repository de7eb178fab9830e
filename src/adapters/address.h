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

// Who wrote the address: the user, or a file (a package's manifest, a device file), which may come
// from somebody else.
enum class AddressOrigin { kUser, kFile };

// InvalidArgument lists the kinds that exist. FailedPrecondition for "exec:COMMAND" out of a file,
// unless the environment has TENONNX_ALLOW_EXEC.
Result<std::unique_ptr<Executor>> make_executor(std::string_view address,
                                                AddressOrigin origin = AddressOrigin::kUser);

// "cpu, sim:NAME, ...": the kinds, for messages.
std::string executor_forms();

}  // namespace tenonnx
