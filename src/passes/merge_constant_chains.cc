// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// merge_constant_chains: makes one operation with a constant of several in a row.
//
// before: (x * a) * b, (x * a) / b, (x / a) * b, (x / a) / b    after: x * (a b), x * (a / b),
//                                                                       x * (b / a), x / (a b)
//         (x + a) + b, (x - a) + b, ...                                x + (a + b), x + (b - a)
//         ((x * a) + b) * c                                            x * (a c) + (b c)
//         ((x + a) * b) + c                                            x * b + (a b + c)
//
// Constants are combined in double precision and rounded once. In the last two forms a
// multiplication may be a division too.
// Conditions: floating-point constants; the tensors between are used nowhere else; the merged
// constant has no more elements than the larger of the two.
// Class algebraic: fewer roundings, in another order; and what overflowed half way no longer does.
// Refuses: a factor or divisor that is 0, or a constant that is not finite; a merged constant that
// overflows or is below the smallest normal number of its dtype; the last factor of a GELU, which
// fuse_gelu and devices look for; two added constants that cancel (opposite signs, and less than
// half of the larger remains): (x + 12582912) - 12582912 rounds x to integers in float32, and x + 0
// does not.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/status.h"
#include "passes/constants.h"
#include "passes/gelu_pattern.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

// One operation of a chain: x * c, x / c, x + c or x - c.
struct Step {
  int node = -1;
  bool scales = false;   // Mul or Div
  bool inverse = false;  // Div or Sub
  std::string x;
  const Tensor* constant = nullptr;
};

std::optional<Step> step_at(const Rewriter& r, int index) {
  if (index < 0) return std::nullopt;
  const onnx::NodeProto& node = r.node(index);
  Step step;
  step.node = index;
  step.scales = is_op(node, "Mul") || is_op(node, "Div");
  step.inverse = is_op(node, "Div") || is_op(node, "Sub");
  if (!step.scales && !is_op(node, "Add") && !is_op(node, "Sub")) return std::nullopt;
  const bool left = !step.inverse && r.constant(node.input(0)) != nullptr;
  step.x = node.input(left ? 1 : 0);
  step.constant = r.constant(node.input(left ? 0 : 1));
  // Where both are constant it is fold_constants' work.
  if (step.constant == nullptr || r.constant(step.x) != nullptr) return std::nullopt;
  return step;
}

// The step that makes what `step` takes, where nothing else takes it.
std::optional<Step> step_before(const Rewriter& r, const Step& step) {
  if (r.sole_user(step.x) != step.node) return std::nullopt;
  return step_at(r, r.producer(step.x));
}

std::string unusable(const Step& step) {
  const auto values = doubles(*step.constant);
  if (!values) return fmt::format("its constant is {}", to_string(step.constant->dtype()));
  for (const double value : *values) {
    if (!std::isfinite(value)) return "a constant is not finite";
    if (step.scales && value == 0) return "a factor is 0";
  }
  return "";
}

double product(double a, double b) { return a * b; }

// What `step` does to a constant that is added before it.
std::optional<Tensor> scaled(const Tensor& constant, const Step& step) {
  return combine(constant, *step.constant,
                 [&](double c, double s) { return step.inverse ? c / s : c * s; });
}

std::optional<Tensor> plus(const Tensor& a, bool minus_a, const Tensor& b, bool minus_b) {
  return combine(a, b, [=](double x, double y) { return (minus_a ? -x : x) + (minus_b ? -y : y); });
}

// "a constant of 1e+08 and one of -1e+08 cancel: ..." where some elements do; else "".
std::string cancelling(const Tensor& a, bool minus_a, const Tensor& b, bool minus_b) {
  std::string reason;
  combine(a, b, [&](double x, double y) {
    if (minus_a) x = -x;
    if (minus_b) y = -y;
    if (reason.empty() && x * y < 0 && std::fabs(x + y) < std::max(std::fabs(x), std::fabs(y)) / 2)
      reason = fmt::format(
          "the constants {:.6g} and {:.6g} cancel: what the first addition rounds away may be "
          "meant",
          x, y);
    return 1.0;
  });
  return reason;
}

bool not_larger(const Tensor& merged, const Tensor& a, const Tensor& b) {
  return merged.size() <= std::max(a.size(), b.size());
}

// Two of a kind in a row. The result is x * c (or x / c) for scales, x + c else.
struct Merged {
  Tensor constant;
  bool divides = false;
};

std::optional<Merged> merged_scales(const Step& a, const Step& b) {
  std::optional<Tensor> c;
  if (a.inverse == b.inverse) {
    c = combine(*a.constant, *b.constant, product);
  } else {
    c = combine(*a.constant, *b.constant,
                [&](double x, double y) { return a.inverse ? y / x : x / y; });
  }
  if (!c || !not_larger(*c, *a.constant, *b.constant)) return std::nullopt;
  return Merged{std::move(*c), a.inverse && b.inverse};
}

std::optional<Tensor> merged_shifts(const Step& a, const Step& b) {
  auto c = plus(*a.constant, a.inverse, *b.constant, b.inverse);
  if (!c || !not_larger(*c, *a.constant, *b.constant)) return std::nullopt;
  return c;
}

constexpr std::string_view kRefused =
    "the merged constant would be larger, or not a normal number of its dtype";

class Merger {
 public:
  explicit Merger(Rewriter& r) : r_(r) {}

  void offer(int i) {
    const auto last = step_at(r_, i);
    if (!last) return;
    const auto middle = step_before(r_, *last);
    if (!middle) return;
    const bool pair = middle->scales == last->scales;
    const auto first = pair ? std::nullopt : step_before(r_, *middle);
    if (!pair && (!first || first->scales != last->scales)) return;
    for (const Step* step : {&*last, &*middle, first ? &*first : nullptr}) {
      if (step == nullptr) continue;
      if (const std::string reason = unusable(*step); !reason.empty()) return r_.refuse(i, reason);
      if (step != &*last && ends_gelu(r_, step->node))
        return r_.refuse(
            i, fmt::format("{} is the last factor of a GELU", node_label(r_.node(step->node))));
    }
    if (pair) {
      merge_pair(*middle, *last);
    } else if (last->scales) {
      merge_scale_shift_scale(*first, *middle, *last);
    } else {
      merge_shift_scale_shift(*first, *middle, *last);
    }
  }

 private:
  onnx::NodeProto node(const char* op_type, const std::string& x, const Tensor& constant,
                       const std::string& y) {
    return make_node(op_type, {x, r_.add_constant(y + "_constant", constant)}, {y});
  }

  void merge_pair(const Step& a, const Step& b) {
    const std::string& y = r_.node(b.node).output(0);
    const char* op_type = "Add";
    std::optional<Tensor> constant;
    if (b.scales) {
      auto merged = merged_scales(a, b);
      if (merged) {
        op_type = merged->divides ? "Div" : "Mul";
        constant = std::move(merged->constant);
      }
    } else {
      if (const std::string reason = cancelling(*a.constant, a.inverse, *b.constant, b.inverse);
          !reason.empty())
        return r_.refuse(b.node, reason);
      constant = merged_shifts(a, b);
    }
    if (!constant) return r_.refuse(b.node, kRefused);
    if (!r_.begin({a.node, b.node})) return;
    r_.replace(b.node, node(op_type, a.x, *constant, y));
    r_.remove(a.node);
    r_.apply(b.node, fmt::format("{} and {} by constants become one {}", r_.node(a.node).op_type(),
                                 r_.node(b.node).op_type(), op_type));
  }

  // ((x * a) + b) * c
  void merge_scale_shift_scale(const Step& a, const Step& b, const Step& c) {
    const auto scale = merged_scales(a, c);
    const auto shift = scaled(*b.constant, c);
    if (!scale || !shift || !not_larger(*shift, *b.constant, *c.constant))
      return r_.refuse(c.node, kRefused);
    if (!r_.begin({a.node, b.node, c.node})) return;
    const std::string middle = r_.fresh(r_.node(c.node).output(0) + "_scaled");
    r_.replace(b.node, node(scale->divides ? "Div" : "Mul", a.x, scale->constant, middle));
    finish_three(a, b, c, middle, *shift, b.inverse);
  }

  // ((x + a) * b) + c
  void merge_shift_scale_shift(const Step& a, const Step& b, const Step& c) {
    const auto moved = scaled(*a.constant, b);
    if (moved)
      if (const std::string reason = cancelling(*moved, a.inverse, *c.constant, c.inverse);
          !reason.empty())
        return r_.refuse(c.node, reason);
    const auto shift =
        moved ? plus(*moved, a.inverse, *c.constant, c.inverse) : std::optional<Tensor>();
    if (!shift || !not_larger(*shift, *a.constant, *c.constant)) return r_.refuse(c.node, kRefused);
    if (!r_.begin({a.node, b.node, c.node})) return;
    const std::string middle = r_.fresh(r_.node(c.node).output(0) + "_scaled");
    onnx::NodeProto scale = r_.node(b.node);
    for (std::string& input : *scale.mutable_input())
      if (input == b.x) input = a.x;
    scale.set_output(0, middle);
    r_.replace(b.node, std::move(scale));
    finish_three(a, b, c, middle, *shift, false);
  }

  void finish_three(const Step& a, const Step& b, const Step& c, const std::string& middle,
                    const Tensor& shift, bool minus) {
    r_.replace(c.node, node(minus ? "Sub" : "Add", middle, shift, r_.node(c.node).output(0)));
    r_.remove(a.node);
    r_.apply(c.node, fmt::format("{}, {} and {} by constants become two", r_.node(a.node).op_type(),
                                 r_.node(b.node).op_type(), r_.node(c.node).op_type()));
  }

  Rewriter& r_;
};

}  // namespace

namespace passes {

Result<PassOutcome> merge_constant_chains(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("merge_constant_chains", options, {}));
  Rewriter r(model);
  Merger merger(r);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) { merger.offer(i); }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
