// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "device/arithmetic_hint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

namespace tenonnx {

std::string no_arithmetic(const Device& device) {
  std::string text =
      fmt::format("device '{}' ({}) has no arithmetic section", device.name, device.file.string());
  constexpr std::string_view kSim = "sim:";
  for (const auto& [segment, address] : device.roles)
    if (address.starts_with(kSim) && find_device(address.substr(kSim.size())).ok())
      return text + fmt::format(": it is a target that runs {}; name '{}'", address,
                                address.substr(kSim.size()));
  std::vector<std::string> names;
  for (const std::string& name : device_names())
    if (const auto other = find_device(name); other.ok() && other->arithmetic)
      names.push_back(name);
  return text + (names.empty() ? std::string("; no device file has one")
                               : fmt::format("; these have one: {}", fmt::join(names, ", ")));
}

}  // namespace tenonnx
