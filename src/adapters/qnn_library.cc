// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/qnn_library.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "base/files.h"
#include "base/status.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr const char* kHowToGet =
    "'./dev vendor qnn' installs it (onnxruntime-qnn, under the Qualcomm AI Stack License); or "
    "name the "
    "file by library=FILE in the address, or by the environment variable TENONNX_QNN";

// VERSION of qnn-VERSION as numbers, so that 2.10 is newer than 2.9.
std::array<int, 3> numbers_of(const std::string& version) {
  std::array<int, 3> out = {};
  std::sscanf(version.c_str(), "%d.%d.%d", &out[0], &out[1], &out[2]);
  return out;
}

// "__version__ = '2.7.0'" of the package's own file.
std::string value_of(const std::string& text, std::string_view key) {
  const std::size_t at = text.find(std::string(key) + " = '");
  if (at == std::string::npos) return "unknown";
  const std::size_t begin = at + key.size() + 4;
  return text.substr(begin, text.find('\'', begin) - begin);
}

QnnLibrary described(const fs::path& file) {
  QnnLibrary out{file, "unknown", "unknown"};
  const auto info = read_file(file.parent_path() / "build_and_package_info.py");
  if (!info.ok()) return out;
  out.version = value_of(*info, "__version__");
  out.qnn = value_of(*info, "qnn_version");
  return out;
}

Result<QnnLibrary> from_named(const fs::path& named, std::string_view by) {
  std::error_code error;
  if (fs::is_directory(named, error)) {
    for (const fs::path& file :
         {named / kQnnLibraryFile, named / "onnxruntime_qnn" / kQnnLibraryFile})
      if (fs::exists(file, error)) return described(file);
    return NotFound("{}'{}' is a directory without {} (nor in its onnxruntime_qnn/)", by,
                    named.string(), kQnnLibraryFile);
  }
  if (fs::exists(named, error)) return described(named);
  return NotFound("{}'{}' does not exist; {}", by, named.string(), kHowToGet);
}

fs::path default_cache() {
  utsname machine{};
  if (uname(&machine) != 0) return {};
  if (const char* cache = std::getenv("TENONNX_CACHE"); cache != nullptr && *cache != '\0')
    return fs::path(cache) / machine.machine;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return {};
  return fs::path(home) / ".cache" / "tenonnx" / machine.machine;
}

}  // namespace

Result<QnnLibrary> find_qnn_library(const fs::path& named) {
  const char* environment = std::getenv(kQnnEnvironment);
  return find_qnn_library(QnnSearch{
      named, environment != nullptr ? std::optional<std::string>(environment) : std::nullopt,
      default_cache()});
}

Result<QnnLibrary> find_qnn_library(const QnnSearch& search) {
  if (!search.named.empty()) return from_named(search.named, "library=");
  if (search.environment) return from_named(*search.environment, "TENONNX_QNN=");
  std::error_code error;
  std::vector<fs::path> found;
  if (!search.cache.empty())
    for (const auto& entry : fs::directory_iterator(search.cache, error)) {
      const std::string name = entry.path().filename().string();
      // An installation that was killed half-way has no stamp, and lies under another name.
      if (name.starts_with("qnn-") && fs::exists(entry.path() / ".complete", error))
        found.push_back(entry.path());
    }
  if (found.empty())
    return NotFound("Qualcomm's provider ({}) is not installed: {}", kQnnLibraryFile, kHowToGet);
  const auto version = [](const fs::path& path) {
    return numbers_of(path.filename().string().substr(4));
  };
  const auto newest = std::max_element(
      found.begin(), found.end(),
      [&](const fs::path& a, const fs::path& b) { return version(a) < version(b); });
  return from_named(*newest, "the installation ");
}

Status check_qnn_runtime(const std::string& version) {
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 && major == 1 && minor >= 29 &&
      minor <= 31)
    return {};
  return FailedPrecondition(
      "Qualcomm's provider works with ONNX Runtime 1.29 to 1.31, here is {}; set "
      "TENONNX_ONNXRUNTIME to "
      "one of those",
      version);
}

}  // namespace tenonnx
