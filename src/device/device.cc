// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "device/device.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <system_error>

#include "base/files.h"
#include "base/json.h"
#include "base/own_directory.h"
#include "base/status.h"
#include "device/read.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

// schema.json lies beside the device files and is none.
constexpr std::string_view kSchemaName = "schema";

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<fs::path> device_directories() {
  std::vector<fs::path> directories;
  if (const char* list = std::getenv("TENONNX_DEVICES")) {
    std::string_view rest = list;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) directories.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (const fs::path beside = own_directory(); !beside.empty())
    directories.push_back((beside / "../share/tenonnx/devices").lexically_normal());
#ifdef TENONNX_DEFAULT_DEVICES_DIR
  directories.emplace_back(TENONNX_DEFAULT_DEVICES_DIR);
#endif
  return directories;
}

std::vector<std::string> device_names() {
  std::set<std::string> names;
  for (const fs::path& directory : device_directories()) {
    std::error_code error;
    for (fs::directory_iterator it(directory, error), end; !error && it != end;
         it.increment(error)) {
      const fs::path& file = it->path();
      const std::string name = file.stem().string();
      if (file.extension() == ".json" && is_device_name(name) && name != kSchemaName)
        names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> target_names() {
  std::vector<std::string> names = device_names();
  std::erase_if(names, [](const std::string& name) {
    const auto device = find_device(name);
    return !device.ok() || !device->is_target();
  });
  return names;
}

Result<Device> find_device(std::string_view name) {
  if (!is_device_name(name) || name == kSchemaName) {
    return InvalidArgument(
        "'{}' is not the name of a device: lower-case letters, digits, '.', '_' and '-', without "
        "'..' and '/'. There are: {}",
        name, joined(device_names()));
  }
  for (const fs::path& directory : device_directories()) {
    const fs::path file = directory / (std::string(name) + ".json");
    std::error_code error;
    if (fs::exists(file, error)) return read_device(file);
  }
  std::string searched;
  for (const fs::path& directory : device_directories())
    searched += (searched.empty() ? "" : ", ") + directory.string();
  return NotFound(
      "no device '{}': there are {}. Searched, in this order: {}. To add a directory of device "
      "files, name it in TENONNX_DEVICES (several with ':' between them): it goes first",
      name, joined(device_names()), searched);
}

Result<std::string> Device::executor_for(std::string_view segment) const {
  auto role = roles.find(std::string(segment));
  if (role == roles.end()) role = roles.find("default");
  if (role != roles.end()) return role->second;
  if (roles.empty()) {
    return InvalidArgument(
        "device '{}' ({}) is not a target: it has no \"roles\" that say where a segment runs", name,
        file.string());
  }
  std::vector<std::string> known;
  for (const auto& [key, address] : roles) known.push_back(key);
  return NotFound("target '{}' ({}) has no role for segment '{}' and no \"default\": it has {}",
                  name, file.string(), segment, joined(known));
}

double largest_kept(const Arithmetic& arithmetic, const Overflow& overflow) {
  double limit = std::numeric_limits<double>::infinity();
  if (arithmetic.storage == DType::kFloat16) limit = 65504.0;
  if (arithmetic.storage == DType::kBFloat16) limit = 0x1.FEp127;
  if (overflow.kind == Overflow::Kind::kSaturate) limit = overflow.max;
  return limit;
}

std::int64_t largest_exact_index(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return std::int64_t{1} << 24;
    case DType::kFloat16:
      return 1 << 11;
    case DType::kBFloat16:
      return 1 << 8;
    case DType::kInt64:
      return std::numeric_limits<std::int64_t>::max();
    default:
      return std::numeric_limits<std::int32_t>::max();
  }
}

}  // namespace tenonnx
