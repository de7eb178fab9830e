// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The full-size exports that tools/models/export_models.py makes, and inputs for them: for tests
// that need minutes.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "model/model.h"
#include "passes/proof.h"
#include "tenonnx/base.h"

namespace tenonnx {

inline constexpr const char* kNoExports = "no exports: tools/models/export_models.py makes them";

inline std::filesystem::path exports_directory() {
  namespace fs = std::filesystem;
  if (const char* cache = std::getenv("TENONNX_CACHE")) return fs::path(cache) / "exports";
  const char* home = std::getenv("HOME");
  return home == nullptr ? fs::path() : fs::path(home) / ".cache" / "tenonnx" / "exports";
}

// By name; empty where there are none.
inline std::vector<std::filesystem::path> all_exports() {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(exports_directory(), error))
    if (entry.path().extension() == ".onnx") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Normal inputs of the images' size; the sizes that boxes are given in stay as the export has them.
inline TensorMap random_inputs_of(const Model& model) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  TensorMap inputs;
  for (const TensorInfo& info : model.inputs()) {
    Shape shape = info.shape;
    for (std::int64_t& size : shape) size = std::max<std::int64_t>(size, 1);
    Tensor tensor(info.dtype, shape);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (info.dtype == DType::kInt64)
        tensor.mutable_data<std::int64_t>()[i] = 640;
      else
        tensor.mutable_data<float>()[i] = normal(random);
    }
    inputs.emplace(info.name, std::move(tensor));
  }
  return inputs;
}

// `inputs` must outlive it.
inline ProofData proof_data_of(const TensorMap& inputs) {
  ProofData data;
  data.count = 1;
  data.load = [&inputs](std::size_t) -> Result<TensorMap> {
    TensorMap copy;
    for (const auto& [name, tensor] : inputs) copy.emplace(name, tensor.clone());
    return copy;
  };
  data.name = [](std::size_t) { return "random"; };
  data.description = "1 random input";
  return data;
}

}  // namespace tenonnx
