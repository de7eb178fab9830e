// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Context models: what a provider has compiled, as nodes EPContext (domain com.microsoft), which
// hold the binary or name a file beside the model.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "model/model.h"
#include "ort/executor.h"

namespace tenonnx {

// Whether an executor of this address compiles contexts: provider:simnpu and qnn: do.
bool compiles_contexts(std::string_view address);

// Compiles `model` for an executor of this address into `out`: see compile_context() of
// adapters/provider.h. Unsupported for an address that compiles none.
Status compile_context_for(std::string_view address, const Model& model,
                           const std::filesystem::path& out, bool embed,
                           const LoadOptions& options);

// Creates a session with these entries in its configuration, which writes the context.
using ContextSession = std::function<Status(const std::map<std::string, std::string>& entries)>;
// Lets it write beside `out`, and moves what it wrote there; the model appears last.
Status write_context(const ContextSession& create, const std::filesystem::path& out, bool embed,
                     std::string_view provider);

// Nodes EPContext of the main graph.
std::size_t count_contexts(const Model& model);
// DataLoss: a node EPContext whose binary is empty, or whose file is missing or empty in
// `directory`; InvalidArgument: one that leads out of it.
Status check_contexts(const Model& model, const std::filesystem::path& directory);

}  // namespace tenonnx
