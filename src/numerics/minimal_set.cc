// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/minimal_set.h"

#include <algorithm>

#include "base/status.h"

namespace tenonnx {
namespace {

// Part `i` of `n` parts of nearly equal length.
std::pair<std::size_t, std::size_t> part(std::size_t size, std::size_t n, std::size_t i) {
  return {size * i / n, size * (i + 1) / n};
}

}  // namespace

Result<MinimalSet> minimize_set(std::vector<int> start, const SetTest& holds) {
  MinimalSet out{std::move(start), false};
  std::size_t parts = 2;
  while (out.set.size() > 1) {
    parts = std::min(parts, out.set.size());
    bool reduced = false;
    // A part alone, then all but one; with two parts these are the same.
    for (int complements = 0; complements < (parts == 2 ? 1 : 2) && !reduced; ++complements) {
      for (std::size_t i = 0; i < parts && !reduced; ++i) {
        // Of the complements the one without the unlikeliest part first.
        const auto [begin, end] = part(out.set.size(), parts, complements ? parts - 1 - i : i);
        const auto from = out.set.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto to = out.set.begin() + static_cast<std::ptrdiff_t>(end);
        std::vector<int> tried(from, to);
        if (complements) {
          tried.assign(out.set.begin(), from);
          tried.insert(tried.end(), to, out.set.end());
        }
        TENONNX_ASSIGN_OR_RETURN(const std::optional<bool> answer, holds(tried));
        if (!answer) return out;
        if (!*answer) continue;
        out.set = std::move(tried);
        parts = complements ? std::max<std::size_t>(parts - 1, 2) : 2;
        reduced = true;
      }
    }
    if (reduced) continue;
    if (parts == out.set.size()) break;
    parts = std::min(parts * 2, out.set.size());
  }
  out.minimal = true;
  return out;
}

}  // namespace tenonnx
