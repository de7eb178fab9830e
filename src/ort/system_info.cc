// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/system_info.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/common.h>
#include <onnx/common/version.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "model/model.h"
#include "ort/library.h"
#include "tenonnx/base.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNotAvailable = "not available";

// The first line, without the NUL that device-tree files end with; none where the file is missing
// or empty. Files in /proc and /sys have no size, so they are read as streams.
std::optional<std::string> first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  line.erase(std::find(line.begin(), line.end(), '\0'), line.end());
  if (line.empty()) return std::nullopt;
  return line;
}

// "key : value" and "key=value" files.
std::map<std::string, std::string> read_pairs(const fs::path& path, char separator) {
  const auto trim = [](const std::string& text) {
    const auto first = text.find_first_not_of(" \t\"");
    if (first == std::string::npos) return std::string();
    return text.substr(first, text.find_last_not_of(" \t\"\r") - first + 1);
  };
  std::map<std::string, std::string> pairs;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find(separator);
    if (at == std::string::npos) continue;
    pairs.emplace(trim(line.substr(0, at)), trim(line.substr(at + 1)));  // the first CPU's is kept
  }
  return pairs;
}

std::string cpu_model(const fs::path& root) {
  const auto info = read_pairs(root / "proc/cpuinfo", ':');
  if (auto it = info.find("model name"); it != info.end()) return it->second;
  // aarch64 kernels print no model name: the board's name and the core's numbers instead.
  std::string text = first_line(root / "proc/device-tree/model").value_or("");
  const auto implementer = info.find("CPU implementer");
  const auto part = info.find("CPU part");
  if (implementer != info.end() && part != info.end()) {
    text += fmt::format("{}implementer {} part {}", text.empty() ? "" : ", ", implementer->second,
                        part->second);
  }
  return text.empty() ? kNotAvailable : text;
}

struct Cores {
  int physical = 0;
  int logical = 0;
};

Cores count_cores(const fs::path& root) {
  Cores cores;
  std::set<std::pair<std::string, std::string>> physical;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root / "sys/devices/system/cpu", ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("cpu") || name.size() == 3 ||
        name.find_first_not_of("0123456789", 3) != std::string::npos)
      continue;
    if (first_line(entry.path() / "online").value_or("1") == "0") continue;
    ++cores.logical;
    const auto core = first_line(entry.path() / "topology/core_id");
    const auto package = first_line(entry.path() / "topology/physical_package_id");
    // Where the kernel does not say, a logical core counts as a physical one.
    physical.emplace(package.value_or("?"), core.value_or(name));
  }
  cores.physical = static_cast<int>(physical.size());
  return cores;
}

std::string affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return kNotAvailable;
  return std::to_string(CPU_COUNT(&set));
}

// The directories of this process's control group (version 2), from its own up to the root: a limit
// may stand at any of them.
std::vector<fs::path> control_groups(const fs::path& root) {
  std::vector<fs::path> found;
  const fs::path top = root / "sys/fs/cgroup";
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("0::/")) continue;
    for (fs::path own = fs::path(line.substr(4)); !own.empty(); own = own.parent_path())
      found.push_back(top / own);
  }
  found.push_back(top);
  return found;
}

// Cores' worth of time that the control group grants, of version 2 or 1.
std::string cpu_limit(const fs::path& root) {
  double limit = std::numeric_limits<double>::infinity();
  for (const fs::path& group : control_groups(root)) {
    std::istringstream in(first_line(group / "cpu.max").value_or("max"));  // "200000 100000"
    double quota = 0;
    double period = 0;
    if (in >> quota >> period && period > 0) limit = std::min(limit, quota / period);
  }
  const auto number = [&](const char* file) {
    const auto line = first_line(root / "sys/fs/cgroup/cpu" / file);
    return line ? std::strtod(line->c_str(), nullptr) : -1.0;
  };
  const double quota = number("cpu.cfs_quota_us");  // -1: none
  const double period = number("cpu.cfs_period_us");
  if (quota > 0 && period > 0) limit = std::min(limit, quota / period);
  return std::isinf(limit) ? "none" : fmt::format("{:.2f}", limit);
}

std::string governor(const fs::path& root) {
  std::set<std::string> governors;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root / "sys/devices/system/cpu", ignored)) {
    if (auto line = first_line(entry.path() / "cpufreq/scaling_governor")) governors.insert(*line);
  }
  if (governors.empty()) return kNotAvailable;
  return fmt::format("{}", fmt::join(governors, ", "));
}

std::string memory(const fs::path& root) {
  const auto info = read_pairs(root / "proc/meminfo", ':');
  const auto it = info.find("MemTotal");
  if (it == info.end()) return kNotAvailable;
  // In kB, which the kernel means as KiB.
  std::string text =
      fmt::format("{:.1f} GiB", std::strtod(it->second.c_str(), nullptr) / (1024.0 * 1024.0));
  double limit = std::numeric_limits<double>::infinity();
  for (const fs::path& group : control_groups(root)) {
    const auto line = first_line(group / "memory.max");
    if (line && *line != "max") limit = std::min(limit, std::strtod(line->c_str(), nullptr));
  }
  if (!std::isinf(limit))
    text += fmt::format(" (control group limit {:.1f} GiB)", limit / (1024.0 * 1024.0 * 1024.0));
  return text;
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}", __clang_version__);
#elif defined(__GNUC__)
  return fmt::format("g++ {}", __VERSION__);
#else
  return kNotAvailable;
#endif
}

}  // namespace

Facts version_facts() {
  Facts facts;
  facts.emplace_back("tenonnx", std::string(version()));
  const auto runtime = onnxruntime();
  if (runtime.ok()) {
    facts.emplace_back("onnxruntime", (*runtime)->version);
    facts.emplace_back("onnxruntime path", (*runtime)->path.string());
    facts.emplace_back("onnxruntime build", (*runtime)->build_info);
  } else {
    facts.emplace_back("onnxruntime",
                       fmt::format("{}: {}", kNotAvailable, runtime.status().message()));
  }
  facts.emplace_back("onnx", ONNX_NAMESPACE::LAST_RELEASE_VERSION);
  facts.emplace_back("highest opset", std::to_string(kMaxOpset));
  facts.emplace_back("highest IR version", std::to_string(kMaxIrVersion));
  // PROTOBUF_VERSION is major * 1000000 + minor * 1000 + patch since 3.0: 3021012 is 3.21.12.
  facts.emplace_back("protobuf",
                     google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION));
  facts.emplace_back("compiler", compiler());
  return facts;
}

Facts machine_facts(const fs::path& root) {
  Facts facts;
  const auto release = read_pairs(root / "etc/os-release", '=');
  const auto pretty = release.find("PRETTY_NAME");
  facts.emplace_back("system", pretty == release.end() ? kNotAvailable : pretty->second);
  utsname names{};
  if (uname(&names) == 0) {
    facts.emplace_back("kernel", fmt::format("{} {}", names.sysname, names.release));
    facts.emplace_back("architecture", names.machine);
  }
  facts.emplace_back("cpu", cpu_model(root));
  const Cores cores = count_cores(root);
  facts.emplace_back("physical cores",
                     cores.logical > 0 ? std::to_string(cores.physical) : kNotAvailable);
  facts.emplace_back("logical cores",
                     cores.logical > 0 ? std::to_string(cores.logical) : kNotAvailable);
  facts.emplace_back("cores under affinity", affinity());
  facts.emplace_back("control group cpu limit", cpu_limit(root));
  facts.emplace_back("governor", governor(root));
  facts.emplace_back("memory", memory(root));
  return facts;
}

Facts system_info() {
  Facts facts = version_facts();
  for (auto& fact : machine_facts()) facts.push_back(std::move(fact));
  return facts;
}

std::string fact_of(const Facts& facts, std::string_view name) {
  for (const auto& [key, value] : facts)
    if (key == name) return value;
  return kNotAvailable;
}

}  // namespace tenonnx
