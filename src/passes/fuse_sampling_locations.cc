// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fuse_sampling_locations: MSDeformAttn computes its sampling locations itself.
//
// before: location = reference_xy + offset * c_p * reference_wh * 1/2           [B,Q,M,P,2]
//     or  location = reference + offset / (width, height)
//         y        = tenonnx.MSDeformAttn(value, location, weights)
// after:  y        = tenonnx.MSDeformAttn(value, offset, weights, reference)
//
// In the first form (decoders) reference_xy and reference_wh are the two halves of the last axis of
// one tensor (Slice), [B,Q,4] or [B,Q,L,4] with ones between, and c_p is 1 / points of the level of
// p; in the second (encoders) the reference is [B,Q,2] or [B,Q,L,2], width and height are those of
// the level. The operator computes the same from offsets, point by point
// (src/kernels/ms_deform_attn/ms_deform_attn.h), where up to four element-wise operators each went
// through all locations.
// Conditions: the factors in any order, as Mul with constants or Div by them; constants within
// 1e-6; static shapes; no reference given yet; the location is used by the attention alone.
// Class algebraic: the same product in another order.
// Refuses: constants that are not these; halves of two different tensors; a location that is used
// elsewhere. A location that is no such sum is no site of this pass.
#include <algorithm>
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

// A product of one tensor that is not constant, at most one part of another, and constants.
struct Product {
  std::string offset;
  std::optional<Part> size;
  std::vector<double> factor;  // of each point of a head and coordinate
  std::vector<int> nodes;
};

// The values of a constant beside [B,Q,M,points..,2] where they depend on point and coordinate
// alone.
std::optional<std::vector<double>> by_point(const Tensor& constant, const Shape& shape) {
  const auto values = doubles(constant);
  if (!values) return std::nullopt;
  Shape own = constant.shape();
  if (own.size() > shape.size()) return std::nullopt;
  own.insert(own.begin(), shape.size() - own.size(), 1);
  for (std::size_t k = 0; k < own.size(); ++k)
    if (own[k] != 1 && (k < 3 || own[k] != shape[k])) return std::nullopt;
  const Shape inner(shape.begin() + 3, shape.end());
  std::vector<double> out;
  for (std::int64_t e = 0; e < element_count(inner); ++e) {
    std::int64_t rest = e, from = 0, stride = 1;
    for (std::size_t k = shape.size(); k-- > 3;) {
      const std::int64_t at = rest % shape[k];
      rest /= shape[k];
      if (own[k] != 1) from += at * stride;
      stride *= own[k];
    }
    out.push_back((*values)[static_cast<std::size_t>(from)]);
  }
  return out;
}

class Fuser {
 public:
  explicit Fuser(Rewriter& r) : r_(r) {}

  void offer(int i) {
    const onnx::NodeProto& node = r_.node(i);
    if (node.op_type() != "MSDeformAttn" || node.domain() != kOpsDomain) return;
    if (node.input_size() > 3 && !node.input(3).empty()) return;
    const int sum = r_.producer(node.input(1), "Add");
    const auto shape = r_.static_shape(node.input(1));
    levels_ = attribute_ints(node, "spatial_shapes");
    points_ = attribute_ints(node, "points");
    if (sum < 0 || !shape || shape->size() < 5 || levels_.size() != 2 * points_.size()) return;
    shape_ = *shape;
    for (int side = 0; side < 2; ++side) {
      const std::string& reference = r_.node(sum).input(side);
      std::vector<int> nodes = {i, sum};
      const auto centre = part_of(r_, reference, nodes);
      Product product;
      product.factor.assign(
          static_cast<std::size_t>(element_count(Shape(shape_.begin() + 3, shape_.end()))), 1);
      if (!multiply(r_.node(sum).input(1 - side), product)) continue;
      if (product.size && (!centre || centre->begin != 0 || centre->end != 2)) continue;
      // Without a size the reference is whatever is added: a slice of another tensor as well.
      if (!product.size) nodes.resize(2);
      if (!product.size && (product.nodes.empty() || !is_reference(reference, 2))) continue;
      nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
      return fuse(i, nodes, product.size ? *centre : Part{reference, 0, 2}, product);
    }
  }

 private:
  // Whether `name` is such a product, of the shape of the locations.
  bool multiply(const std::string& name, Product& out) {
    if (r_.static_shape(name) != shape_) return false;
    const int mul = r_.producer(name, "Mul"), div = r_.producer(name, "Div");
    const int cast = r_.producer(name, "Cast");
    if (cast >= 0 && r_.dtype(r_.node(cast).input(0)) == r_.dtype(name)) {
      out.nodes.push_back(cast);
      return multiply(r_.node(cast).input(0), out);
    }
    const onnx::NodeProto* node = mul < 0 && div < 0 ? nullptr : &r_.node(mul >= 0 ? mul : div);
    for (int side = 0; node != nullptr && side < (mul >= 0 ? 2 : 1); ++side) {
      const std::string& factor = node->input(1 - side);
      Product tried = out;
      tried.nodes.push_back(mul >= 0 ? mul : div);
      if (const Tensor* constant = r_.constant(factor)) {
        const auto values = by_point(*constant, shape_);
        if (!values) continue;
        for (std::size_t p = 0; p < values->size(); ++p)
          tried.factor[p] =
              mul >= 0 ? tried.factor[p] * (*values)[p] : tried.factor[p] / (*values)[p];
      } else if (auto part = mul >= 0 ? part_of(r_, factor, tried.nodes) : std::nullopt;
                 part && !tried.size && part->begin == 2 && part->end == 4) {
        tried.size = part;
      } else {
        continue;
      }
      if (!multiply(node->input(side), tried)) continue;
      out = std::move(tried);
      return true;
    }
    out.offset = name;
    return true;
  }

  // [B, Q, 1, 1 or L, (1,) coordinates], of the locations' rank.
  bool is_reference(const std::string& name, std::int64_t coordinates) const {
    const auto reference = r_.static_shape(name);
    if (!reference || reference->size() != shape_.size() || reference->back() != coordinates)
      return false;
    const std::int64_t levels = (*reference)[3];
    return (*reference)[0] == shape_[0] && (*reference)[1] == shape_[1] && (*reference)[2] == 1 &&
           (shape_.size() == 6 ? (*reference)[4] == 1 : levels == 1) &&
           (levels == 1 || levels == static_cast<std::int64_t>(points_.size()));
  }

  std::string why_not(const std::vector<int>& nodes, int last, const Part& centre,
                      const Product& product) {
    if (product.size && centre.tensor != product.size->tensor)
      return fmt::format("its centres are of '{}', its sizes of '{}': no reference has both",
                         centre.tensor, product.size->tensor);
    std::size_t e = 0;
    for (std::size_t l = 0; l < points_.size(); ++l)
      for (std::int64_t k = 0; k < 2 * points_[l]; ++k, ++e) {
        const double side = static_cast<double>(levels_[2 * l + (k % 2 == 0 ? 1 : 0)]);
        const double wanted = product.size ? 0.5 / static_cast<double>(points_[l]) : 1 / side;
        if (e >= product.factor.size() || !is_near(product.factor[e], wanted))
          return fmt::format("offsets of point {} are multiplied by {:.6g}, not by {:.6g}: {}",
                             e / 2, e < product.factor.size() ? product.factor[e] : 0, wanted,
                             product.size ? fmt::format("1/2 / {} points of the level", points_[l])
                                          : fmt::format("1 / {} pixels of the level", side));
      }
    if (product.size && !is_reference(centre.tensor, 4))
      return fmt::format(
          "'{}' {} is not one reference of 4 coordinates a query, or one a query and "
          "level",
          centre.tensor,
          r_.static_shape(centre.tensor) ? to_string(*r_.static_shape(centre.tensor))
                                         : "of unknown shape");
    if (r_.dtype(centre.tensor) != r_.dtype(product.offset))
      return "offsets and reference are of different types";
    // The halves of the reference may be read elsewhere; the arithmetic may not.
    std::vector<int> inside;
    for (const int n : nodes)
      if (r_.node(n).op_type() != "Slice") inside.push_back(n);
    return used_outside(r_, inside, last);
  }

  void fuse(int i, const std::vector<int>& nodes, const Part& centre, const Product& product) {
    if (const std::string reason = why_not(nodes, i, centre, product); !reason.empty())
      return r_.refuse(i, reason);
    if (!r_.begin(nodes)) return;
    const Shape own = *r_.static_shape(centre.tensor);
    const std::string reference = r_.fresh(centre.tensor + "_points");
    const std::string target =
        r_.add_constant(reference + "_shape", int64_vector({own[0], own[1], own[3], own.back()}));
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
  Shape shape_;  // of the locations
  std::vector<std::int64_t> levels_, points_;
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
