// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/ms_deform_attn_pattern.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "passes/layout.h"
#include "passes/movement.h"
#include "passes/ms_deform_attn_operands.h"
#include "passes/strided_parts.h"

namespace tenonnx {
namespace {

// Follows the samples of one group to the output. Views are of the space [N, D, Q, points].
class Follower {
 public:
  Follower(const Rewriter& r, int first) : r_(r), first_(first) {}

  MSDeformFinding find() {
    MSDeformFinding finding;
    if (collect() && check_levels() && weigh() && sum() && settle()) {
      finding.match = std::move(match_);
    } else if (!miss_.reason.empty()) {
      finding.miss = std::move(miss_);
    }
    return finding;
  }

 private:
  enum Dim : std::size_t { kN, kD, kQ, kP };

  bool fail(int node, std::string reason) {
    miss_ = {node, std::move(reason)};
    return false;
  }
  std::string label(int node) const { return node_label(r_.node(node)); }

  // The node after `tensor`, the only one; -1 and a miss where there is another.
  int only_user(const std::string& tensor) {
    const int user = r_.sole_user(tensor);
    if (user < 0)
      fail(first_, fmt::format("'{}', which would go, is {}", tensor,
                               r_.is_graph_output(tensor)  ? "an output of the graph"
                               : r_.use_count(tensor) == 0 ? "not used"
                                                           : "used by several nodes"));
    return user;
  }

  // The samples of all levels, side by side.
  bool collect() {
    std::string tensor = r_.node(first_).output(0);
    int user = only_user(tensor);
    while (user >= 0 && moved_from(r_, user) == tensor) {
      tensor = r_.node(user).output(0);
      user = only_user(tensor);
    }
    if (user < 0) return false;
    if (!is_op(r_.node(user), "Concat")) {
      add_level(first_);
      samples_ = r_.node(first_).output(0);
      return true;
    }
    concat_ = user;
    std::vector<MovementChain> chains;
    std::vector<int> samples;  // of each input; -1: another node's
    for (const std::string& input : r_.node(user).input()) {
      chains.push_back(movement_chain(r_, input));
      samples.push_back(r_.producer(chains.back().tensors.back(), "GridSample"));
    }
    // Another one is the first, and tells.
    if (*std::find_if(samples.begin(), samples.end(), [](int s) { return s >= 0; }) != first_)
      return false;
    for (std::size_t l = 0; l < samples.size(); ++l) {
      if (samples[l] < 0)
        return fail(first_, fmt::format("{} joins its samples with '{}', which no GridSample makes",
                                        label(user), r_.node(user).input(static_cast<int>(l))));
      for (const std::string& moved : chains[l].tensors)
        if (only_user(moved) < 0) return false;
      match_.nodes.insert(match_.nodes.end(), chains[l].nodes.begin(), chains[l].nodes.end());
      add_level(samples[l]);
    }
    match_.nodes.push_back(concat_);
    samples_ = r_.node(concat_).output(0);
    return true;
  }

  void add_level(int sample) {
    match_.levels.push_back({sample});
    match_.nodes.push_back(sample);
  }

  bool check_levels() {
    for (MSDeformMatch::Level& level : match_.levels) {
      if (std::string reason = unsuitable(r_, level.grid_sample); !reason.empty())
        return fail(level.grid_sample, std::move(reason));
      const onnx::NodeProto& node = r_.node(level.grid_sample);
      const auto value = r_.static_shape(node.input(0)), grid = r_.static_shape(node.input(1));
      if (space_.empty()) space_ = {(*value)[0], (*value)[1], (*grid)[1], 0};
      if (Shape{(*value)[0], (*value)[1], (*grid)[1]} != Shape(space_.begin(), space_.end() - 1))
        return fail(
            level.grid_sample,
            fmt::format("it takes {} pictures of {} channels at {} places, the first level "
                        "{} of {} at {}",
                        (*value)[0], (*value)[1], (*grid)[1], space_[kN], space_[kD], space_[kQ]));
      const bool discrete = attribute_or(node, "mode", "linear") == kDiscreteMode;
      if (&level != &match_.levels.front() && discrete != match_.discrete)
        return fail(level.grid_sample, "its mode is not that of the first level");
      match_.discrete = discrete;
      level.height = (*value)[2];
      level.width = (*value)[3];
      level.points = (*grid)[2];
      space_[kP] += level.points;
    }
    return lay_out();
  }

  // The view of `samples_`.
  bool lay_out() {
    std::vector<StridedView> parts;
    std::int64_t start = 0;
    for (const MSDeformMatch::Level& level : match_.levels) {
      const std::int64_t q = space_[kP], d = q * space_[kQ], n = d * space_[kD];
      parts.push_back(StridedView::from_axes(
          start, {{{space_[kN], n}}, {{space_[kD], d}}, {{space_[kQ], q}}, {{level.points, 1}}}));
      start += level.points;
    }
    if (concat_ < 0) {
      view_ = parts.front();
      return true;
    }
    const onnx::NodeProto& concat = r_.node(concat_);
    for (std::size_t l = 0; l < parts.size(); ++l) {
      const MovementChain chain = movement_chain(r_, concat.input(static_cast<int>(l)));
      for (std::size_t i = chain.nodes.size(); i-- > 0;)
        if (!move(r_, chain.nodes[i], chain.tensors[i], parts[l]))
          return fail(chain.nodes[i], "it moves samples in a way that cannot be followed");
    }
    std::int64_t axis = attribute_or(concat, "axis", std::int64_t{0});
    if (axis < 0) axis += static_cast<std::int64_t>(parts.front().rank());
    const auto joined = StridedView::joined(parts, static_cast<std::size_t>(axis));
    if (!joined) return fail(concat_, "it does not put the samples' points side by side");
    view_ = *joined;
    return true;
  }

  // Movements up to the product with the weights, and that.
  bool weigh() {
    int user = only_user(samples_);
    while (user >= 0 && moved_from(r_, user) == samples_) {
      if (!step(user)) return false;
      user = only_user(samples_);
    }
    if (user < 0) return false;
    const onnx::NodeProto& node = r_.node(user);
    const bool product = is_op(node, "Mul"), matrix = is_op(node, "MatMul");
    if (!product && !matrix)
      return fail(first_, fmt::format("{} takes its samples: they are not multiplied by weights",
                                      label(user)));
    if (node.input(0) == node.input(1)) return fail(user, "it squares the samples");
    const int side = node.input(0) == samples_ ? 1 : 0;
    match_.nodes.push_back(user);
    samples_ = node.output(0);
    const auto out = r_.static_shape(samples_);
    const Shape shape = view_.shape();
    if (product && (!out || *out != shape))
      return fail(user, fmt::format("its weights '{}' make {} of samples {}", node.input(side),
                                    out ? to_string(*out) : "an unknown shape", to_string(shape)));
    if (matrix && (side != 1 || !out || out->size() != shape.size() || out->back() != 1))
      return fail(user, "it is not a product of the samples and one column of weights");
    const DType grid = r_.dtype(r_.node(first_).input(1)), weight = r_.dtype(node.input(side));
    if (grid != weight)
      return fail(user,
                  fmt::format("its weights are {}, the coordinates {}: the operator takes one "
                              "type for both",
                              to_string(weight), to_string(grid)));
    const MovementChain chain = movement_chain(r_, node.input(side));
    for (std::size_t k = 0; k < chain.tensors.size(); ++k) {
      auto weights = chain.view(r_, k);
      if (!weights) continue;
      if (matrix && !as_row(*weights)) return fail(user, "its weights are not a column");
      if (auto form = weights_form(*weights)) {
        form->tensor = chain.tensors[k];
        weights_.push_back(std::move(*form));
      }
    }
    if (weights_.empty()) return fail(user, why_not(r_.node(user).input(side)));
    if (matrix) reduce(view_.rank() - 1);
    return true;
  }

  // The weights of a MatMul, [..., points, 1], as Mul would take them: [..., 1, points].
  static bool as_row(StridedView& weights) {
    if (weights.rank() < 2 || weights.dimension(weights.rank() - 1) != 1) return false;
    std::vector<std::int64_t> perm;
    for (std::size_t i = 0; i < weights.rank(); ++i) perm.push_back(static_cast<std::int64_t>(i));
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return weights.transpose(perm);
  }

  std::string why_not(const std::string& weights) const {
    const auto shape = r_.static_shape(weights);
    return fmt::format(
        "its weights '{}' {} are not one for each query, head and point, the same for all channels "
        "of a head",
        weights, shape ? to_string(*shape) : "of unknown shape");
  }

  // [N, Q, points] of the tensor that the weights come from.
  std::optional<MSDeformOperand::Piece> weights_form(StridedView weights) const {
    if (!weights.broadcast(view_.shape())) return std::nullopt;
    const auto pairs = together(view_, weights);
    if (!pairs) return std::nullopt;
    std::vector<StridePart> parts;
    for (const auto& [mode, other] : *pairs)
      if (!cut_at_dimensions(space_, mode, other, parts)) return std::nullopt;
    std::sort(parts.begin(), parts.end(),
              [](const StridePart& a, const StridePart& b) { return a.stride > b.stride; });
    std::vector<std::vector<StrideMode>> axes(space_.size());
    for (const StridePart& part : parts) {
      if ((part.dim == kD) != (part.other == 0)) return std::nullopt;
      axes[part.dim].push_back({part.size, part.other});
    }
    return MSDeformOperand::Piece{
        "", StridedView::from_axes(weights.offset(), {axes[kN], axes[kQ], axes[kP]})};
  }

  bool step(int node) {
    match_.nodes.push_back(node);
    samples_ = r_.node(node).output(0);
    return move(r_, node, samples_, view_) ||
           fail(node, "it moves samples in a way that cannot be followed");
  }

  // The axis becomes 1; false where it is not of points alone.
  bool reduce(std::size_t axis) {
    for (const StrideMode& mode : view_.axis(axis))
      if (mode.size > 1 && mode.stride * mode.size > space_[kP]) return false;
    std::vector<std::vector<StrideMode>> axes;
    for (std::size_t i = 0; i < view_.rank(); ++i)
      axes.push_back(i == axis ? std::vector<StrideMode>() : view_.axis(i));
    view_ = StridedView::from_axes(view_.offset(), std::move(axes));
    return true;
  }

  bool points_left() const {
    const std::vector<StrideMode> run = view_.run();
    return std::any_of(run.begin(), run.end(),
                       [&](const StrideMode& mode) { return mode.stride < space_[kP]; });
  }

  bool sum() {
    bool summed = is_op(r_.node(match_.nodes.back()), "MatMul");
    while (!summed || points_left()) {
      const int user = only_user(samples_);
      if (user < 0) return false;
      if (moved_from(r_, user) == samples_) {
        if (!step(user)) return false;
        continue;
      }
      const onnx::NodeProto& node = r_.node(user);
      if (!is_op(node, "ReduceSum"))
        return fail(first_, fmt::format("{} takes its weighted samples: they are not summed over "
                                        "the points",
                                        label(user)));
      auto axes = ints_of(r_, node, "axes", 1);
      if (!axes) return fail(user, "its axes are not constant");
      const auto rank = static_cast<std::int64_t>(view_.rank());
      for (std::int64_t& axis : *axes) axis += axis < 0 ? rank : 0;
      std::sort(axes->rbegin(), axes->rend());
      for (const std::int64_t axis : *axes) {
        const auto at = static_cast<std::size_t>(axis);
        if (at >= view_.rank() || !reduce(at))
          return fail(user, fmt::format("it sums axis {}, which is not of points alone", axis));
        if (attribute_or(node, "keepdims", std::int64_t{1}) == 0) view_.erase_axis(at);
      }
      match_.nodes.push_back(user);
      samples_ = node.output(0);
      summed = true;
    }
    return true;
  }

  // Batch and heads are N's factors: of all pairs the one that the graph needs least work for.
  bool settle() {
    int best = -1;
    const std::vector<int> nodes = match_.nodes;
    for (std::int64_t batch = 1; batch <= space_[kN]; ++batch) {
      if (space_[kN] % batch != 0) continue;
      MSDeformMatch match = match_;
      match.batch = batch;
      match.heads = space_[kN] / batch;
      match.channels = space_[kD];
      match.queries = space_[kQ];
      const auto cost = complete(match);
      if (!cost || (best >= 0 && *cost >= best)) continue;
      best = *cost;
      chosen_ = std::move(match);
    }
    if (best < 0)
      return fail(first_, "its values, locations or weights cannot be put in the operator's order");
    match_ = std::move(chosen_);
    return true;
  }

  std::optional<int> complete(MSDeformMatch& match) {
    std::vector<std::string> values, grids;
    for (const MSDeformMatch::Level& level : match.levels) {
      values.push_back(r_.node(level.grid_sample).input(0));
      grids.push_back(r_.node(level.grid_sample).input(1));
    }
    auto value = value_operand(r_, values, match.batch);
    auto locations = locations_operand(r_, grids, match.batch);
    auto weights = weights_operand(r_, weights_, match.batch);
    const auto output = place_output(match);
    if (!value || !locations || !weights || !output) return std::nullopt;
    match.value = std::move(*value);
    match.locations = std::move(*locations);
    match.weights = std::move(*weights);
    return match.value.cost + match.locations.cost + match.weights.cost + *output;
  }

  // The tensor after the sum, perhaps moved, that is nearest to [batch, queries, heads * channels].
  std::optional<int> place_output(MSDeformMatch& match) {
    const Shape wanted = {match.batch, match.queries, match.heads * match.channels};
    StridedView view = view_;
    std::string tensor = samples_;
    std::vector<int> nodes = match.nodes;
    std::optional<int> best;
    for (;;) {
      if (const auto own = in_operator_order(view, match)) {
        const int cost = !own->is_whole(element_count(wanted)) ? 2 : own->shape() != wanted ? 1 : 0;
        if (!best || cost < *best) {
          best = cost;
          match.output = tensor;
          match.output_view = *own;
          match.nodes = nodes;
          match.last = nodes.back();
        }
      }
      const int user = r_.sole_user(tensor);
      if (user < 0 || moved_from(r_, user) != tensor) return best;
      tensor = r_.node(user).output(0);
      nodes.push_back(user);
      if (r_.node(user).output_size() != 1 || !move(r_, user, tensor, view)) return best;
    }
  }

  // A view of [N, D, Q, points], its points summed, as one of [batch, Q, heads, D].
  std::optional<StridedView> in_operator_order(const StridedView& view,
                                               const MSDeformMatch& match) const {
    const Shape space = {match.batch, match.heads, space_[kD], space_[kQ], space_[kP]};
    const std::int64_t h = space_[kD], q = h * match.heads, b = q * space_[kQ];
    const std::vector<std::int64_t> strides = {b, h, 1, q, 0};
    std::vector<std::vector<StrideMode>> axes;
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < view.rank(); ++i) {
      std::vector<StridePart> parts;
      const std::vector<StrideMode> modes = coalesced(view.axis(i));
      for (auto mode = modes.rbegin(); mode != modes.rend(); ++mode)
        if (!cut_at_dimensions(space, *mode, 0, parts)) return std::nullopt;
      std::vector<StrideMode>& axis = axes.emplace_back();
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        axis.push_back({part->size, part->stride * strides[part->dim]});
        elements *= part->size;
      }
    }
    if (elements != b * match.batch) return std::nullopt;  // a part of it: Slice, Split
    return StridedView::from_axes(0, std::move(axes));
  }

  const Rewriter& r_;
  const int first_;
  int concat_ = -1;
  Shape space_;          // N, D, Q, points
  std::string samples_;  // where the samples are by now
  StridedView view_;
  std::vector<MSDeformOperand::Piece> weights_;
  MSDeformMatch match_, chosen_;
  MSDeformMiss miss_;
};

}  // namespace

std::int64_t MSDeformMatch::points() const {
  std::int64_t points = 0;
  for (const Level& level : levels) points += level.points;
  return points;
}

std::int64_t MSDeformMatch::pixels() const {
  std::int64_t pixels = 0;
  for (const Level& level : levels) pixels += level.height * level.width;
  return pixels;
}

MSDeformFinding find_ms_deform_attn(const Rewriter& r, int index) {
  if (!is_op(r.node(index), "GridSample")) return {};
  return Follower(r, index).find();
}

}  // namespace tenonnx
