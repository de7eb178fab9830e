// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/options.h"

#include <algorithm>
#include <charconv>

#include "base/status.h"

namespace tenonnx {

Status only_options(std::string_view pass, const PassOptions& options,
                    std::initializer_list<std::string_view> allowed) {
  for (const auto& [name, value] : options) {
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
    std::string list;
    for (const std::string_view a : allowed)
      list += fmt::format("{}{}", list.empty() ? "" : ", ", a);
    return InvalidArgument("{}: unknown option '{}'; allowed: {}", pass, name,
                           list.empty() ? "none" : list);
  }
  return {};
}

Result<std::int64_t> count_option(std::string_view pass, const PassOptions& options,
                                  std::string_view name, std::int64_t fallback) {
  const auto found = options.find(std::string(name));
  if (found == options.end()) return fallback;
  const std::string& text = found->second;
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  return InvalidArgument("{}: {} must be a whole number from 0, got '{}'", pass, name, text);
}

}  // namespace tenonnx
