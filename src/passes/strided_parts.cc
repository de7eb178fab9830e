// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/strided_parts.h"

#include <algorithm>

namespace tenonnx {

bool cut_at_dimensions(const Shape& space, StrideMode mode, std::int64_t other,
                       std::vector<StridePart>& parts) {
  while (mode.size > 1) {
    std::int64_t step = 1;
    std::size_t dim = space.size();
    for (std::size_t i = space.size(); i-- > 0; step *= space[i])
      if (space[i] > 1 && mode.stride >= step && mode.stride < step * space[i]) {
        dim = i;
        break;
      }
    if (dim == space.size() || mode.stride % step != 0) return false;
    const std::int64_t room = step * space[dim] / mode.stride;
    if (step * space[dim] % mode.stride != 0) return false;
    const std::int64_t size = std::min(room, mode.size);
    if (mode.size % size != 0) return false;
    parts.push_back({dim, size, mode.stride / step, other});
    mode = {mode.size / size, mode.stride * size};
    other *= size;
  }
  return true;
}

std::optional<std::vector<std::pair<StrideMode, std::int64_t>>> together(const StridedView& a,
                                                                         const StridedView& b) {
  std::vector<std::pair<StrideMode, std::int64_t>> pairs;
  for (std::size_t i = 0; i < a.rank(); ++i) {
    std::vector<StrideMode> left = coalesced(a.axis(i)), right = coalesced(b.axis(i));
    while (!left.empty() && !right.empty()) {
      StrideMode& l = left.back();
      StrideMode& r = right.back();
      const std::int64_t size = std::min(l.size, r.size);
      if (l.size % size != 0 || r.size % size != 0) return std::nullopt;
      pairs.push_back({{size, l.stride}, r.stride});
      l = {l.size / size, l.stride * size};
      r = {r.size / size, r.stride * size};
      if (l.size == 1) left.pop_back();
      if (r.size == 1) right.pop_back();
    }
    if (!left.empty() || !right.empty()) return std::nullopt;
  }
  return pairs;
}

}  // namespace tenonnx
