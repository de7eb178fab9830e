// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fuse_sampling_locations: MSDeformAttn computes its sampling locations itself.
//
// before: location = reference_xy + offset * c_p * reference_wh * 1/2           [B,Q,M,P,2]
//         y        = tenonnx.MSDeformAttn(value, location, weights)
// after:  y        = tenonnx.MSDeformAttn(value, offset, weights, reference)
//
// reference_xy and reference_wh are the two halves of the last axis of one tensor (Slice), [B,Q,4]
// or [B,Q,L,4] with ones between; c_p is 1 / points of the level of p. The operator computes the
// same from offsets (src/kernels/ms_deform_attn/ms_deform_attn.h), point by point, where four
// element-wise operators each went through all locations.
// Conditions: the factors in any order, as Mul with constants or Div; constants within 1e-6; static
// shapes; no reference given yet; the location is used by the attention alone.
// Class algebraic: the same product in another order.
// Refuses: constants that are not 1 / (2 points); halves of two different tensors; a location that
// is used elsewhere. A location that is not such a sum is no site of this pass.
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ort/ops_library.h"
#include "passes/constants.h"
#include "passes/fusion.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

// Elements [begin, end) of the last axis of `tensor`.
struct Part {
  std::string tensor;
  std::int64_t begin = 0, end = 0;
};

std::optional<Part> part_of(const Rewriter& r, std::string_view name, std::vector<int>& nodes) {
  const int i = r.producer(name, "Slice");
  if (i < 0) return std::nullopt;
  const onnx::NodeProto& node = r.node(i);
  const auto shape = r.static_shape(node.input(0));
  if (!shape || shape->empty() || node.input_size() < 4) return std::nullopt;
  const auto one = [&](int input) -> std::optional<std::int64_t> {
    if (node.input_size() <= input || node.input(input).empty()) return std::nullopt;
    const auto values = r.integers(node.input(input));
    return values && values->size() == 1 ? std::optional((*values)[0]) : std::nullopt;
  };
  const auto begin = one(1), end = one(2), axis = one(3);
  const auto rank = static_cast<std::int64_t>(shape->size());
  if (!begin || !end || !axis || (*axis != -1 && *axis != rank - 1)) return std::nullopt;
  if (node.input_size() > 4 && one(4) != 1) return std::nullopt;
  const std::int64_t length = shape->back();
  const auto bound = [&](std::int64_t v) { return std::min(v < 0 ? v + length : v, length); };
  nodes.push_back(i);
  return Part{node.input(0), bound(*begin), bound(*end)};
}

// A product of one tensor that is not constant, one part of another, and constants.
struct Product {
  std::string offset;
  std::optional<Part> size;
  std::vector<double> factor;  // one, or one a point
  std::vector<int> nodes;
};

class Fuser {
 public:
  explicit Fuser(Rewriter& r) : r_(r) {}

  void offer(int i) {
    const onnx::NodeProto& node = r_.node(i);
    if (node.op_type() != "MSDeformAttn" || node.domain() != kOpsDomain) return;
    if (node.input_size() > 3 && !node.input(3).empty()) return;
    const int sum = r_.producer(node.input(1), "Add");
    const auto shape = r_.static_shape(node.input(1));
    if (sum < 0 || !shape || shape->size() < 5) return;
    points_ = attribute_ints(node, "points");
    total_ = std::accumulate(points_.begin(), points_.end(), std::int64_t{0});
    for (int side = 0; side < 2; ++side) {
      std::vector<int> nodes = {i, sum};
      const auto centre = part_of(r_, r_.node(sum).input(side), nodes);
      if (!centre || centre->begin != 0 || centre->end != 2) continue;
      Product product;
      product.factor = {1};
      if (!multiply(r_.node(sum).input(1 - side), *shape, product) || !product.size) continue;
      nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
      return fuse(i, nodes, *shape, *centre, product);
    }
  }

 private:
  // Whether `name` is such a product, of the shape of the locations.
  bool multiply(const std::string& name, const Shape& shape, Product& out) {
    const int mul = r_.producer(name, "Mul"), div = r_.producer(name, "Div");
    const auto own = r_.static_shape(name);
    if ((mul < 0 && div < 0) || own != shape) {
      if (own != shape || !out.offset.empty()) return false;
      out.offset = name;
      return true;
    }
    const onnx::NodeProto& node = r_.node(mul >= 0 ? mul : div);
    for (int side = 0; side < (mul >= 0 ? 2 : 1); ++side) {
      const std::string &rest = node.input(side), &factor = node.input(1 - side);
      Product tried = out;
      tried.nodes.push_back(mul >= 0 ? mul : div);
      if (const Tensor* constant = r_.constant(factor)) {
        if (!scale(*constant, shape, mul < 0, tried)) continue;
      } else if (auto part = mul >= 0 ? part_of(r_, factor, tried.nodes) : std::nullopt;
                 part && !tried.size && part->begin == 2 && part->end == 4) {
        tried.size = part;
      } else {
        continue;
      }
      if (!multiply(rest, shape, tried)) continue;
      out = std::move(tried);
      return true;
    }
    if (!out.offset.empty()) return false;
    out.offset = name;
    return true;
  }

  // A constant of one element, or of one a point.
  bool scale(const Tensor& constant, const Shape& shape, bool divide, Product& out) const {
    auto values = doubles(constant);
    if (!values) return false;
    const Shape& own = constant.shape();
    if (values->size() != 1) {
      // [.., P, 1] beside [B,Q,M,P,2], or [.., L, P/L, 1] beside [B,Q,M,L,P/L,2].
      if (static_cast<std::int64_t>(values->size()) != total_ || own.empty() || own.back() != 1)
        return false;
      for (std::size_t k = 1; k < own.size(); ++k)
        if (own[own.size() - 1 - k] != 1 && own[own.size() - 1 - k] != shape[shape.size() - 1 - k])
          return false;
    }
    const std::size_t count = std::max(values->size(), out.factor.size());
    std::vector<double> product(count);
    for (std::size_t p = 0; p < count; ++p) {
      const double a = out.factor[out.factor.size() == 1 ? 0 : p];
      const double b = (*values)[values->size() == 1 ? 0 : p];
      product[p] = divide ? a / b : a * b;
    }
    out.factor = std::move(product);
    return true;
  }

  std::string why_not(const std::vector<int>& nodes, int last, const Shape& shape,
                      const Part& centre, const Product& product) {
    if (centre.tensor != product.size->tensor)
      return fmt::format("its centres are of '{}', its sizes of '{}': no reference has both",
                         centre.tensor, product.size->tensor);
    std::size_t p = 0;
    for (const std::int64_t points : points_)
      for (std::int64_t k = 0; k < points; ++k, ++p) {
        const double factor = product.factor[product.factor.size() == 1 ? 0 : p];
        if (!is_near(factor, 0.5 / static_cast<double>(points)))
          return fmt::format("offsets of point {} are multiplied by {:.6g}, not by 1/2 / {} points",
                             p, factor, points);
      }
    const auto reference = r_.static_shape(centre.tensor);
    if (!reference || reference->size() != shape.size() || reference->back() != 4)
      return fmt::format("'{}' is not a reference of 4 coordinates with the locations' rank",
                         centre.tensor);
    // [B, Q, 1, 1 or L, (1,) 4]
    const bool apart = shape.size() == 6;
    const std::int64_t levels = apart ? (*reference)[3] : 1;
    if ((*reference)[0] != shape[0] || (*reference)[1] != shape[1] || (*reference)[2] != 1 ||
        (apart ? (*reference)[4] != 1 : (*reference)[3] != 1) ||
        (levels != 1 && levels != static_cast<std::int64_t>(points_.size())))
      return fmt::format("'{}' {} is not one reference a query, or one a query and level",
                         centre.tensor, to_string(*reference));
    if (r_.dtype(centre.tensor) != r_.dtype(product.offset))
      return "offsets and reference are of different types";
    // The halves of the reference may be read elsewhere; the arithmetic may not.
    std::vector<int> inside;
    for (const int n : nodes)
      if (r_.node(n).op_type() != "Slice") inside.push_back(n);
    return used_outside(r_, inside, last);
  }

  void fuse(int i, const std::vector<int>& nodes, const Shape& shape, const Part& centre,
            const Product& product) {
    if (const std::string reason = why_not(nodes, i, shape, centre, product); !reason.empty())
      return r_.refuse(i, reason);
    if (!r_.begin(nodes)) return;
    const std::int64_t levels = shape.size() == 6 ? (*r_.static_shape(centre.tensor))[3] : 1;
    const std::string reference = r_.fresh(centre.tensor + "_points");
    const std::string target = r_.add_constant(
        reference + "_shape", int64_vector({shape[0], shape[1], levels, std::int64_t{4}}));
    r_.insert(i, make_node("Reshape", {centre.tensor, target}, {reference}));
    onnx::NodeProto node = r_.node(i);
    node.set_input(1, product.offset);
    if (node.input_size() > 3)
      node.set_input(3, reference);
    else
      node.add_input(reference);
    r_.replace(i, std::move(node));
    r_.apply(i, fmt::format("{} element-wise nodes before it: locations from offsets and '{}'",
                            nodes.size() - 1, centre.tensor));
  }

  Rewriter& r_;
  std::vector<std::int64_t> points_;
  std::int64_t total_ = 0;
};

}  // namespace

namespace passes {

Result<PassOutcome> fuse_sampling_locations(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("fuse_sampling_locations", options, {}));
  Rewriter r(model);
  Fuser fuser(r);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) { fuser.offer(i); }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
