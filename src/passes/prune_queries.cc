// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// prune_queries: samples for the queries of the highest score alone.
//
// before: y = GridSample(value, grid)                                            [N,C,Ho,Wo]
// after:  s, k = TopK(score, max_count); kept = s >= threshold
//         y_k  = Where(kept, GridSample(value, grid of the queries k), 0)        [N,C,count,u]
//         fill=zero     y = ScatterElements(0, k, y_k)
//         fill=nearest  y = y_k of the kept query that is nearest in the Ho x Wo lattice (for
//                       queries of several points: in their order): one MatMul and an ArgMin over
//                       queries x max_count; 0 where none is kept
//
// The score tells queries that matter from those that do not: the visibility of a BEV cell, an
// objectness, a mask. It has one element for each point of the grid (Ho Wo), or for each query of a
// row of points (Ho; u = Wo), of each image, of each batch of images (heads share it), or once for
// all. Shapes stay static: max_count queries are always sampled, of which the threshold keeps some.
//
// Options: score      needed: the tensor, float32, computed before the node (--score TENSOR)
//          max_count  needed: queries that are sampled, from 1
//          threshold  a number: a lower score counts as not kept; none: max_count alone decides
//          fill       zero (default) or nearest
// Class approximate: another model, which the task gate decides on. The proof reports the share of
// queries that is kept on its inputs (a note at the end of the text; in JSON notes of the pass's
// proofs; not with --proof none or whole), and the pass says what share can be.
// Refuses: a score whose size is not that of the queries, whose shape is not known, that is
// computed after the node or from it; a max_count that is not below the number of queries; sizes
// that are not known; anything but float32 images (rank 4).
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/nearest.h"
#include "base/status.h"
#include "passes/grid_sample_form.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/proof_shares.h"

namespace tenonnx {
namespace {

constexpr const char* kPass = "prune_queries";
// Above every distance in a lattice.
constexpr double kFar = 1e30;

struct Options {
  std::string score;
  std::int64_t max_count = 0;
  std::optional<double> threshold;
  bool nearest = false;
};

Result<Options> read_options(const PassOptions& given) {
  TENONNX_RETURN_IF_ERROR(only_options(kPass, given, {"score", "max_count", "threshold", "fill"}));
  Options options;
  if (const auto score = given.find("score"); score != given.end()) options.score = score->second;
  if (options.score.empty())
    return InvalidArgument(
        "{}: no score: which queries matter is nothing that the graph says by itself; name the "
        "tensor with --score TENSOR, or {}.score=TENSOR",
        kPass, kPass);
  TENONNX_ASSIGN_OR_RETURN(options.max_count, count_option(kPass, given, "max_count", 0));
  if (options.max_count < 1)
    return InvalidArgument(
        "{}: max_count, the number of queries that are sampled, must be given and at least 1",
        kPass);
  if (const auto text = given.find("threshold"); text != given.end()) {
    double value = 0;
    const char* const end = text->second.data() + text->second.size();
    const auto [at, error] = std::from_chars(text->second.data(), end, value);
    if (error != std::errc() || at != end || !std::isfinite(value))
      return InvalidArgument("{}: threshold must be a finite number, got '{}'", kPass,
                             text->second);
    options.threshold = value;
  }
  if (const auto fill = given.find("fill"); fill != given.end()) {
    if (fill->second != "zero" && fill->second != "nearest")
      return InvalidArgument("{}: fill must be zero or nearest, got '{}'", kPass, fill->second);
    options.nearest = fill->second == "nearest";
  }
  return options;
}

// How the score's elements lie over the points of one site.
struct Queries {
  std::int64_t count = 0;   // of one image
  std::int64_t points = 0;  // of one query
  std::int64_t batch = 0;   // of the score: 1, N, or a divisor of N
};

std::string read_queries(const Rewriter& r, int i, const GridSampleNode& site,
                         const Options& options, Queries& queries) {
  if (site.batch < 1 || site.channels < 1 || site.points() < 1)
    return fmt::format("the sizes of '{}' and '{}' must be known", site.value, site.grid);
  if (r.producer(options.score) >= i)
    return fmt::format("the score '{}' is computed after it", options.score);
  const auto shape = r.static_shape(options.score);
  if (!shape) return fmt::format("the shape of the score '{}' is not known", options.score);
  if (r.dtype(options.score) != DType::kFloat32)
    return fmt::format("the score '{}' is {}, not float32", options.score,
                       to_string(r.dtype(options.score)));
  const std::int64_t elements = element_count(*shape);
  for (const bool by_row : {false, true}) {
    queries.count = by_row ? site.out_height : site.points();
    queries.points = by_row ? site.out_width : 1;
    queries.batch = elements % queries.count == 0 ? elements / queries.count : 0;
    if (queries.batch < 1 || queries.batch > site.batch || site.batch % queries.batch != 0)
      continue;
    if (options.max_count >= queries.count)
      return fmt::format("max_count is {} and it has {} queries: nothing would be pruned",
                         options.max_count, queries.count);
    return {};
  }
  return fmt::format(
      "the score '{}' has {} elements: neither one for each of {} x {} points nor one for each of "
      "{} queries, of {} images or a divisor of them",
      options.score, elements, site.out_height, site.out_width, site.out_height, site.batch);
}

class Pruned {
 public:
  Pruned(Rewriter& r, int node, const GridSampleNode& site, const Queries& queries,
         const Options& options)
      : r_(r), w_(r, node), node_(node), site_(site), q_(queries), options_(options) {}

  void write() {
    const std::int64_t n = site_.batch, k = options_.max_count;
    select();
    // Of one image: the same for all that share a score.
    const std::string index = of_images(index_), kept = of_images(kept_);
    const std::string grid = w_.reshape(site_.grid, {n, q_.count, q_.points * 2});
    const std::string wanted =
        w_.add("Expand", {w_.reshape(index, {n, k, 1}), w_.integers({n, k, q_.points * 2})});
    const std::string some =
        w_.reshape(w_.add("GatherElements", {grid, wanted}, {{"axis", 1}}), {n, k, q_.points, 2});
    onnx::NodeProto sample = r_.node(node_);
    sample.set_input(1, some);
    sample.set_output(0, w_.fresh("sampled"));
    sample.set_name("");
    sampled_ = sample.output(0);
    w_.insert(sample);
    const std::string sampled =
        w_.add("Where", {w_.reshape(kept, {n, 1, k, 1}), sampled_, w_.scalar(0)});
    w_.finish_images(options_.nearest ? nearest(sampled, index, kept) : scattered(sampled, index),
                     site_);
  }
  const std::string& sampled() const { return sampled_; }  // the output of the new GridSample

 private:
  void select() {
    const std::string score = w_.reshape(options_.score, {q_.batch, q_.count});
    const std::string best = w_.fresh("score");
    index_ = w_.fresh("query");
    onnx::NodeProto top =
        make_node("TopK", {score, w_.integers({options_.max_count})}, {best, index_});
    set_attribute(top, "axis", std::int64_t{1});
    w_.insert(top);
    // [batch of the score, max_count]. Without a threshold whatever is a number is kept.
    kept_ = w_.fresh(kKeptName);
    w_.insert(options_.threshold
                  ? make_node("GreaterOrEqual", {best, w_.scalar(*options_.threshold)}, {kept_})
                  : make_node("Equal", {best, best}, {kept_}));
  }

  std::string of_images(const std::string& x) {
    if (q_.batch == site_.batch) return x;
    const std::int64_t k = options_.max_count, each = site_.batch / q_.batch;
    return w_.reshape(
        w_.add("Expand", {w_.reshape(x, {q_.batch, 1, k}), w_.integers({q_.batch, each, k})}),
        {site_.batch, k});
  }

  std::string scattered(const std::string& sampled, const std::string& index) {
    const std::int64_t n = site_.batch, k = options_.max_count;
    const std::string zeros =
        w_.add("Expand", {w_.scalar(0), w_.integers({n, site_.channels, q_.count, q_.points})});
    const std::string at = w_.add("Expand", {w_.reshape(index, {n, 1, k, 1}),
                                             w_.integers({n, site_.channels, k, q_.points})});
    return w_.add("ScatterElements", {zeros, at, sampled}, {{"axis", 2}});
  }

  // |p - p_k|^2 without |p|^2, which is the same for all k.
  std::string nearest(const std::string& sampled, const std::string& index,
                      const std::string& kept) {
    const std::int64_t n = site_.batch, k = options_.max_count;
    Tensor place(DType::kFloat32, {q_.count, 2}), twice(DType::kFloat32, {q_.count, 2});
    const std::int64_t row = q_.points == 1 ? site_.out_width : 1;
    for (std::int64_t i = 0; i < q_.count; ++i) {
      for (int a = 0; a < 2; ++a) {
        const auto at = static_cast<float>(a == 0 ? i / row : i % row);
        place.mutable_data<float>()[2 * i + a] = at;
        twice.mutable_data<float>()[2 * i + a] = -2 * at;
      }
    }
    const std::string places =
        w_.add("Gather", {w_.constant("place", place), index}, {{"axis", 0}});  // [N,k,2]
    const std::string crossed =
        w_.add("MatMul", {w_.constant("twice", twice), w_.transpose(places, {0, 2, 1})});
    onnx::NodeProto sum = make_node(
        "ReduceSum", {w_.add("Mul", {places, places}), w_.integers({2})}, {w_.fresh("square")});
    set_attribute(sum, "keepdims", std::int64_t{0});
    w_.insert(sum);
    const std::string distance =
        w_.add("Add", {crossed, w_.reshape(sum.output(0), {n, 1, k})});  // [N,queries,k]
    const std::string open =
        w_.add("Where", {w_.reshape(kept, {n, 1, k}), distance, w_.scalar(kFar)});
    const std::string found = w_.add("ArgMin", {open}, {{"axis", 2}, {"keepdims", 0}});
    const std::string at =
        w_.add("Expand", {w_.reshape(found, {n, 1, q_.count, 1}),
                          w_.integers({n, site_.channels, q_.count, q_.points})});
    return w_.add("GatherElements", {sampled, at}, {{"axis", 2}});
  }

  Rewriter& r_;
  SiteWriter w_;
  int node_;
  const GridSampleNode& site_;
  const Queries& q_;
  const Options& options_;
  std::string index_, kept_, sampled_;
};

Status find_score(const Model& model, const std::string& score) {
  const GraphIndex index(model.proto().graph());
  if (index.find(score) != nullptr) return {};
  std::vector<std::string> names;
  for (const Value& value : index.values()) names.emplace_back(value.name);
  return NotFound("{}: the graph has no tensor '{}' (score); the nearest names: {}", kPass, score,
                  nearest_names(score, names));
}

}  // namespace

namespace passes {

Result<PassOutcome> prune_queries(Model& model, const PassOptions& given) {
  TENONNX_ASSIGN_OR_RETURN(const Options options, read_options(given));
  TENONNX_RETURN_IF_ERROR(find_score(model, options.score));
  Rewriter r(model);
  std::vector<std::string> pruned;  // the nodes that this pass made, which it must not prune again
  TENONNX_RETURN_IF_ERROR(for_each_grid_sample(r, [&](const GridSampleNode& site) -> std::string {
    if (std::find(pruned.begin(), pruned.end(), site.output) != pruned.end()) return {};
    Queries queries;
    if (const std::string why = read_queries(r, site.node, site, options, queries); !why.empty())
      return why;
    if (!r.begin({site.node})) return {};
    Pruned form(r, site.node, site, queries, options);
    form.write();
    pruned.push_back(form.sampled());
    r.apply(site.node, fmt::format("at most {} of {} queries are sampled ({:.3g} %), others {}",
                                   options.max_count, queries.count,
                                   100.0 * static_cast<double>(options.max_count) /
                                       static_cast<double>(queries.count),
                                   options.nearest ? "take the nearest" : "are zero"));
    return {};
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
