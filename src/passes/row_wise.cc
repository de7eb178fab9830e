// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/row_wise.h"

#include <algorithm>

#include "base/status.h"
#include "passes/elementwise.h"
#include "passes/layout.h"

namespace tenonnx {
namespace {

class Reader {
 public:
  Reader(const Rewriter& r, const onnx::NodeProto& node, const RowGather& gather, std::size_t axis)
      : r_(r), node_(node), gather_(gather), axis_(axis) {
    places_.resize(static_cast<std::size_t>(node.input_size()));
  }

  // "" where the node is row-wise.
  std::string read() {
    const auto out = r_.static_shape(node_.output(0));
    if (!out) return fmt::format("the shape of '{}' is not known", node_.output(0));
    if (axis_ >= out->size()) return "it makes a scalar";
    out_ = *out;
    if (!normalized_domain(node_.domain()).empty()) return not_row_wise();
    const std::string_view op = node_.op_type();
    if (is_unary_elementwise(op) || is_nary_elementwise(op) || op == "Where" || op == "PRelu")
      return all_inputs();
    if (op == "MatMul") return product();
    if (op == "Gemm") return gemm();
    if (op == "LayerNormalization" || op == "RMSNormalization") return normalization();
    if (op == "Softmax" || op == "LogSoftmax") {
      const std::int64_t none = r_.opset() < 13 ? 1 : -1;
      return inside_rows({attribute_or(node_, "axis", none)});
    }
    if (is_reduction(op)) {
      const auto axes = ints_of(r_, node_, "axes", 1);
      if (!axes || axes->empty()) return "the axes that it reduces are not known, or all";
      return inside_rows(*axes);
    }
    if (op == "Concat") {
      const std::string why = inside_rows({attribute_or(node_, "axis", std::int64_t{0})});
      return why.empty() ? all_inputs() : why;
    }
    if (is_reshape_like(node_)) return reshape();
    return not_row_wise();
  }

  std::vector<RowPlace> places() && { return std::move(places_); }

 private:
  std::string not_row_wise() const {
    return fmt::format("{} is not known to compute each row by itself", node_label(node_));
  }

  // The place of input k, which broadcasts to the output's rank.
  std::string place(int k, bool needs_rows = false) {
    const auto shape = r_.static_shape(node_.input(k));
    if (!shape) return fmt::format("the shape of '{}' is not known", node_.input(k));
    const auto found = row_place(gather_, *shape, out_.size(), axis_);
    if (!found || (needs_rows && !found->has_rows))
      return fmt::format("'{}', which {} reads, has other rows", node_.input(k), node_label(node_));
    places_[static_cast<std::size_t>(k)] = *found;
    return {};
  }

  std::string all_inputs() {
    const bool concat = node_.op_type() == "Concat";
    for (int k = 0; k < node_.input_size(); ++k) {
      if (node_.input(k).empty()) continue;
      if (std::string why = place(k, concat); !why.empty()) return why;
    }
    return {};
  }

  // Rows are summed over, or chosen among, by nothing behind `axis`.
  std::string product() {
    const auto weight = r_.static_shape(node_.input(1)), data = r_.static_shape(node_.input(0));
    if (!weight || !data) return fmt::format("shapes of {} are not known", node_label(node_));
    if (data->size() < 2 || data->size() != out_.size() || axis_ + 1 >= out_.size())
      return fmt::format("axis {} is not one of the rows of {}", axis_, node_label(node_));
    // A matrix for each image is one for all rows of it.
    if (weight->size() != 2 && (axis_ + 2 != out_.size() || weight->size() < 2))
      return fmt::format("'{}' is another matrix for every row", node_.input(1));
    return place(0, true);
  }

  std::string gemm() {
    if (attribute_or(node_, "transA", std::int64_t{0}) != 0 || axis_ != 0)
      return fmt::format("axis {} is not one of the rows of {}", axis_, node_label(node_));
    if (std::string why = place(0, true); !why.empty()) return why;
    return node_.input_size() > 2 && !node_.input(2).empty() ? place(2) : std::string();
  }

  std::string normalization() {
    for (int k = 1; k < node_.output_size(); ++k)
      if (r_.use_count(node_.output(k)) > 0)
        return fmt::format("'{}', a further output, is used", node_.output(k));
    for (int k = 1; k < node_.input_size(); ++k) {
      if (node_.input(k).empty()) continue;
      if (std::string why = place(k); !why.empty()) return why;
      if (places_[static_cast<std::size_t>(k)].has_rows)
        return fmt::format("'{}' differs from row to row", node_.input(k));
    }
    return inside_rows({attribute_or(node_, "axis", std::int64_t{-1})});
  }

  // Works along these axes of input 0: all must lie behind the rows.
  std::string inside_rows(const std::vector<std::int64_t>& axes) {
    const auto in = r_.static_shape(node_.input(0));
    if (!in) return fmt::format("the shape of '{}' is not known", node_.input(0));
    for (const std::int64_t axis : axes) {
      const std::int64_t at = axis < 0 ? axis + static_cast<std::int64_t>(in->size()) : axis;
      if (at <= static_cast<std::int64_t>(axis_))
        return fmt::format("{} works along axis {}, across the rows of axis {}", node_label(node_),
                           at, axis_);
    }
    const auto found = row_place(gather_, *in, in->size(), axis_);
    if (!found || !found->has_rows)
      return fmt::format("'{}', which {} reads, has other rows", node_.input(0), node_label(node_));
    places_[0] = *found;
    return {};
  }

  std::string reshape() {
    const auto in = r_.static_shape(node_.input(0));
    if (!in) return fmt::format("the shape of '{}' is not known", node_.input(0));
    const auto lead = out_.begin() + static_cast<std::ptrdiff_t>(axis_) + 1;
    if (in->size() > axis_ && std::equal(out_.begin(), lead, in->begin())) {
      places_[0] = {true, axis_};
      return {};
    }
    const auto first = std::find_if(in->begin(), in->end(), [](std::int64_t d) { return d != 1; });
    const bool one_image =
        std::all_of(out_.begin(), lead - 1, [](std::int64_t d) { return d == 1; });
    if (gather_.form == RowGather::Form::kShared && one_image && first != in->end() &&
        *first == out_[axis_]) {
      places_[0] = {true, static_cast<std::size_t>(first - in->begin())};
      return {};
    }
    return fmt::format("{} makes other rows", node_label(node_));
  }

  const Rewriter& r_;
  const onnx::NodeProto& node_;
  const RowGather& gather_;
  const std::size_t axis_;
  Shape out_;
  std::vector<RowPlace> places_;
};

double elements(const Rewriter& r, const std::string& name) {
  const auto shape = r.static_shape(name);
  return shape ? static_cast<double>(element_count(*shape)) : 0;
}

}  // namespace

std::optional<std::vector<RowPlace>> row_wise_inputs(const Rewriter& r, int node,
                                                     const RowGather& gather, std::size_t axis,
                                                     std::string& why) {
  Reader reader(r, r.node(node), gather, axis);
  why = reader.read();
  if (!why.empty()) return std::nullopt;
  return std::move(reader).places();
}

double node_work(const Rewriter& r, int index) {
  const onnx::NodeProto& node = r.node(index);
  const double out = elements(r, node.output(0));
  if (is_reshape_like(node)) return 0;
  if (is_op(node, "MatMul") || is_op(node, "Gemm")) {
    const bool turned = attribute_or(node, "transB", std::int64_t{0}) != 0;
    const auto weight = r.static_shape(node.input(1));
    if (weight && weight->size() >= 2)
      return out * static_cast<double>(weight->rbegin()[turned ? 0 : 1]);
  }
  return std::max(out, elements(r, node.input(0)));
}

}  // namespace tenonnx
