// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// replace_ms_deform_attn: multi-scale deformable attention becomes one operator.
//
// before: sample_l = GridSample(value_l, 2 location_l - 1) for each level l      [N,D,Q,P_l]
//         y        = ReduceSum(Concat(sample_0, sample_1, ...) * weights)        [N,D,Q]
// after:  y        = tenonnx.MSDeformAttn(value, location, weights)              [B,Q,M D]
//
// y[b,q,m,:] = sum over levels l and points p of weight[b,q,m,l,p] * bilinear(value_l[b,:,m,:],
// location[b,q,m,l,p]), with N = B M: src/kernels/ms_deform_attn/ms_deform_attn.h. Matched by
// structure (ms_deform_attn_pattern.h): any number of levels and of points in each, any names, any
// order of Reshape, Transpose, Slice, Split, Gather between.
// The operator takes tensors that the graph has: the value as [B,S,C], also where it is sampled
// through another layout and a transpose of it stands elsewhere. What is nowhere in its order gets
// a Transpose; a grid that is not written as 2 x - 1 gets x / 2 + 1/2.
// An export whose shapes are computed by nodes is folded first, as fold_constants does it.
// Conditions: bilinear, zeros, align_corners 0; static shapes; float32, float16 or bfloat16; the
// weights one for each query, head and point; nothing inside is used elsewhere.
// Class algebraic: the same sum in another order, and the location without the detour to -1..1.
// What is not sampled (outside, or of weight 0) does not reach y, where it was 0 * inf = NaN.
// Needs libtenonnx_ops.so: sessions of tenonnx register it where a model imports domain tenonnx.
// Refuses: another mode, padding or align_corners; shapes that are not known; weights of another
// shape; samples that are used elsewhere; a GridSample whose samples are not weighted and summed.
// Sampling that an export has written with Gather (RT-DETRv2's and D-FINE's "discrete", DEIMv2's
// own gathers) is found by what it computes (written_sampling.h) and taken as GridSample;
// "discrete" becomes mode="discrete", of the same indices: location * size + 1/2 rounded once takes
// the pixel that it takes rounded twice (of 2e8 random ones none differs). What is not found is
// left and reported (gather_sampling.h).
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/tensor_proto.h"
#include "ort/ops_library.h"
#include "passes/constants.h"
#include "passes/gather_sampling.h"
#include "passes/layout.h"
#include "passes/ms_deform_attn_pattern.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "passes/written_sampling.h"

namespace tenonnx {
namespace {

// Version of the domain that MSDeformAttn belongs to (kernels.inc).
constexpr std::int64_t kOpsVersion = 1;

class Replacer {
 public:
  // `noun`: of what a level is sampled by.
  Replacer(Rewriter& r, std::string_view noun) : r_(r), noun_(noun) {}

  void offer(int i) {
    if (const GatherSampling other = gather_sampling(r_, i); other != GatherSampling::kNone)
      return r_.refuse(i, why_not_matched(other));
    MSDeformFinding finding = find_ms_deform_attn(r_, i);
    if (finding.miss) r_.refuse(finding.miss->node, finding.miss->reason);
    if (!finding.match) return;
    const MSDeformMatch& m = *finding.match;
    if (!r_.begin(m.nodes)) return;
    at_ = m.last;
    const std::int64_t row = m.heads * m.channels;
    const std::string value = made(m.value, {m.batch, m.pixels(), row}, true);
    const std::string locations =
        made(m.locations, {m.batch, m.queries, m.heads, m.points(), 2}, false);
    const std::string weights = made(m.weights, {m.batch, m.queries, m.heads, m.points()}, false);
    const Shape shape = {m.batch, m.queries, row};
    const bool direct =
        m.output_view.is_whole(element_count(shape)) && m.output_view.shape() == shape;
    const std::string y = direct ? m.output : r_.fresh(m.output + "_attention");
    onnx::NodeProto node = make_node("MSDeformAttn", {value, locations, weights}, {y});
    node.set_domain(std::string(kOpsDomain));
    std::vector<std::int64_t> sizes, points;
    for (const auto& level : m.levels) {
      sizes.insert(sizes.end(), {level.height, level.width});
      points.push_back(level.points);
    }
    set_attribute(node, "spatial_shapes", sizes);
    set_attribute(node, "points", points);
    if (m.discrete) set_attribute(node, "mode", std::string_view(kDiscreteMode));
    node.set_name(r_.fresh(r_.node(m.last).name() + "_ms_deform_attn"));
    r_.insert(at_, std::move(node));
    if (!direct) rearrange(y, shape, m.output_view, m.output);
    r_.remove(m.last);
    shapes_[y] = {shape, r_.dtype(r_.node(m.levels.front().grid_sample).input(0))};
    const int first = m.levels.front().grid_sample;
    r_.apply(first, description(m));
    levels_.push_back(m.levels.size());
  }

  // "4 layers x 3 levels = 12 GridSample"
  std::string total() const {
    const std::size_t all = std::accumulate(levels_.begin(), levels_.end(), std::size_t{0});
    const auto counted = [](std::size_t n, std::string_view what) {
      return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
    };
    const bool same = all == levels_.size() * levels_.front();
    return fmt::format("{}{} = {} {}", counted(levels_.size(), "layer"),
                       same ? " x " + counted(levels_.front(), "level") : "", all, noun_);
  }

  // Inference knows nothing of the domain: it takes the outputs' types from value_info.
  Status record(Model& model) const {
    if (shapes_.empty()) return {};
    onnx::ModelProto& proto = model.mutable_proto();
    TENONNX_RETURN_IF_ERROR(import_opset(proto, kOpsDomain, kOpsVersion));
    auto& infos = *proto.mutable_graph()->mutable_value_info();
    for (int i = infos.size() - 1; i >= 0; --i)
      if (shapes_.contains(infos.Get(i).name())) infos.DeleteSubrange(i, 1);
    for (const auto& [name, type] : shapes_) {
      onnx::ValueInfoProto& info = *infos.Add();
      info.set_name(name);
      auto& tensor = *info.mutable_type()->mutable_tensor_type();
      tensor.set_elem_type(to_onnx_type(type.second));
      for (const std::int64_t d : type.first) tensor.mutable_shape()->add_dim()->set_dim_value(d);
    }
    return {};
  }

 private:
  std::string description(const MSDeformMatch& m) const {
    std::string sizes, points;
    for (const auto& level : m.levels) {
      sizes += fmt::format("{}{}x{}", sizes.empty() ? "" : ", ", level.height, level.width);
      points += fmt::format("{}{}", points.empty() ? "" : ", ", level.points);
    }
    return fmt::format(
        "{} level{} ({}) of {} points, {} heads of {} channels, {} queries: {} {} become one "
        "MSDeformAttn{}",
        m.levels.size(), m.levels.size() == 1 ? "" : "s", sizes, points, m.heads, m.channels,
        m.queries, m.levels.size(), noun_, m.discrete ? " of mode discrete" : "");
  }

  // A tensor of this operand. Those that several layers may share are made once.
  std::string made(const MSDeformOperand& operand, const Shape& shape, bool shared) {
    if (operand.cost == 0) return operand.pieces.front().tensor;
    std::string key;
    for (const auto& piece : operand.pieces) key += piece.tensor + "\n";
    key += to_string(shape);
    if (shared)
      if (const auto there = made_.find(key); there != made_.end()) return there->second;
    std::vector<std::string> parts;
    for (const auto& piece : operand.pieces) parts.push_back(moved(piece));
    std::string result = parts.front();
    if (parts.size() > 1) {
      result = r_.fresh(operand.pieces.front().tensor + "_joined");
      onnx::NodeProto concat = make_node("Concat", parts, {result});
      set_attribute(concat, "axis", std::int64_t{operand.axis});
      r_.insert(at_, std::move(concat));
    }
    if (operand.affine) {
      const DType dtype = r_.dtype(operand.pieces.front().tensor);
      const std::string half = r_.add_constant(result + "_half", from_doubles(dtype, {}, {0.5}));
      const std::string scaled = r_.fresh(result + "_scaled");
      r_.insert(at_, make_node("Mul", {result, half}, {scaled}));
      result = r_.fresh(result + "_location");
      r_.insert(at_, make_node("Add", {scaled, half}, {result}));
    }
    if (shared) made_[key] = result;
    return result;
  }

  // The elements of a piece in its own order and shape.
  std::string moved(const MSDeformOperand::Piece& piece) {
    const Shape from = *r_.static_shape(piece.tensor);
    const Shape shape = piece.view.shape();
    if (from == shape && piece.view.is_whole(element_count(from))) return piece.tensor;
    std::string to = r_.fresh(piece.tensor + "_ordered");
    rearrange(piece.tensor, from, piece.view, to);
    return to;
  }

  void reshape(const std::string& x, const Shape& shape, const std::string& y) {
    r_.insert(at_,
              make_node("Reshape", {x, r_.add_constant(y + "_shape", int64_vector(shape))}, {y}));
  }

  // Where the shapes before and after are those of the Transpose but for dimensions of 1, it moves
  // these too, and no Reshape is needed.
  static void keep_ones(const Shape& from, const Shape& shape, Rearrangement& way) {
    std::vector<std::int64_t> places, ones;  // in `from`
    for (std::size_t i = 0; i < from.size(); ++i)
      (from[i] == 1 ? ones : places).push_back(static_cast<std::int64_t>(i));
    if (from.size() != shape.size() || places.size() != way.split.size()) return;
    std::vector<std::int64_t> perm;
    std::size_t next = 0, next_one = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) {
        if (next_one == ones.size()) return;
        perm.push_back(ones[next_one++]);
      } else {
        if (next == way.perm.size()) return;
        perm.push_back(places[static_cast<std::size_t>(way.perm[next++])]);
      }
      if (from[static_cast<std::size_t>(perm.back())] != shape[i]) return;
    }
    way = {from, std::move(perm)};
  }

  // y: the elements of x, of shape `from`, as `view` has them.
  void rearrange(const std::string& x, const Shape& from, const StridedView& view,
                 const std::string& y) {
    const std::int64_t size = element_count(from);
    const Shape shape = view.shape();
    if (view.is_whole(size)) return reshape(x, shape, y);
    Rearrangement way = *rearrangement(view, size);
    keep_ones(from, shape, way);
    std::string split = x;
    if (way.split != from) {
      split = r_.fresh(y + "_split");
      reshape(x, way.split, split);
    }
    Shape turned;
    for (const std::int64_t axis : way.perm)
      turned.push_back(way.split[static_cast<std::size_t>(axis)]);
    const std::string transposed = turned == shape ? y : r_.fresh(y + "_transposed");
    onnx::NodeProto transpose = make_node("Transpose", {split}, {transposed});
    set_attribute(transpose, "perm", way.perm);
    r_.insert(at_, std::move(transpose));
    if (turned != shape) reshape(transposed, shape, y);
  }

  Rewriter& r_;
  const std::string_view noun_;
  int at_ = -1;                      // new nodes go before this one
  std::vector<std::size_t> levels_;  // of each layer
  std::unordered_map<std::string, std::string> made_;
  std::map<std::string, std::pair<Shape, DType>> shapes_;  // of the operators' outputs
};

Result<PassOutcome> replace_in(Model& model, std::string_view noun = "GridSample") {
  Rewriter r(model);
  Replacer replacer(r, noun);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) { replacer.offer(i); }));
  PassOutcome outcome = r.finish();
  if (!outcome.sites.empty()) outcome.total = replacer.total();
  TENONNX_RETURN_IF_ERROR(replacer.record(model));
  return outcome;
}

// What is written with Gather is taken as GridSample where nothing of that is left behind.
Result<PassOutcome> replace_written_in(Model& model) {
  const std::vector<WrittenSampling> written = find_written_sampling(model);
  if (written.empty()) return replace_in(model);
  Model marked = model.clone();
  write_grid_samples(marked, written);
  TENONNX_ASSIGN_OR_RETURN(PassOutcome outcome,
                           replace_in(marked, "samplings written with Gather"));
  const GraphIndex index(marked.proto().graph());
  const bool left = std::any_of(written.begin(), written.end(), [&](const WrittenSampling& one) {
    return index.find(one.samples) != nullptr;
  });
  if (left) return replace_in(model);
  model = std::move(marked);
  return outcome;
}

}  // namespace

namespace passes {

Result<PassOutcome> fold_constants(Model& model, const PassOptions& options);

Result<PassOutcome> replace_ms_deform_attn(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("replace_ms_deform_attn", options, {}));
  Model plain = model.clone();
  TENONNX_ASSIGN_OR_RETURN(PassOutcome outcome, replace_written_in(plain));
  if (outcome.skipped.empty()) {
    if (outcome.applied > 0) model = std::move(plain);
    return outcome;
  }
  // What is refused may be hidden by nodes that compute shapes. Where folding them does not help,
  // nothing is folded.
  Model folded = model.clone();
  TENONNX_ASSIGN_OR_RETURN(PassOutcome folding, fold_constants(folded, {}));
  TENONNX_ASSIGN_OR_RETURN(PassOutcome better, replace_written_in(folded));
  if (better.applied <= outcome.applied) {
    if (outcome.applied > 0) model = std::move(plain);
    return outcome;
  }
  outcome = std::move(better);
  model = std::move(folded);
  outcome.renamed = std::move(folding.renamed);
  outcome.moved = std::move(folding.moved);
  return outcome;
}

}  // namespace passes
}  // namespace tenonnx
