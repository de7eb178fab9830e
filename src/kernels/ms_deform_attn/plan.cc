// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <limits>
#include <utility>

#include "kernels/ms_deform_attn/ms_deform_attn.h"

namespace tenonnx {

std::string MSDeformPlan::check(const std::vector<MSDeformLevel>& levels,
                                const MSDeformSizes& sizes) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  if (levels.empty()) return "there is no level: spatial_shapes is empty";
  if (sizes.batch < 0 || sizes.queries < 0) return "a negative batch or number of queries";
  if (sizes.heads < 1 || sizes.channels < 1)
    return number(sizes.heads) + " heads of " + number(sizes.channels) +
           " channels: at least 1 of each is needed";
  // Pixels of one batch element times elements of a pixel are 32-bit offsets; the largest sizes of
  // published models reach 2^24.
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (sizes.heads > kMost / sizes.channels) return "heads times channels exceeds 2^31";
  const std::int64_t stride = sizes.heads * sizes.channels;
  std::int64_t keys = 0, points = 0;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const auto& [height, width, count] = levels[l];
    const std::string where = "level " + number(static_cast<std::int64_t>(l)) + ": ";
    if (height < 1 || width < 1)
      return where + number(height) + " x " + number(width) + " pixels: at least 1 x 1 is needed";
    if (count < 0) return where + number(count) + " points";
    // Coordinates are float32: whole pixels up to 2^24.
    constexpr std::int64_t kLargest = 1 << 24;
    if (height > kLargest || width > kLargest || count > kLargest)
      return where + "a side or a number of points beyond 2^24";
    if (height * width > kMost / stride - keys)
      return where + "the values of one image exceed 2^31 elements";
    keys += height * width;
    points += count;
  }
  if (points < 1) return "no level has a point";
  if (points > kMost / 64 / sizes.heads) return "heads times points exceeds 2^25";
  return {};
}

MSDeformPlan::MSDeformPlan(std::vector<MSDeformLevel> levels, const MSDeformSizes& sizes,
                           MSDeformMode mode)
    : levels_(std::move(levels)), sizes_(sizes), mode_(mode) {
  Tables head;
  const std::int64_t stride = sizes.heads * sizes.channels;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    const auto& [height, width, count] = levels_[l];
    for (std::int64_t p = 0; p < count; ++p) {
      head.width.push_back(static_cast<float>(width));
      head.height.push_back(static_cast<float>(height));
      head.start.push_back(static_cast<std::int32_t>(keys_ * stride));
      head.row.push_back(static_cast<std::int32_t>(width * stride));
      head.level.push_back(static_cast<std::int32_t>(l));
    }
    points_ += count;
    keys_ += height * width;
  }
  const auto repeat = [&](const auto& from, auto& to) {
    for (std::int64_t m = 0; m < sizes.heads; ++m) to.insert(to.end(), from.begin(), from.end());
    to.insert(to.end(), kPadding, from.front());
  };
  repeat(head.width, tables_.width);
  repeat(head.height, tables_.height);
  repeat(head.start, tables_.start);
  repeat(head.row, tables_.row);
  tables_.level = std::move(head.level);
}

}  // namespace tenonnx
