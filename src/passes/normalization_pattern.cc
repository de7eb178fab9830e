// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/normalization_pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "passes/fusion.h"

namespace tenonnx {
namespace {

using Axes = std::vector<std::int64_t>;

// Axes of a ReduceMean counted from the last, -1 to -rank, ascending; nullopt where they or the
// rank that they need are not known.
std::optional<Axes> axes_from_end(const Rewriter& r, const onnx::NodeProto& reduce) {
  Axes axes = attribute_ints(reduce, "axes");
  if (reduce.input_size() > 1 && !reduce.input(1).empty()) {
    const auto values = r.integers(reduce.input(1));
    if (!values) return std::nullopt;
    axes = *values;
  }
  const std::optional<Shape> shape = r.shape(reduce.input(0));
  if (axes.empty()) {  // all of them
    if (!shape || attribute_or(reduce, "noop_with_empty_axes", std::int64_t{0}) != 0)
      return std::nullopt;
    for (std::size_t i = 0; i < shape->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  for (std::int64_t& axis : axes) {
    if (axis < 0) continue;
    if (!shape) return std::nullopt;
    axis -= static_cast<std::int64_t>(shape->size());
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

bool keeps_dims(const onnx::NodeProto& reduce) {
  return attribute_or(reduce, "keepdims", std::int64_t{1}) != 0;
}

// What the square root is taken of.
struct Root {
  std::string_view of;
  bool reciprocal = false;
};
std::optional<Root> root_at(const Rewriter& r, const onnx::NodeProto& node) {
  if (is_op(node, "Sqrt")) return Root{node.input(0), false};
  if (!is_op(node, "Pow")) return std::nullopt;
  const auto exponent = scalar_beside(r, node.input(1), node.input(0));
  if (exponent == 0.5) return Root{node.input(0), false};
  if (exponent == -0.5) return Root{node.input(0), true};
  return std::nullopt;
}

// The base of a square.
std::optional<std::string_view> square_of(const Rewriter& r, int index) {
  if (index < 0) return std::nullopt;
  const onnx::NodeProto& node = r.node(index);
  if (is_op(node, "Mul") && node.input(0) == node.input(1)) return node.input(0);
  if (is_op(node, "Pow") && scalar_beside(r, node.input(1), node.input(0)) == 2.0)
    return node.input(0);
  return std::nullopt;
}

// d = x - mean(x)
struct Deviation {
  std::string_view x;
  Axes axes;
  std::vector<int> nodes;
};
std::optional<Deviation> deviation_at(const Rewriter& r, std::string_view name) {
  const int sub = r.producer(name, "Sub");
  if (sub < 0) return std::nullopt;
  Deviation d;
  d.nodes = {sub};
  d.x = uncast(r, r.node(sub).input(0), d.nodes);
  const int mean = r.producer(uncast(r, r.node(sub).input(1), d.nodes), "ReduceMean");
  if (mean < 0 || !keeps_dims(r.node(mean))) return std::nullopt;
  d.nodes.push_back(mean);
  if (uncast(r, r.node(mean).input(0), d.nodes) != d.x) return std::nullopt;
  const auto axes = axes_from_end(r, r.node(mean));
  if (!axes) return std::nullopt;
  d.axes = *axes;
  return d;
}

// Whether a constant holds one element for each of `dims`, and broadcasts along them alone.
bool fits(const Rewriter& r, std::string_view name, const Shape& dims, std::size_t rank) {
  const Tensor* tensor = r.constant(name);
  if (tensor == nullptr || tensor->dtype() != DType::kFloat32) return false;
  Shape shape = tensor->shape();
  if (shape.size() > rank) return false;
  while (shape.size() > dims.size() && shape.front() == 1) shape.erase(shape.begin());
  while (shape.size() < dims.size()) shape.insert(shape.begin(), 1);
  return shape == dims;
}

class Matcher {
 public:
  Matcher(const Rewriter& r, int index, bool centered, std::string& reason)
      : r_(r), root_(index), reason_(reason) {
    p_.centered = centered;
  }

  std::optional<NormalizationPattern> match() {
    if (!find_mean_of_square() || !find_quotient() || !find_axes()) return std::nullopt;
    find_scale_and_bias();
    reason_ = used_outside(r_, p_.nodes, p_.last);
    if (!reason_.empty()) return std::nullopt;
    return p_;
  }

 private:
  bool fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }
  void add(const std::vector<int>& nodes) {
    for (const int i : nodes)
      if (std::find(p_.nodes.begin(), p_.nodes.end(), i) == p_.nodes.end()) p_.nodes.push_back(i);
  }

  // sqrt(mean(base^2) + epsilon). No reason to give before this holds: roots are many.
  bool find_mean_of_square() {
    const auto root = root_at(r_, r_.node(root_));
    if (!root) return false;
    reciprocal_ = root->reciprocal;
    std::vector<int> nodes = {root_};
    std::string_view at = uncast(r_, root->of, nodes);
    if (const int sum = r_.producer(at, "Add"); sum >= 0) {
      const onnx::NodeProto& node = r_.node(sum);
      int side = 1;
      auto epsilon = scalar_beside(r_, node.input(1), node.input(0));
      if (!epsilon) epsilon = scalar_beside(r_, node.input(side = 0), node.input(1));
      if (!epsilon || *epsilon < 0) return false;
      p_.epsilon = static_cast<float>(*epsilon);
      nodes.push_back(sum);
      at = uncast(r_, node.input(1 - side), nodes);
    }
    mean_ = r_.producer(at, "ReduceMean");
    if (mean_ < 0) return false;
    nodes.push_back(mean_);
    const int square = r_.producer(uncast(r_, r_.node(mean_).input(0), nodes));
    const auto base = square_of(r_, square);
    if (!base) return false;
    nodes.push_back(square);
    base_ = uncast(r_, *base, nodes);
    add(nodes);
    deviation_ = deviation_at(r_, base_);
    return deviation_.has_value() == p_.centered;
  }

  // base / root
  bool find_quotient() {
    std::string_view at = r_.node(root_).output(0);
    const auto sole_user = [&] {
      const int user = r_.sole_user(at);
      if (user < 0) fail(fmt::format("'{}', the root, is not used by one node alone", at));
      return user;
    };
    int user = sole_user();
    if (user < 0) return false;
    if (is_op(r_.node(user), "Add"))
      return fail("epsilon is added behind the root, and the operator adds it before");
    if (!reciprocal_) {
      const onnx::NodeProto& node = r_.node(user);
      const bool inverts =
          is_op(node, "Reciprocal") || (is_op(node, "Div") && node.input(1) == at &&
                                        scalar_beside(r_, node.input(0), at) == 1.0);
      if (inverts) {
        reciprocal_ = true;
        add({user});
        at = node.output(0);
        user = sole_user();
        if (user < 0) return false;
      }
    }
    const onnx::NodeProto& node = r_.node(user);
    const std::string_view other = other_operand(node, at);
    const bool divides =
        reciprocal_ ? is_op(node, "Mul") : is_op(node, "Div") && node.input(1) == at;
    if (!divides || other.empty())
      return fail(fmt::format("'{}' does not divide the tensor that it is the root of", at));
    add({user});
    std::vector<int> nodes;
    numerator_ = uncast(r_, other, nodes);
    add(nodes);
    p_.last = user;
    return true;
  }

  bool find_axes() {
    if (!keeps_dims(r_.node(mean_))) return fail("the mean does not keep its axes (keepdims 0)");
    const auto axes = axes_from_end(r_, r_.node(mean_));
    if (!axes) return fail("the axes of the mean are not known");
    std::string_view x = base_;
    if (p_.centered) {
      const auto other = numerator_ == base_ ? deviation_ : deviation_at(r_, numerator_);
      if (!other || other->x != deviation_->x)
        return fail("it divides another tensor than the one whose variance it takes");
      if (deviation_->axes != *axes || other->axes != *axes)
        return fail("mean and variance are taken over different axes");
      add(deviation_->nodes);
      add(other->nodes);
      x = deviation_->x;
    } else if (numerator_ != base_) {
      return fail("it divides another tensor than the one whose mean square it takes");
    }
    p_.x = x;
    for (std::size_t k = 0; k < axes->size(); ++k)
      if ((*axes)[k] != static_cast<std::int64_t>(k) - static_cast<std::int64_t>(axes->size()))
        return fail(
            fmt::format("the mean is over the axes [{}] from the end, and the operator "
                        "takes the last ones",
                        fmt::join(*axes, ", ")));
    p_.axis = axes->front();
    p_.dims.assign(axes->size(), -1);
    if (const auto shape = r_.shape(x)) {
      rank_ = shape->size();
      if (axes->size() <= rank_)
        p_.dims.assign(shape->end() - static_cast<std::ptrdiff_t>(axes->size()), shape->end());
    }
    reason_ = float32_reason(
        r_, x, "in float16 the epsilon itself may be lost, and the operator computes in float32");
    return reason_.empty();
  }

  // Takes in a Mul (or an Add) by a constant that fits; leaves any other where it is.
  bool take(const char* op, std::string& into) {
    std::vector<int> nodes;
    std::string_view at = r_.node(p_.last).output(0);
    int user = r_.sole_user(at);
    while (user >= 0 && is_op(r_.node(user), "Cast") &&
           r_.dtype(r_.node(user).output(0)) == DType::kFloat32) {
      nodes.push_back(user);
      at = r_.node(user).output(0);
      user = r_.sole_user(at);
    }
    if (user < 0 || !is_op(r_.node(user), op)) return false;
    const std::string_view other = other_operand(r_.node(user), at);
    if (other.empty() || !fits(r_, other, p_.dims, rank_)) return false;
    nodes.push_back(user);
    add(nodes);
    into = other;
    p_.last = user;
    return true;
  }
  void find_scale_and_bias() {
    take("Mul", p_.scale);
    if (p_.centered) take("Add", p_.bias);
  }

  const Rewriter& r_;
  int root_;
  std::string& reason_;
  NormalizationPattern p_;
  bool reciprocal_ = false;  // what the root's end gives is 1 / root
  int mean_ = -1;
  std::string_view base_, numerator_;
  std::optional<Deviation> deviation_;  // what base_ is
  std::size_t rank_ = 0;
};

}  // namespace

std::optional<NormalizationPattern> match_normalization(const Rewriter& r, int index, bool centered,
                                                        std::string& reason) {
  return Matcher(r, index, centered, reason).match();
}

std::optional<Tensor> scale_of_ones(const Shape& dims) {
  const std::int64_t count = element_count(dims);
  if (count < 0) return std::nullopt;
  return Tensor::from(DType::kFloat32, dims,
                      std::vector<float>(static_cast<std::size_t>(count), 1.0F));
}

std::string shaped_constant(Rewriter& r, const std::string& name, const Shape& dims) {
  const Tensor* tensor = r.constant(name);
  if (tensor == nullptr || tensor->shape() == dims) return name;
  const auto shaped = tensor->reshaped(dims);
  return shaped.ok() ? r.add_constant(name, *shaped) : name;
}

}  // namespace tenonnx
