// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/own_directory.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <system_error>
#include <vector>

#include "base/status.h"

namespace tenonnx {
namespace fs = std::filesystem;

std::filesystem::path own_directory() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  Dl_info info{};
  link_map* map = nullptr;
  // The executable's own entry has an empty name (dladdr would give argv[0], which may be a bare
  // word that was found along PATH).
  if (dladdr1(reinterpret_cast<const void*>(&own_directory), &info, reinterpret_cast<void**>(&map),
              RTLD_DL_LINKMAP) != 0 &&
      map && map->l_name && *map->l_name) {
    const fs::path file = fs::canonical(map->l_name, ignored);
    if (!file.empty()) return file.parent_path();
  }
  return fs::canonical("/proc/self/exe", ignored).parent_path();
}

Result<fs::path> find_own_library(std::string_view what, const char* file, const char* environment,
                                  const fs::path& configured) {
  std::vector<fs::path> candidates;
  if (const char* named = std::getenv(environment); named != nullptr && *named != '\0') {
    candidates = {named};
  } else {
    const fs::path here = own_directory();
    candidates = {here / file, here / ".." / "lib" / file, here / "lib" / file};
    if (!configured.empty()) candidates.push_back(configured);
  }
  std::string tried;
  for (const fs::path& candidate : candidates) {
    std::error_code error;
    if (fs::exists(candidate, error)) return fs::canonical(candidate, error);
    tried += "\n  " + candidate.string();
  }
  return NotFound("{} is not there: set {} to {}. Tried:{}", what, environment, file, tried);
}

}  // namespace tenonnx
