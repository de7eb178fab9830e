// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/library.h"

#include <dlfcn.h>
#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <system_error>

#include "base/log.h"
#include "base/own_directory.h"
#include "base/status.h"
#include "ort/messages.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

static_assert(ORT_API_VERSION >= kOrtApiVersion, "build against the headers of ONNX Runtime 1.29");

constexpr const char* kSoName = "libonnxruntime.so.1";
constexpr const char* kEnvironment = "TENONNX_ONNXRUNTIME";

OrtEnv* g_env = nullptr;  // written once, under the guard of the static in onnxruntime()
std::atomic<const OrtApiBase*> g_adopted = nullptr;

// The libraries in a directory: the usual names first, then a versioned file alone, which is how
// the Python wheel ships it.
void add_from_directory(const fs::path& directory, std::vector<fs::path>& found) {
  std::error_code ignored;
  for (const char* name : {kSoName, "libonnxruntime.so"}) {
    if (fs::is_regular_file(directory / name, ignored)) {
      found.push_back(directory / name);
      return;
    }
  }
  std::vector<fs::path> versioned;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().filename().string().starts_with("libonnxruntime.so."))
      versioned.push_back(entry.path());
  }
  std::sort(versioned.begin(), versioned.end());
  if (!versioned.empty()) found.push_back(versioned.back());
}

LibrarySearch default_search() {
  LibrarySearch search;
  if (const char* value = std::getenv(kEnvironment); value && *value) search.environment = value;
  const fs::path here = own_directory();
  search.directories = {here, here / ".." / "lib", here / "lib"};
#ifdef TENONNX_DEFAULT_ORT_LIBRARY
  search.configured = TENONNX_DEFAULT_ORT_LIBRARY;
#endif
  return search;
}

void ORT_API_CALL forward_log(void*, OrtLoggingLevel severity, const char* category, const char*,
                              const char* location, const char* message) {
  if (severity < ORT_LOGGING_LEVEL_WARNING) return;
  try {
    deliver_runtime_message(message);
    log_debug("onnxruntime [{}] {}: {}", category, location, message);
  } catch (...) {  // a C callback must not throw; losing a debug message is harmless
  }
}

// The environment of a library that is open.
Result<OnnxRuntime> start(const OrtApiBase& base, const fs::path& named) {
  OnnxRuntime opened;
  opened.path = named;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(base.GetApi), &info) != 0 && info.dli_fname) {
    std::error_code ignored;
    fs::path real = fs::canonical(info.dli_fname, ignored);
    if (!real.empty()) opened.path = std::move(real);
  }
  TENONNX_RETURN_IF_ERROR(check_library_version(base, opened.path));
  const OrtApi* api = base.GetApi(kOrtApiVersion);
  opened.version = base.GetVersionString();
  opened.build_info = api->GetBuildInfoString();
  OrtEnv* env = nullptr;
  OrtStatus* status = api->CreateEnvWithCustomLogger(forward_log, nullptr,
                                                     ORT_LOGGING_LEVEL_WARNING, "tenonnx", &env);
  if (status) {
    Status error = Internal("ONNX Runtime at '{}' cannot create its environment: {}",
                            opened.path.string(), api->GetErrorMessage(status));
    api->ReleaseStatus(status);
    return error;
  }
  Ort::InitApi(api);
  g_env = env;
  return opened;
}

Result<OnnxRuntime> open_library(const fs::path& candidate) {
  // The published builds of 1.29 send usage data over the network and leave mat-debug-PID.log and
  // .ses in TMPDIR, unless this says no before the environment is created. A value that is set
  // stays.
  setenv("ORT_DISABLE_TELEMETRY", "1", 0);
  // RTLD_LOCAL: a vendor's library may bring another ONNX Runtime into the same process.
  void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    return NotFound("{}", reason ? reason : "dlopen failed without a reason");
  }
  const auto get_base =
      reinterpret_cast<const OrtApiBase* (*)() noexcept>(dlsym(handle, "OrtGetApiBase"));
  if (!get_base) {
    dlclose(handle);
    return FailedPrecondition("'{}' has no symbol OrtGetApiBase: it is not ONNX Runtime",
                              candidate.string());
  }
  // The handle of a library that is too old stays open: its static state does not survive a
  // dlclose.
  return start(*get_base(), candidate);
}

Result<OnnxRuntime> open_first() {
  if (const OrtApiBase* adopted = g_adopted) return start(*adopted, {});
  TENONNX_ASSIGN_OR_RETURN(const auto candidates, library_candidates(default_search()));
  std::string tried;
  bool too_old = false;
  for (const fs::path& candidate : candidates) {
    auto opened = open_library(candidate);
    if (opened.ok()) return opened;
    if (opened.status().code() == StatusCode::kInternal) return opened;
    too_old |= opened.status().code() == StatusCode::kFailedPrecondition;
    tried += fmt::format("\n  {}: {}", candidate.string(), opened.status().message());
  }
  if (too_old && candidates.size() == 1) return open_library(candidates.front()).status();
  return Status(too_old ? StatusCode::kFailedPrecondition : StatusCode::kNotFound,
                fmt::format("no usable ONNX Runtime (1.{} or newer). Set {} to libonnxruntime.so.1 "
                            "or its directory, or install it for the loader. Tried:{}",
                            kOrtApiVersion, kEnvironment, tried));
}

}  // namespace

Result<std::vector<fs::path>> library_candidates(const LibrarySearch& search) {
  std::vector<fs::path> found;
  std::error_code ignored;
  if (search.environment) {
    const fs::path named = *search.environment;
    if (fs::is_directory(named, ignored)) {
      add_from_directory(named, found);
      if (found.empty()) add_from_directory(named / "lib", found);
      if (found.empty()) {
        return NotFound("{}='{}': no libonnxruntime.so.1 in this directory or its lib/",
                        kEnvironment, named.string());
      }
    } else if (fs::exists(named, ignored)) {
      found.push_back(named);
    } else {
      return NotFound(
          "{}='{}': no such file or directory; name libonnxruntime.so.1 or the "
          "directory that holds it",
          kEnvironment, named.string());
    }
    return found;
  }
  for (const fs::path& directory : search.directories) add_from_directory(directory, found);
  if (!search.configured.empty()) found.push_back(search.configured);
  found.emplace_back(kSoName);
  return found;
}

Status check_library_version(const OrtApiBase& base, const fs::path& path) {
  // GetApi(version) of a library that is too old writes a line to stderr and returns null, so the
  // version string is asked first where it can be read.
  const std::string version = base.GetVersionString();
  int major = 0;
  int minor = 0;
  const bool readable = std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2;
  const bool old_by_name = readable && (major < 1 || (major == 1 && minor < kOrtApiVersion));
  if (!old_by_name && base.GetApi(kOrtApiVersion)) return {};
  return FailedPrecondition(
      "ONNX Runtime at '{}' is version {}; 1.{} or newer is needed. Set {} to a newer one.",
      path.string(), version, kOrtApiVersion, kEnvironment);
}

Result<const OnnxRuntime*> onnxruntime() {
  static const Result<OnnxRuntime> opened = open_first();
  if (!opened.ok()) return opened.status();
  return &opened.value();
}

Status adopt_onnxruntime(const OrtApiBase& base) {
  const OrtApiBase* none = nullptr;
  if (!g_adopted.compare_exchange_strong(none, &base) && none != &base)
    return FailedPrecondition("another ONNX Runtime has loaded this library already");
  return onnxruntime().status();
}

OrtEnv* onnxruntime_env() { return onnxruntime().ok() ? g_env : nullptr; }

}  // namespace tenonnx
