// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Recorded tensors as an executor, address "files:DIR" or "files:FILE.npz": from PyTorch, a board,
// or any tool. Layout of the directory: docs/reference/executors.md.
//
// load() looks the model's outputs up among the recorded arrays. run() looks the inputs up among
// the recorded cases: by their bytes where inputs were recorded; else by the name or position that
// LoadedGraph::select_case gave; else, where there is one case, it takes the first inputs that come
// for those of the case, and refuses others. Nothing is converted that names.json does not ask for.
// Where recorded tensors were computed is not known: Placement::disagreement says so.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "ort/executor.h"

namespace tenonnx {

// Errors of read_recording (adapters/recording.h).
Result<std::unique_ptr<Executor>> make_files_executor(const std::filesystem::path& path);

// For a tensor of the model that a recording does not hold: which arrays it has, those first that
// are no tensor of the model (one of them may be it under another name), and where to say so. ""
// where `executor` is no recording.
std::string what_is_recorded(const Executor& executor, const Model& model);

}  // namespace tenonnx
