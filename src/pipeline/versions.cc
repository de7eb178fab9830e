// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/versions.h"

#include <algorithm>
#include <charconv>

#include "base/status.h"

namespace tenonnx {
namespace {

std::vector<long> numbers(std::string_view text) {
  std::vector<long> parts;
  const char* at = text.data();
  const char* end = at + text.size();
  for (;;) {
    long value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc()) break;
    parts.push_back(value);
    if (next == end || *next != '.') break;
    at = next + 1;
  }
  return parts;
}

// "1.29.0", "1.30.0-dev": at least two numbers at the start, so that a hash is not one.
bool is_dotted(std::string_view text) { return numbers(text).size() >= 2; }

}  // namespace

int compare_versions(std::string_view a, std::string_view b) {
  std::vector<long> x = numbers(a), y = numbers(b);
  x.resize(std::max(x.size(), y.size()));
  y.resize(x.size());
  return x < y ? -1 : (x == y ? 0 : 1);
}

Status check_versions(const Versions& evidence, const Versions& present, std::string_view segment) {
  for (const auto& [name, here] : present) {
    const std::string own = fmt::format("{} of {}", name, segment);
    const auto find = [&](std::string_view key) {
      return std::find_if(evidence.begin(), evidence.end(),
                          [&](const auto& entry) { return entry.first == key; });
    };
    auto found = find(own);
    if (found == evidence.end()) found = find(name);
    if (found == evidence.end() || found->second == here) continue;
    const bool dotted = is_dotted(here) && is_dotted(found->second);
    if (dotted && compare_versions(here, found->second) >= 0) continue;
    return FailedPrecondition(
        "{} is {} here, the package was verified with {}: {}. Verify it again here, or switch the "
        "version check off",
        name, here, found->second,
        dotted ? "an older one is refused" : "what was proved may not hold");
  }
  return {};
}

}  // namespace tenonnx
