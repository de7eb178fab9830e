// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// hoist_gather: keeps the rows first that a gather keeps last.
//
// before: y = GatherElements(Relu(MatMul(x, W1)) W2 + anchors, rows of a TopK)
// after:  y = Relu(MatMul(Gather(x, rows), W1)) W2 + Gather(anchors, rows)
//
//   f(x)[rows] = f(x[rows]) where f computes each row from the same row alone
//
// Detectors of the DETR family run a box head over all 8,400 tokens and keep the 300 that TopK
// chose. From the gather the region grows upwards through what is row-wise: MatMul and Gemm by one
// matrix, element-wise operators, normalisation, Softmax, reductions and Concat behind the rows,
// Reshape that leaves the rows. It ends at tensors that something else reads in full; these, and
// constants with rows, are gathered, by a gather that is there already where there is one.
//
// Gathers: Gather with an index of rank 1; GatherElements whose index repeats one number over the
// whole of a row (Tile, Expand), which becomes Gather, or for several images GatherND with
// batch_dims; GatherND. Numbers below 0 count from the end before and after.
// Class algebraic: each row is computed from the same numbers, but ONNX Runtime may take another
// kernel for few rows (one row is a vector), and vector and scalar code of one kernel may differ in
// the last bit. Measured on x86-64: the whole detectors give the same bits in all exports; their
// regions by themselves, whose weights are not packed, differ by up to 1.5e-8.
// Conditions: shapes are known; at least 16,384 steps (multiplications, elements) are saved.
// Left alone: a gather that keeps as many rows as there are.
// Refuses: a gather along an axis that an operator sums over, normalises or joins; of
// a tensor that something else reads too; an index that changes inside a row, has another rank, or
// covers some of the images. Tensors of the region have fewer rows then, under new names.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "passes/constants.h"
#include "passes/layout.h"
#include "passes/passes.h"
#include "passes/row_gather.h"
#include "passes/row_wise.h"

namespace tenonnx {
namespace {

// A node costs ONNX Runtime 1 to 3 us, in which one core takes some 16,000 element-wise steps. Less
// than that is not worth another graph.
constexpr double kStepsOfNode = 16384;

class Region {
 public:
  Region(const Rewriter& r, RowGather gather) : r_(r), gather_(std::move(gather)) {}

  // Why not even the node that makes the data can follow the gather; "" where it can.
  std::string grow() {
    wanted_[gather_.data] = {true, gather_.axis};
    std::set<int> waiting = {r_.producer(gather_.data)};
    std::string first;
    // From the last node up: whoever reads a tensor is decided before the node that makes it.
    while (!waiting.empty()) {
      const int node = *waiting.rbegin();
      waiting.erase(node);
      std::vector<RowPlace> places;
      if (std::string why = takes(node, places); !why.empty()) {
        if (nodes_.empty() && first.empty()) first = std::move(why);
        continue;
      }
      for (std::size_t k = 0; k < places.size(); ++k) {
        if (!places[k].has_rows) continue;
        const std::string& name = r_.node(node).input(static_cast<int>(k));
        wanted_.emplace(name, places[k]);
        if (const int producer = r_.producer(name); producer >= 0) waiting.insert(producer);
      }
      nodes_[node] = std::move(places);
    }
    return first;
  }

  // Steps before minus steps after, of gathers too.
  double saved() const {
    const double share =
        static_cast<double>(gather_.rows_after()) / static_cast<double>(gather_.rows_before());
    const auto gathering = [&](const std::string& name) {
      return share * static_cast<double>(element_count(*r_.static_shape(name))) + kStepsOfNode;
    };
    double saved = gathering(gather_.data);
    for (const auto& [node, places] : nodes_) saved += node_work(r_, node) * (1 - share);
    for (const auto& [name, place] : ends())
      if (same_gather(name, place) < 0) saved -= gathering(name);
    return saved;
  }

  std::vector<int> claims() const {
    std::vector<int> all = {gather_.node};
    for (const auto& [node, places] : nodes_) all.push_back(node);
    for (const auto& [name, place] : ends()) all.push_back(same_gather(name, place));
    return all;
  }

  void rewrite(Rewriter& r) const {
    std::map<std::string, std::string> kept;
    for (const auto& [name, place] : ends()) {
      const int there = same_gather(name, place);
      kept[name] = there >= 0 ? r.node(there).output(0) : gather_rows(r, gather_, name, place);
    }
    for (const auto& [index, places] : nodes_) {
      const std::string& name = r.node(index).output(0);
      kept[name] = name == gather_.data ? gather_.output : r.fresh(name + "_kept");
    }
    for (const auto& [index, places] : nodes_) {
      onnx::NodeProto node = r.node(index);
      const std::string name = node.output(0);
      for (std::size_t k = 0; k < places.size(); ++k)
        if (places[k].has_rows)
          node.set_input(static_cast<int>(k), kept.at(node.input(static_cast<int>(k))));
      if (is_reshape_like(node)) reshape(r, node, name);
      node.set_output(0, kept.at(name));
      r.replace(index, std::move(node));
    }
    r.remove(gather_.node);
  }

  std::string what() const {
    std::string gathered;
    for (const auto& [name, place] : ends())
      gathered += fmt::format("{}'{}'", gathered.empty() ? "" : ", ", name);
    return fmt::format("{} of {} rows are taken before {} nodes, of {}", gather_.rows_after(),
                       gather_.rows_before(), nodes_.size(), gathered);
  }

 private:
  // Whether a node's output is read by the region alone, row by row, and the node is row-wise.
  std::string takes(int index, std::vector<RowPlace>& places) const {
    const onnx::NodeProto& node = r_.node(index);
    const std::string& name = node.output(0);
    const auto wanted = wanted_.find(name);
    if (wanted == wanted_.end()) return "a further output of a node";
    if (r_.is_graph_output(name)) return fmt::format("'{}' is an output of the graph", name);
    for (const Use& use : r_.index().uses(name)) {
      if (use.node == gather_.node && use.input == 0) continue;
      const auto reader = nodes_.find(use.node);
      if (reader == nodes_.end() || use.input < 0 || !reads_rows(reader->second, use, name))
        return fmt::format("'{}' is read in full by {} too", name, node_label(r_.node(use.node)));
    }
    const std::size_t axis = wanted->second.axis;
    const auto shape = r_.static_shape(name);
    if (!shape || (gather_.form != RowGather::Form::kShared && !has_lead(*shape)))
      return fmt::format("'{}' has rows of some images alone", name);
    std::string why;
    if (auto found = row_wise_inputs(r_, index, gather_, axis, why)) {
      // A tensor that is read in two ways would need two gathers.
      for (std::size_t k = 0; k < found->size(); ++k) {
        if (!(*found)[k].has_rows) continue;
        const std::string& input = node.input(static_cast<int>(k));
        const auto other = wanted_.find(input);
        if (other != wanted_.end() && other->second.axis != (*found)[k].axis)
          return fmt::format("'{}' has its rows along two axes", input);
      }
      places = std::move(*found);
    }
    return why;
  }

  bool reads_rows(const std::vector<RowPlace>& places, const Use& use,
                  const std::string& name) const {
    const RowPlace& place = places[static_cast<std::size_t>(use.input)];
    return place.has_rows && place.axis == wanted_.at(name).axis;
  }

  bool has_lead(const Shape& shape) const {
    return shape.size() >= gather_.lead.size() &&
           std::equal(gather_.lead.begin(), gather_.lead.end(), shape.begin());
  }

  // What is gathered: what the region wants and does not compute.
  std::vector<std::pair<std::string, RowPlace>> ends() const {
    std::vector<std::pair<std::string, RowPlace>> all;
    for (const auto& [name, place] : wanted_)
      if (!nodes_.contains(r_.producer(name))) all.emplace_back(name, place);
    return all;
  }

  // The node that gathers the same rows of a tensor already; -1 where there is none.
  int same_gather(const std::string& name, const RowPlace& place) const {
    for (const Use& use : r_.index().uses(name)) {
      if (use.input != 0 || use.node == gather_.node) continue;
      std::string why;
      const auto other = read_row_gather(r_, use.node, why);
      if (other && other->rows == gather_.rows && other->form == gather_.form &&
          other->axis == place.axis && other->kept_lead.back() == gather_.kept_lead.back() &&
          other->kept_lead.size() == gather_.kept_lead.size())
        return use.node;
    }
    return -1;
  }

  void reshape(Rewriter& r, onnx::NodeProto& node, const std::string& name) const {
    const Shape shape = kept_shape(gather_, *r.static_shape(name), wanted_.at(name).axis);
    const std::string target = r.add_constant(name + "_kept_shape", int64_vector(shape));
    const std::string node_name = node.name();
    node = make_node("Reshape", {node.input(0), target}, {name});
    node.set_name(node_name);
  }

  const Rewriter& r_;
  const RowGather gather_;
  std::map<int, std::vector<RowPlace>> nodes_;  // of each input
  std::map<std::string, RowPlace> wanted_;
};

}  // namespace

namespace passes {

Result<PassOutcome> hoist_gather(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("hoist_gather", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    std::string why;
    const auto gather = read_row_gather(r, i, why);
    if (!why.empty()) return r.refuse(i, why);
    if (!gather || r.producer(gather->data) < 0) return;
    if (gather->rows_after() >= gather->rows_before()) return;  // nothing is left out
    Region region(r, *gather);
    if (why = region.grow(); !why.empty()) return r.refuse(i, why);
    if (region.saved() < kStepsOfNode)
      return r.refuse(i, "the rows that need not be computed cost no more than the gathers");
    if (!r.begin(region.claims())) return;
    const std::string what = region.what();
    region.rewrite(r);
    r.apply(i, what);
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
