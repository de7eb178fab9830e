// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <tuple>

namespace tenonnx {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::string letters_and_digits(std::string_view text) {
  std::string kept;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      kept += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return kept;
}

}  // namespace

std::string nearest_names(std::string_view name, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  // A piece of a name is what its user remembers of it. The distance to a long name says nothing
  // then: every short one is nearer.
  constexpr std::size_t kLeastPart = 3;
  enum Kind { kRewritten, kContains, kOther };
  const std::string plain = letters_and_digits(name);
  std::vector<std::tuple<Kind, std::size_t, std::string_view>> ranked;
  ranked.reserve(names.size());
  for (const std::string& other : names) {
    const std::string other_plain = letters_and_digits(other);
    const Kind kind = !plain.empty() && other_plain == plain ? kRewritten
                      : plain.size() >= kLeastPart && other_plain.find(plain) != std::string::npos
                          ? kContains
                          : kOther;
    ranked.emplace_back(kind, kind == kRewritten ? 0 : edit_distance(name, other), other);
  }
  const std::size_t shown = std::min(kShown, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(shown),
                    ranked.end());
  std::string text;
  for (std::size_t i = 0; i < shown; ++i)
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", std::get<2>(ranked[i]));
  if (ranked.size() > shown) text += fmt::format(" and {} more", ranked.size() - shown);
  return text;
}

}  // namespace tenonnx
