// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Outputs that an emulator has computed, under the hash of everything that they depend on. A run
// takes seconds to a minute and is deterministic, so that a second one tells nothing new.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

// A graph that may answer from a cache instead of running.
class Recalls {
 public:
  virtual ~Recalls() = default;
  // Whether run() would answer these inputs, in the order of the graph's, without computing.
  virtual bool recalls(std::span<const Tensor> inputs) const = 0;
};

class ResultCache {
 public:
  // `directory` may be empty: nothing is kept then. `subject` is all but the inputs: graph,
  // options, versions.
  ResultCache(std::filesystem::path directory, std::string_view subject);

  // The key of one run: subject and inputs (dtypes, shapes, bytes).
  std::string key(std::span<const Tensor> inputs) const;
  // One tensor an output, in the order of `infos`, or nothing: not there, damaged (which is as if
  // it were not there), or of other dtypes and shapes.
  std::vector<Tensor> find(const std::string& key, std::span<const TensorInfo> infos) const;
  // Appears whole or not at all; what cannot be written is not kept. Beyond `limit` bytes in the
  // directory the oldest results go.
  void keep(const std::string& key, std::span<const TensorInfo> infos,
            std::span<const Tensor> outputs) const;

  // ${XDG_CACHE_HOME:-~/.cache}/tenonnx/results; empty where neither is known.
  static std::filesystem::path default_directory();
  static constexpr std::uint64_t kLimit = 1u << 30;
  void set_limit(std::uint64_t limit) { limit_ = limit; }

 private:
  std::filesystem::path directory_;
  std::string subject_;
  std::uint64_t limit_ = kLimit;
};

}  // namespace tenonnx
