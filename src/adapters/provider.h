// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The simulated NPU as ONNX Runtime's provider, address "provider:simnpu[:DEVICE][,KEY=VALUE...]":
// the graph in a session with the plugin library of provider/, which takes what the device file
// supports and leaves the rest to the CPU.
//
// load() folds constants, as a device's compiler does, and loads with ONNX Runtime's optimisation
// disabled whatever LoadOptions say, so that a node of the model is a node of the record and a
// partition computes bit for bit as sim:DEVICE. Options: adapters/simnpu_options.h.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/provider_graph.h"
#include "adapters/simnpu_options.h"

namespace tenonnx {

inline constexpr std::string_view kSimNpuProvider = "SimNpuExecutionProvider";

// `rest` is the address behind "provider:". InvalidArgument: another provider, an option that does
// not exist. NotFound: the device, or the plugin library (TENONNX_SIMNPU names it, else it is
// looked for beside the program and in lib/).
Result<std::unique_ptr<Executor>> make_provider_executor(std::string_view rest);

// Compiles `model` into a context model: partitions are nodes EPContext, embedded, or with a file
// OUT-STEM_NUMBER.bin each beside it; what the provider leaves to the CPU stays. The model
// appears last. `rest` as above. FailedPrecondition where `out` exists.
Status compile_context(std::string_view rest, const Model& model, const std::filesystem::path& out,
                       bool embed, const LoadOptions& options);

// The options of such an address; nullopt for an address of another kind.
std::optional<SimNpuOptions> simnpu_options_of(std::string_view address);

}  // namespace tenonnx
