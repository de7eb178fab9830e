// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Qualcomm's HTP through the vendor's own provider (onnxruntime-qnn), address
// "qnn:soc=43,arch=73[,precision=fp16,perf=burst,...]": on x86 with the HTP emulator that the
// package has, on a board with the chip, by the same code. Options: adapters/qnn_options.h.
//
// load() folds constants, which the vendor's compiler needs, and loads with ONNX Runtime's
// optimisation disabled, so that what the provider sees is the model. A session in which the
// provider took no node is an error, whatever LoadOptions say: to be listed proves nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "adapters/provider_graph.h"
#include "ort/executor.h"

namespace tenonnx {

// `rest` is the address behind "qnn:". InvalidArgument: options; NotFound: the library, with how to
// get it. Nothing of the vendor's is loaded before a graph is.
Result<std::unique_ptr<Executor>> make_qnn_executor(std::string_view rest);

// As compile_context() of adapters/provider.h, which calls it for addresses of this kind.
Status compile_qnn_context(std::string_view rest, const Model& model,
                           const std::filesystem::path& out, bool embed,
                           const LoadOptions& options);

}  // namespace tenonnx
