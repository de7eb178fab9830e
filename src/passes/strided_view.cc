// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/strided_view.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tenonnx {
namespace {

std::int64_t size_of(const std::vector<StrideMode>& modes) {
  std::int64_t size = 1;
  for (const StrideMode& mode : modes) size *= mode.size;
  return size;
}

// Takes the innermost modes of `rest` that together have `size` elements, and puts them in front of
// `taken`; false where no split of a mode gives that.
bool take_inner(std::vector<StrideMode>& rest, std::int64_t size, std::vector<StrideMode>& taken) {
  while (size > 1) {
    if (rest.empty()) return false;
    StrideMode& mode = rest.back();
    if (size % mode.size == 0) {
      size /= mode.size;
      taken.insert(taken.begin(), mode);
      rest.pop_back();
    } else if (mode.size % size == 0) {
      taken.insert(taken.begin(), {size, mode.stride});
      mode = {mode.size / size, mode.stride * size};
      size = 1;
    } else {
      return false;
    }
  }
  return true;
}

// Elements [start, start + length) of an axis, whose modes are coalesced.
bool slice_modes(std::vector<StrideMode>& modes, std::int64_t& offset, std::int64_t start,
                 std::int64_t length) {
  if (start == 0 && length == size_of(modes)) return true;
  if (modes.empty()) return false;
  const StrideMode outer = modes.front();
  std::vector<StrideMode> inner(modes.begin() + 1, modes.end());
  const std::int64_t row = size_of(inner);
  if (start % row == 0 && length % row == 0) {
    offset += start / row * outer.stride;
    modes.front().size = length / row;
    return true;
  }
  if (start / row != (start + length - 1) / row) return false;
  offset += start / row * outer.stride;
  if (!slice_modes(inner, offset, start % row, length)) return false;
  modes = std::move(inner);
  return true;
}

}  // namespace

std::vector<StrideMode> coalesced(const std::vector<StrideMode>& modes) {
  std::vector<StrideMode> result;
  for (const StrideMode& mode : modes) {
    if (mode.size == 1) continue;
    if (!result.empty() && result.back().stride == mode.size * mode.stride) {
      result.back() = {result.back().size * mode.size, mode.stride};
    } else {
      result.push_back(mode);
    }
  }
  return result;
}

StridedView StridedView::of(const Shape& shape) {
  StridedView view;
  view.axes_.resize(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0; stride *= shape[i])
    if (shape[i] > 1) view.axes_[i] = {{shape[i], stride}};
  return view;
}

StridedView StridedView::from_axes(std::int64_t offset, std::vector<std::vector<StrideMode>> axes) {
  StridedView view;
  view.offset_ = offset;
  for (auto& axis : axes) view.axes_.push_back(coalesced(axis));
  return view;
}

std::int64_t StridedView::dimension(std::size_t i) const { return size_of(axes_[i]); }

Shape StridedView::shape() const {
  Shape shape;
  for (const auto& axis : axes_) shape.push_back(size_of(axis));
  return shape;
}

bool StridedView::reshape(const Shape& shape) {
  std::vector<StrideMode> rest = run();
  std::vector<std::vector<StrideMode>> axes(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;)
    if (shape[i] < 1 || !take_inner(rest, shape[i], axes[i])) return false;
  if (!rest.empty()) return false;
  axes_ = std::move(axes);
  return true;
}

bool StridedView::transpose(const std::vector<std::int64_t>& perm) {
  if (perm.size() != axes_.size()) return false;
  std::vector<std::vector<StrideMode>> axes;
  for (const std::int64_t from : perm) {
    if (from < 0 || from >= static_cast<std::int64_t>(axes_.size())) return false;
    axes.push_back(axes_[static_cast<std::size_t>(from)]);
  }
  axes_ = std::move(axes);
  return true;
}

bool StridedView::slice(std::size_t axis, std::int64_t start, std::int64_t length,
                        std::int64_t step) {
  if (axis >= axes_.size() || start < 0 || length < 1) return false;
  std::vector<StrideMode> modes = coalesced(axes_[axis]);
  if (start + (length - 1) * step >= size_of(modes) || start + (length - 1) * step < 0)
    return false;
  std::int64_t offset = offset_;
  if (step == 1 || length == 1) {
    if (!slice_modes(modes, offset, start, length)) return false;
  } else {
    if (modes.size() != 1) return false;
    offset += start * modes.front().stride;
    modes = {{length, modes.front().stride * step}};
  }
  axes_[axis] = coalesced(modes);
  offset_ = offset;
  return true;
}

bool StridedView::broadcast(const Shape& shape) {
  if (shape.size() < axes_.size()) return false;
  std::vector<std::vector<StrideMode>> axes(shape.size() - axes_.size());
  axes.insert(axes.end(), axes_.begin(), axes_.end());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t size = size_of(axes[i]);
    if (size == shape[i]) continue;
    if (size != 1 || shape[i] < 1) return false;
    axes[i] = {{shape[i], 0}};
  }
  axes_ = std::move(axes);
  return true;
}

bool StridedView::erase_axis(std::size_t axis) {
  if (axis >= axes_.size() || size_of(axes_[axis]) != 1) return false;
  axes_.erase(axes_.begin() + static_cast<std::ptrdiff_t>(axis));
  return true;
}

std::vector<StrideMode> StridedView::run() const {
  std::vector<StrideMode> modes;
  for (const auto& axis : axes_) modes.insert(modes.end(), axis.begin(), axis.end());
  return coalesced(modes);
}

bool StridedView::same_order(const StridedView& other) const {
  return offset_ == other.offset_ && run() == other.run();
}

bool StridedView::is_whole(std::int64_t size) const {
  const std::vector<StrideMode> modes = run();
  if (offset_ != 0) return false;
  return modes.empty() ? size == 1 : modes == std::vector<StrideMode>{{size, 1}};
}

std::optional<StridedView> StridedView::joined(const std::vector<StridedView>& parts,
                                               std::size_t axis) {
  if (parts.empty() || axis >= parts.front().rank()) return std::nullopt;
  if (parts.size() == 1) return parts.front();
  const StridedView& first = parts.front();
  for (const StridedView& part : parts) {
    if (part.rank() != first.rank()) return std::nullopt;
    for (std::size_t i = 0; i < first.rank(); ++i)
      if (i != axis && coalesced(part.axes_[i]) != coalesced(first.axes_[i])) return std::nullopt;
  }
  // Runs of one stride that follow one another: one run. A run of one element fits any stride.
  std::int64_t stride = 0, total = 0;
  bool one_run = true;
  for (const StridedView& part : parts) {
    const std::vector<StrideMode> modes = coalesced(part.axes_[axis]);
    if (modes.size() > 1 || (stride != 0 && !modes.empty() && modes.front().stride != stride))
      one_run = false;
    if (!modes.empty()) stride = modes.front().stride;
  }
  if (stride == 0) stride = parts[1].offset_ - first.offset_;
  for (const StridedView& part : parts) {
    one_run = one_run && part.offset_ == first.offset_ + total * stride;
    total += size_of(part.axes_[axis]);
  }
  StridedView result = first;
  if (one_run) {
    result.axes_[axis] = {{total, stride}};
    return result;
  }
  // Equal parts at equal distances: an outer mode.
  const std::int64_t step = parts[1].offset_ - first.offset_;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (coalesced(parts[i].axes_[axis]) != coalesced(first.axes_[axis]) ||
        parts[i].offset_ != first.offset_ + static_cast<std::int64_t>(i) * step)
      return std::nullopt;
  result.axes_[axis].insert(result.axes_[axis].begin(),
                            {static_cast<std::int64_t>(parts.size()), step});
  return result;
}

std::optional<Rearrangement> rearrangement(const StridedView& view, std::int64_t tensor_size) {
  if (view.offset() != 0) return std::nullopt;
  const std::vector<StrideMode> modes = view.run();
  std::vector<std::int64_t> order(modes.size());  // of the modes, by falling stride
  std::iota(order.begin(), order.end(), 0);
  const auto mode = [&](std::int64_t i) { return modes[static_cast<std::size_t>(i)]; };
  std::sort(order.begin(), order.end(),
            [&](std::int64_t a, std::int64_t b) { return mode(a).stride > mode(b).stride; });
  Rearrangement result;
  std::int64_t stride = tensor_size;
  result.perm.resize(modes.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    const StrideMode m = mode(order[place]);
    if (m.stride * m.size != stride) return std::nullopt;
    stride = m.stride;
    result.split.push_back(m.size);
    result.perm[static_cast<std::size_t>(order[place])] = static_cast<std::int64_t>(place);
  }
  if (stride != 1) return std::nullopt;
  return result;
}

}  // namespace tenonnx
