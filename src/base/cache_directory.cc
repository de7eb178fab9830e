// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/cache_directory.h"

#include <cstdlib>

namespace tenonnx {

std::filesystem::path cache_directory(std::string_view name) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::filesystem::path(cache) / "tenonnx" / name;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return {};
  return std::filesystem::path(home) / ".cache" / "tenonnx" / name;
}

}  // namespace tenonnx
