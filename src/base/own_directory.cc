// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/own_directory.h"

#include <dlfcn.h>
#include <link.h>

#include <system_error>

namespace tenonnx {

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

}  // namespace tenonnx
