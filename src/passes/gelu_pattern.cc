// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/gelu_pattern.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numbers>

#include "passes/fusion.h"

namespace tenonnx {
namespace {

// c[0] + c[1] x + c[2] x^2 + c[3] x^3
using Cubic = std::array<double, 4>;
constexpr int kDeepest = 8;  // the longest chain in the wild, tanh of PyTorch, is 5 deep

std::optional<Cubic> product(const Cubic& a, const Cubic& b) {
  Cubic c = {};
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      if (a[i] == 0 || b[j] == 0) continue;
      if (i + j >= c.size()) return std::nullopt;
      c[i + j] += a[i] * b[j];
    }
  }
  return c;
}

// `name` as a polynomial of x; adds the nodes that compute it.
std::optional<Cubic> polynomial(const Rewriter& r, std::string_view name, std::string_view x,
                                std::vector<int>& nodes, int depth = 0) {
  name = uncast(r, name, nodes);
  if (name == x) return Cubic{0, 1, 0, 0};
  if (const auto value = scalar_beside(r, name, x)) return Cubic{*value, 0, 0, 0};
  const int i = r.producer(name);
  if (i < 0 || depth > kDeepest) return std::nullopt;
  const onnx::NodeProto& node = r.node(i);
  const bool known = is_op(node, "Mul") || is_op(node, "Add") || is_op(node, "Sub") ||
                     is_op(node, "Div") || is_op(node, "Pow");
  if (!known) return std::nullopt;
  nodes.push_back(i);
  const auto a = polynomial(r, node.input(0), x, nodes, depth + 1);
  const auto b = a ? polynomial(r, node.input(1), x, nodes, depth + 1) : std::nullopt;
  if (!a || !b) return std::nullopt;
  if (is_op(node, "Mul")) return product(*a, *b);
  if (is_op(node, "Add") || is_op(node, "Sub")) {
    const double sign = is_op(node, "Add") ? 1 : -1;
    Cubic c = *a;
    for (std::size_t k = 0; k < c.size(); ++k) c[k] += sign * (*b)[k];
    return c;
  }
  const double value = (*b)[0];
  if ((*b)[1] != 0 || (*b)[2] != 0 || (*b)[3] != 0 || value == 0) return std::nullopt;
  if (is_op(node, "Div")) return product(*a, Cubic{1 / value, 0, 0, 0});
  if (value == 2) return product(*a, *a);
  if (value != 3) return std::nullopt;
  const auto square = product(*a, *a);
  return square ? product(*square, *a) : std::nullopt;
}

bool is_argument(const Cubic& c, bool tanh) {
  if (c[0] != 0 || c[2] != 0) return false;
  if (!tanh) return is_near(c[1], std::numbers::sqrt2 / 2) && c[3] == 0;
  const double scale = std::sqrt(2 * std::numbers::inv_pi);
  // Products of two float32 constants, each of which has its own rounding.
  return is_near(c[1], scale) && is_near(c[3], scale * 0.044715);
}

// What may be x: an operand of the product, or what that is a multiple of.
struct Candidate {
  std::string_view x;
  double factor = 1;
  std::vector<int> nodes;  // the Mul or Div that makes the multiple, casts that do nothing
};

std::vector<Candidate> candidates(const Rewriter& r, std::string_view operand) {
  std::vector<int> casts;
  const std::string_view name = uncast(r, operand, casts);
  std::vector<Candidate> list = {{name, 1, casts}};
  const int i = r.producer(name);
  if (i < 0 || r.node(i).input_size() != 2) return list;
  const onnx::NodeProto& node = r.node(i);
  casts.push_back(i);
  const auto add = [&](std::string_view x, double factor) {
    Candidate candidate = {x, factor, casts};
    candidate.x = uncast(r, x, candidate.nodes);
    list.push_back(std::move(candidate));
  };
  const auto right = scalar_beside(r, node.input(1), node.input(0));
  const auto left = scalar_beside(r, node.input(0), node.input(1));
  if (is_op(node, "Mul") && right) add(node.input(0), *right);
  if (is_op(node, "Mul") && left) add(node.input(1), *left);
  if (is_op(node, "Div") && right && *right != 0) add(node.input(0), 1 / *right);
  return list;
}

}  // namespace

std::optional<GeluPattern> match_gelu(const Rewriter& r, int index, std::string& reason) {
  const onnx::NodeProto& inner = r.node(index);
  GeluPattern gelu;
  gelu.tanh = is_op(inner, "Tanh");
  if (!gelu.tanh && !is_op(inner, "Erf")) return std::nullopt;
  std::vector<int> path = {index};
  std::string_view at = inner.output(0);
  double factor = 1;
  const auto step = [&](int user) {
    path.push_back(user);
    at = r.node(user).output(0);
  };
  const auto scale_at = [&](int user) {
    return user >= 0 && is_op(r.node(user), "Mul")
               ? scalar_beside(r, other_operand(r.node(user), at), at)
               : std::nullopt;
  };
  int user = r.sole_user(at);
  if (const auto scale = scale_at(user)) {  // 0.5 erf + 0.5
    factor = *scale;
    step(user);
    user = r.sole_user(at);
  }
  if (user < 0 || !is_op(r.node(user), "Add")) return std::nullopt;
  const auto one = scalar_beside(r, other_operand(r.node(user), at), at);
  if (!one) return std::nullopt;
  if (!is_near(*one, factor)) {
    reason =
        fmt::format("adds {} to {} times {}, and GELU adds as much", *one, factor, inner.op_type());
    return std::nullopt;
  }
  step(user);
  std::vector<Candidate> xs;
  bool right_argument = false;
  for (user = r.sole_user(at); user >= 0; user = r.sole_user(at)) {
    const onnx::NodeProto& node = r.node(user);
    const std::string_view other = other_operand(node, at);
    if (other.empty()) break;
    const std::optional<double> value = scalar_beside(r, other, at);
    if (is_op(node, "Mul") && value) {
      factor *= *value;
    } else if (is_op(node, "Div") && value && *value != 0 && node.input(0) == at) {
      factor /= *value;
    } else if (is_op(node, "Mul") && xs.empty()) {
      xs = candidates(r, other);
    } else {
      break;
    }
    step(user);
    for (const Candidate& candidate : xs) {
      std::vector<int> nodes = path;
      nodes.insert(nodes.end(), candidate.nodes.begin(), candidate.nodes.end());
      const auto cubic = polynomial(r, inner.input(0), candidate.x, nodes);
      if (!cubic || !is_argument(*cubic, gelu.tanh)) continue;
      right_argument = true;
      if (!is_near(factor * candidate.factor, 0.5)) continue;
      reason = used_outside(r, nodes, user);
      if (!reason.empty()) return std::nullopt;
      gelu.x = candidate.x;
      gelu.last = user;
      gelu.nodes = std::move(nodes);
      return gelu;
    }
  }
  if (xs.empty()) return std::nullopt;
  reason = right_argument
               ? fmt::format("the factor of x (1 + {}) is not 0.5", inner.op_type())
               : fmt::format("the argument of {} is not {} of the factor", inner.op_type(),
                             gelu.tanh ? "sqrt(2/pi) (x + 0.044715 x^3)" : "x / sqrt(2)");
  return std::nullopt;
}

bool ends_gelu(const Rewriter& r, int index) {
  // The last node is a Mul or Div of a product that holds the sum that holds Erf or Tanh: at most
  // four steps (Mul by 0.5, Mul by x, Add, Mul by 0.5).
  const auto reaches = [&](const auto& self, int node, int steps) -> bool {
    if (node < 0) return false;
    if (is_op(r.node(node), "Erf") || is_op(r.node(node), "Tanh")) {
      std::string reason;
      const auto gelu = match_gelu(r, node, reason);
      return gelu && gelu->last == index;
    }
    const onnx::NodeProto& n = r.node(node);
    if (steps == 0 || !(is_op(n, "Mul") || is_op(n, "Add") || is_op(n, "Div"))) return false;
    for (const std::string& input : n.input())
      if (self(self, r.producer(input), steps - 1)) return true;
    return false;
  };
  return reaches(reaches, index, 4);
}

}  // namespace tenonnx
