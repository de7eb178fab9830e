// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/row_gather.h"

#include <algorithm>

#include "base/status.h"
#include "passes/constants.h"
#include "passes/edit.h"
#include "passes/layout.h"

namespace tenonnx {
namespace {

std::int64_t product(const Shape& shape, std::size_t first, std::size_t last) {
  std::int64_t all = 1;
  for (std::size_t k = first; k < last; ++k) all *= shape[k];
  return all;
}

// A Cast of integers that changes no number.
bool widens(const Rewriter& r, const onnx::NodeProto& node) {
  if (!is_op(node, "Cast") || r.dtype(node.output(0)) != DType::kInt64) return false;
  const DType from = r.dtype(node.input(0));
  return from == DType::kInt32 || from == DType::kInt64;
}

// Nodes that only repeat what they read behind `axis`, or change its shape while every row number
// stands there once: back to the tensor of one number for each of `count` rows.
std::optional<std::string> narrow_rows(const Rewriter& r, std::string index, std::size_t axis,
                                       std::int64_t count) {
  for (;;) {
    const auto out = r.static_shape(index);
    if (!out) return std::nullopt;
    const bool narrow = element_count(*out) == count;
    const int producer = r.producer(index);
    const auto given = [&]() -> std::optional<std::string> {
      return narrow ? std::optional(index) : std::nullopt;
    };
    if (producer < 0) return given();
    const onnx::NodeProto& node = r.node(producer);
    const bool repeats = is_op(node, "Tile") || is_op(node, "Expand");
    const bool same = is_op(node, "Identity") || widens(r, node);
    if (!repeats && !same && !(narrow && is_reshape_like(node))) return given();
    const auto in = r.static_shape(node.input(0));
    if (!in) return given();
    if (repeats) {
      if (in->size() > out->size()) return given();
      Shape full(out->size() - in->size(), 1);
      full.insert(full.end(), in->begin(), in->end());
      bool same_number = true;
      for (std::size_t k = 0; k < full.size(); ++k)
        same_number &= full[k] == (*out)[k] || (full[k] == 1 && k > axis);
      if (!same_number) return given();
    }
    index = node.input(0);
  }
}

std::optional<RowGather> read_elements(const Rewriter& r, const onnx::NodeProto& node,
                                       RowGather gather, const Shape& data, const Shape& index,
                                       std::string& why) {
  const auto rank = static_cast<std::int64_t>(data.size());
  const std::int64_t axis = attribute_or(node, "axis", std::int64_t{0});
  gather.axis = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  if (gather.axis >= data.size() || index.size() != data.size()) return std::nullopt;
  for (std::size_t k = 0; k < data.size(); ++k) {
    if (k == gather.axis || index[k] == data[k]) continue;
    why =
        fmt::format("its index covers {} of {} along axis {}, no whole rows", index[k], data[k], k);
    return std::nullopt;
  }
  const std::int64_t images = product(data, 0, gather.axis);
  const auto rows = narrow_rows(r, node.input(1), gather.axis, images * index[gather.axis]);
  if (!rows) {
    why = fmt::format("its index '{}' is not seen to be one number for the whole of a row",
                      node.input(1));
    return std::nullopt;
  }
  gather.rows = *rows;
  gather.form = images == 1 ? RowGather::Form::kShared : RowGather::Form::kPerImage;
  gather.lead.assign(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(gather.axis) + 1);
  gather.kept_lead = gather.lead;
  gather.kept_lead.back() = index[gather.axis];
  return gather;
}

std::optional<RowGather> read_gather(const onnx::NodeProto& node, RowGather gather,
                                     const Shape& data, const Shape& index, std::string& why) {
  const auto rank = static_cast<std::int64_t>(data.size());
  const std::int64_t axis = attribute_or(node, "axis", std::int64_t{0});
  gather.axis = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  if (gather.axis >= data.size() || index.empty())
    return std::nullopt;  // rank 0 takes the axis out
  if (index.size() != 1) {
    why = fmt::format("its index has {} dimensions, and so its output other ones than '{}'",
                      index.size(), gather.data);
    return std::nullopt;
  }
  gather.lead.assign(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(gather.axis) + 1);
  gather.kept_lead = gather.lead;
  gather.kept_lead.back() = index[0];
  return gather;
}

std::optional<RowGather> read_points(const onnx::NodeProto& node, RowGather gather,
                                     const Shape& data, const Shape& index, std::string& why) {
  const std::int64_t batch_dims = attribute_or(node, "batch_dims", std::int64_t{0});
  if (batch_dims < 0 || index.empty() || index.back() < 1) return std::nullopt;
  const auto batch = static_cast<std::size_t>(batch_dims);
  const auto chosen = static_cast<std::size_t>(index.back());
  if (batch + chosen > data.size() || batch + 1 > index.size()) return std::nullopt;
  if (index.size() - 1 != batch + chosen || (batch > 0 && chosen > 1)) {
    why = fmt::format("its index has {} dimensions for {} of '{}' that it chooses from",
                      index.size(), batch + chosen, gather.data);
    return std::nullopt;
  }
  gather.axis = batch + chosen - 1;
  gather.lead.assign(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(gather.axis) + 1);
  gather.kept_lead.assign(index.begin(), index.end() - 1);
  gather.form = chosen > 1                           ? RowGather::Form::kPoints
                : product(data, 0, gather.axis) == 1 ? RowGather::Form::kShared
                                                     : RowGather::Form::kPerImage;
  return gather;
}

std::string reshaped(Rewriter& r, int at, const std::string& tensor, const Shape& shape) {
  if (r.static_shape(tensor) == shape) return tensor;
  const std::string name = r.fresh(tensor + "_row");
  r.insert(at, make_node("Reshape", {tensor, r.add_constant(name + "_shape", int64_vector(shape))},
                         {name}));
  return name;
}

}  // namespace

std::int64_t RowGather::rows_before() const { return product(lead, 0, lead.size()); }
std::int64_t RowGather::rows_after() const { return product(kept_lead, 0, kept_lead.size()); }

std::optional<RowGather> read_row_gather(const Rewriter& r, int i, std::string& why) {
  why.clear();
  const onnx::NodeProto& node = r.node(i);
  const bool elements = is_op(node, "GatherElements"), points = is_op(node, "GatherND");
  if ((!elements && !points && !is_op(node, "Gather")) || node.input_size() != 2)
    return std::nullopt;
  RowGather gather;
  gather.node = i;
  gather.data = node.input(0);
  gather.rows = node.input(1);
  gather.output = node.output(0);
  const bool computed = r.producer(gather.data) >= 0;
  const auto data = r.static_shape(gather.data), index = r.static_shape(gather.rows);
  std::optional<RowGather> found;
  if (!data || !index) {
    why = fmt::format("the shape of '{}' or '{}' is not known: run fold_constants first",
                      gather.data, gather.rows);
  } else if (element_count(*data) > 0 && element_count(*index) > 0) {
    found = elements ? read_elements(r, node, gather, *data, *index, why)
            : points ? read_points(node, gather, *data, *index, why)
                     : read_gather(node, gather, *data, *index, why);
  }
  if (!computed) why.clear();
  return found;
}

std::optional<RowPlace> row_place(const RowGather& gather, const Shape& shape, std::size_t rank,
                                  std::size_t axis) {
  if (shape.size() > rank || axis >= rank) return std::nullopt;
  const std::size_t missing = rank - shape.size();
  const bool absent = axis < missing;
  const std::size_t at = absent ? 0 : axis - missing;
  // Of the same lead as the data, or the same for all images.
  const bool full = missing == 0 && axis == gather.axis &&
                    std::equal(gather.lead.begin(), gather.lead.end(), shape.begin());
  const bool one_image =
      !absent && std::all_of(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(at),
                             [](std::int64_t d) { return d == 1; });
  if (gather.form == RowGather::Form::kPoints) {
    if (full) return RowPlace{true, axis};
    if (absent || (one_image && shape[at] == 1)) return RowPlace{};
    return std::nullopt;
  }
  if (absent || shape[at] == 1) return RowPlace{};
  if (shape[at] != gather.lead.back()) return std::nullopt;
  if (gather.form == RowGather::Form::kShared || full || (one_image && axis == gather.axis))
    return RowPlace{true, at};
  return std::nullopt;
}

std::string gather_rows(Rewriter& r, const RowGather& gather, const std::string& tensor,
                        const RowPlace& place) {
  const Shape shape = *r.static_shape(tensor);
  const std::int64_t kept = gather.kept_lead.back();
  const std::string output = r.fresh(tensor + "_kept");
  const int at = gather.node;
  if (gather.form == RowGather::Form::kShared) {
    onnx::NodeProto node =
        make_node("Gather", {tensor, reshaped(r, at, gather.rows, {kept})}, {output});
    set_attribute(node, "axis", static_cast<std::int64_t>(place.axis));
    r.insert(at, std::move(node));
    return output;
  }
  const bool full = place.axis == gather.axis &&
                    std::equal(gather.lead.begin(), gather.lead.end(), shape.begin());
  if (!full) {
    // The same rows in every image: [1,N,..] is read as [N,..], and the index brings the images.
    const Shape rows(shape.begin() + static_cast<std::ptrdiff_t>(place.axis), shape.end());
    onnx::NodeProto node = make_node(
        "Gather", {reshaped(r, at, tensor, rows), reshaped(r, at, gather.rows, gather.kept_lead)},
        {output});
    set_attribute(node, "axis", std::int64_t{0});
    r.insert(at, std::move(node));
    return output;
  }
  std::string rows = gather.rows;
  if (gather.form == RowGather::Form::kPerImage) {
    Shape index = gather.kept_lead;
    index.push_back(1);
    rows = reshaped(r, at, rows, index);
  }
  if (r.dtype(gather.rows) == DType::kInt32) {  // GatherND takes int64 alone
    const std::string wide = r.fresh(rows + "_int64");
    onnx::NodeProto cast = make_node("Cast", {rows}, {wide});
    set_attribute(cast, "to", std::int64_t{onnx::TensorProto::INT64});
    r.insert(at, std::move(cast));
    rows = wide;
  }
  onnx::NodeProto node = make_node("GatherND", {tensor, rows}, {output});
  if (gather.form == RowGather::Form::kPerImage)
    set_attribute(node, "batch_dims", static_cast<std::int64_t>(gather.axis));
  r.insert(at, std::move(node));
  return output;
}

Shape kept_shape(const RowGather& gather, const Shape& shape, std::size_t axis) {
  Shape kept = shape;
  if (axis == gather.axis && std::equal(gather.lead.begin(), gather.lead.end(), shape.begin())) {
    std::copy(gather.kept_lead.begin(), gather.kept_lead.end(), kept.begin());
  } else {
    kept[axis] = gather.kept_lead.back();
  }
  return kept;
}

}  // namespace tenonnx
