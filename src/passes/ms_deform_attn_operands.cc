// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/ms_deform_attn_operands.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/status.h"
#include "passes/movement.h"

namespace tenonnx {
namespace {

using Piece = MSDeformOperand::Piece;
// The tensors that hold one level's part, nearest first; each seen in the order of the operator.
using Forms = std::vector<Piece>;
using ShapeTest = std::function<bool(const Shape&)>;

constexpr int kReshape = 1, kTranspose = 2;
constexpr int kJoin = 4;    // several Transposes and a Concat
constexpr int kAffine = 8;  // Mul and Add
// Nodes between a tensor and a transpose of it that the graph has already.
constexpr int kSearchDepth = 4;
constexpr std::size_t kSearchWidth = 64;

std::optional<int> cost_of(const Rewriter& r, const Piece& piece, const ShapeTest& fits) {
  const auto shape = r.static_shape(piece.tensor);
  if (!shape) return std::nullopt;
  const std::int64_t size = element_count(*shape);
  if (piece.view.is_whole(size)) return fits(*shape) ? 0 : kReshape;
  if (rearrangement(piece.view, size)) return kTranspose;
  return std::nullopt;
}

void keep_better(std::optional<MSDeformOperand>& best, MSDeformOperand other) {
  if (!best || other.cost <= best->cost) best = std::move(other);
}

// A tensor moved from `from` that has the order of `wanted`, a view of `from`.
std::optional<Piece> existing(const Rewriter& r, const std::string& from,
                              const StridedView& wanted) {
  struct Seen {
    std::string tensor;
    StridedView view;
    int depth;
  };
  const auto shape = r.static_shape(from);
  if (!shape) return std::nullopt;
  std::vector<Seen> queue = {{from, StridedView::of(*shape), 0}};
  for (std::size_t i = 0; i < queue.size() && queue.size() < kSearchWidth; ++i) {
    const Seen at = queue[i];
    if (at.view.same_order(wanted)) {
      const auto found = r.static_shape(at.tensor);
      if (found) return Piece{at.tensor, StridedView::of(*found)};
    }
    if (at.depth == kSearchDepth) continue;
    for (const Use& use : r.index().uses(at.tensor)) {
      if (use.input != 0 || moved_from(r, use.node) != at.tensor) continue;
      for (const std::string& output : r.node(use.node).output()) {
        StridedView view = at.view;
        if (move(r, use.node, output, view)) queue.push_back({output, view, at.depth + 1});
      }
    }
  }
  return std::nullopt;
}

std::optional<MSDeformOperand> best_operand(const Rewriter& r, const std::vector<Forms>& levels,
                                            std::size_t axis, const ShapeTest& fits) {
  std::optional<MSDeformOperand> best;
  // One tensor that all levels are parts of.
  for (const Piece& first : levels.front()) {
    std::vector<StridedView> views;
    for (const Forms& forms : levels) {
      const auto same = std::find_if(forms.begin(), forms.end(), [&](const Piece& form) {
        return form.tensor == first.tensor;
      });
      if (same != forms.end()) views.push_back(same->view);
    }
    if (views.size() != levels.size()) continue;
    const auto joined = StridedView::joined(views, axis);
    if (!joined) continue;
    Piece piece{first.tensor, *joined};
    auto cost = cost_of(r, piece, fits);
    if (!cost) continue;
    if (*cost == kTranspose) {
      if (auto other = existing(r, first.tensor, *joined)) {
        other->view.reshape(joined->shape());
        piece = std::move(*other);
        cost = cost_of(r, piece, fits);
      }
    }
    if (cost) keep_better(best, {{std::move(piece)}, static_cast<int>(axis), *cost, false});
  }
  if (best) return best;
  // Each level from a tensor of its own.
  MSDeformOperand operand;
  operand.axis = static_cast<int>(axis);
  operand.cost = kJoin;
  for (const Forms& forms : levels) {
    std::optional<std::pair<int, Piece>> own;
    for (const Piece& form : forms) {
      const auto cost = cost_of(r, form, [&](const Shape& s) { return s == form.view.shape(); });
      if (cost && (!own || *cost <= own->first)) own = {*cost, form};
    }
    if (!own) return std::nullopt;
    operand.cost += own->first;
    operand.pieces.push_back(std::move(own->second));
  }
  return operand;
}

// [N, D, H, W] to [batch, H * W, heads * D].
bool to_value_order(StridedView& view, std::int64_t batch) {
  const Shape s = view.shape();
  if (s.size() != 4 || s[0] % batch != 0) return false;
  const std::int64_t heads = s[0] / batch;
  return view.reshape({batch, heads, s[1], s[2] * s[3]}) && view.transpose({0, 3, 1, 2}) &&
         view.reshape({batch, s[2] * s[3], heads * s[1]});
}

// [N, Q, ...] to [batch, Q, heads, ...].
bool to_query_order(StridedView& view, std::int64_t batch) {
  Shape s = view.shape();
  if (s.size() < 2 || s[0] % batch != 0) return false;
  s.insert(s.begin() + 1, s[0] / batch);
  s[0] = batch;
  std::vector<std::int64_t> perm;
  for (std::size_t i = 0; i < s.size(); ++i) perm.push_back(static_cast<std::int64_t>(i));
  std::swap(perm[1], perm[2]);
  return view.reshape(s) && view.transpose(perm);
}

// A constant scalar, also one that the exporter casts: torch.export writes Cast(2).
std::optional<double> scalar_of(const Rewriter& r, const std::string& name) {
  if (const auto value = r.scalar(name)) return value;
  const int cast = std::max(r.producer(name, "Cast"), r.producer(name, "CastLike"));
  return cast < 0 ? std::nullopt : r.scalar(r.node(cast).input(0));
}

// y = scale * x + shift by one node that computes with a constant scalar.
struct Affine {
  std::string x;
  double scale = 1, shift = 0;
};

std::optional<Affine> affine_at(const Rewriter& r, int index) {
  if (index < 0) return std::nullopt;
  const onnx::NodeProto& node = r.node(index);
  const bool mul = is_op(node, "Mul"), div = is_op(node, "Div");
  const bool add = is_op(node, "Add"), sub = is_op(node, "Sub");
  if (!mul && !div && !add && !sub) return std::nullopt;
  int constant = 1;
  auto c = scalar_of(r, node.input(1));
  if (!c && (mul || add)) {
    constant = 0;
    c = scalar_of(r, node.input(0));
  }
  if (!c || (div && *c == 0)) return std::nullopt;
  Affine affine{node.input(1 - constant)};
  if (mul) affine.scale = *c;
  if (div) affine.scale = 1 / *c;
  if (add) affine.shift = *c;
  if (sub) affine.shift = -*c;
  // A scalar of a higher rank would change the shape.
  const auto before = r.static_shape(affine.x), after = r.static_shape(node.output(0));
  if (!before || !after || *before != *after) return std::nullopt;
  return affine;
}

// What a grid is moved from, in two lists: tensors of the grid itself, and those of which the grid
// is 2 x - 1.
struct GridForms {
  Forms grid, location;
};

GridForms grid_forms(const Rewriter& r, const std::string& grid, std::int64_t batch) {
  struct Step {
    int node;  // that makes the tensor before of this one
    std::string tensor;
    bool affine;
  };
  std::vector<Step> steps = {{-1, grid, false}};
  double scale = 1, shift = 0;
  GridForms forms;
  for (;;) {
    const std::string& tensor = steps.back().tensor;
    const auto shape = r.static_shape(tensor);
    if (!shape || std::any_of(shape->begin(), shape->end(), [](auto d) { return d < 1; })) break;
    const bool is_location = scale == 2 && shift == -1;
    if (is_location || (scale == 1 && shift == 0)) {
      StridedView view = StridedView::of(*shape);
      bool known = true;
      for (std::size_t i = steps.size() - 1; i > 0 && known; --i)
        known = steps[i].affine || move(r, steps[i].node, steps[i - 1].tensor, view);
      if (known && to_query_order(view, batch))
        (is_location ? forms.location : forms.grid).push_back({tensor, view});
    }
    const int node = r.producer(tensor);
    if (std::string from = moved_from(r, node); !from.empty()) {
      steps.push_back({node, std::move(from), false});
      continue;
    }
    const auto affine = is_location ? std::nullopt : affine_at(r, node);
    if (!affine) break;
    shift += scale * affine->shift;
    scale *= affine->scale;
    steps.push_back({node, affine->x, true});
  }
  return forms;
}

}  // namespace

std::string unsuitable(const Rewriter& r, int grid_sample) {
  const onnx::NodeProto& node = r.node(grid_sample);
  const std::string mode = attribute_or(node, "mode", "linear");
  if (mode == "nearest")
    return "mode is 'nearest': what lies in the middle between two pixels may become the other "
           "one, as the location is computed in another order";
  if (mode != "linear" && mode != "bilinear" && mode != kDiscreteMode)
    return fmt::format("mode is '{}', not bilinear", mode);
  const std::string padding = attribute_or(node, "padding_mode", "zeros");
  if (padding != "zeros") return fmt::format("padding_mode is '{}', not 'zeros'", padding);
  if (attribute_or(node, "align_corners", std::int64_t{0}) != 0) return "align_corners is 1, not 0";
  for (int i = 0; i < 2; ++i) {
    const auto shape = r.static_shape(node.input(i));
    if (!shape)
      return fmt::format(
          "the shape of '{}' is not known, or not static: run fix_input_shapes and fold_constants "
          "before",
          node.input(i));
    if (shape->size() != 4) return "it samples volumes, not pictures";
    if (element_count(*shape) < 1) return "it has no elements";
  }
  const DType dtype = r.dtype(node.input(0));
  if (dtype != DType::kFloat32 && dtype != DType::kFloat16 && dtype != DType::kBFloat16)
    return fmt::format("it samples {}; the operator takes float32, float16 and bfloat16",
                       to_string(dtype));
  return "";
}

std::optional<MSDeformOperand> value_operand(const Rewriter& r,
                                             const std::vector<std::string>& inputs,
                                             std::int64_t batch) {
  std::vector<Forms> levels;
  std::int64_t heads = 0, pixels = 0;
  for (const std::string& input : inputs) {
    const MovementChain chain = movement_chain(r, input);
    Forms& forms = levels.emplace_back();
    for (std::size_t k = 0; k < chain.tensors.size(); ++k) {
      auto view = chain.view(r, k);
      if (!view || view->rank() != 4) continue;
      heads = view->dimension(0) / batch;
      if (to_value_order(*view, batch)) forms.push_back({chain.tensors[k], *view});
    }
    if (forms.empty()) return std::nullopt;
    pixels += forms.front().view.dimension(1);
  }
  return best_operand(r, levels, 1, [&](const Shape& s) {
    return (s.size() == 3 || (s.size() == 4 && s[2] == heads)) && s[0] == batch && s[1] == pixels;
  });
}

std::optional<MSDeformOperand> locations_operand(const Rewriter& r,
                                                 const std::vector<std::string>& grids,
                                                 std::int64_t batch) {
  std::vector<Forms> locations, plain;
  std::int64_t queries = 0, heads = 0;
  for (const std::string& grid : grids) {
    GridForms forms = grid_forms(r, grid, batch);
    if (forms.grid.empty()) return std::nullopt;
    queries = forms.grid.front().view.dimension(1);
    heads = forms.grid.front().view.dimension(2);
    locations.push_back(std::move(forms.location));
    plain.push_back(std::move(forms.grid));
  }
  // [batch, queries, heads, points, 2], or levels and points apart.
  const auto fits = [&](const Shape& s) {
    return (s.size() == 5 || s.size() == 6) && s[0] == batch && s[1] == queries && s[2] == heads &&
           s.back() == 2;
  };
  std::optional<MSDeformOperand> best;
  if (std::none_of(locations.begin(), locations.end(), [](const Forms& f) { return f.empty(); }))
    best = best_operand(r, locations, 3, fits);
  if (auto other = best_operand(r, plain, 3, fits)) {
    other->affine = true;
    other->cost += kAffine;
    if (!best || other->cost < best->cost) best = std::move(other);
  }
  return best;
}

std::optional<MSDeformOperand> weights_operand(const Rewriter& r, const std::vector<Piece>& forms,
                                               std::int64_t batch) {
  Forms ordered;
  for (Piece form : forms)
    if (to_query_order(form.view, batch)) ordered.push_back(std::move(form));
  if (ordered.empty()) return std::nullopt;
  return best_operand(r, {ordered}, 3, [](const Shape&) { return true; });
}

}  // namespace tenonnx
