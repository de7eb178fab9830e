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
#include <vector>

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

// One compiled partition. Several may share a binary: then one of them, the main one, has it.
struct ContextPartition {
  std::string name;                          // of the node, else of its first output
  std::string source;                        // the provider, as it names itself; may be empty
  bool main = true;                          // it has a binary
  std::string file;                          // of the binary beside the model; empty: within
  std::vector<std::string> inputs, outputs;  // in the order in which the runtime binds them
};
// In the graph's order.
std::vector<ContextPartition> context_partitions(const Model& model);

// DataLoss: a partition whose binary is empty, or whose file is missing or empty in `directory`;
// one that shares a binary where no other of its provider has one. InvalidArgument: a file that
// leads out of the directory. (Tensors that a lost partition no longer makes: Model::load.)
Status check_contexts(const Model& model, const std::filesystem::path& directory);

}  // namespace tenonnx
