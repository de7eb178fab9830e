// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "cut/auto_cut.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/status.h"
#include "cut/data_flow.h"
#include "cut/features.h"
#include "cut/post_processing.h"
#include "cut/separator.h"
#include "cut/sites.h"

namespace tenonnx {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// More tensors than levels of any published detector, twice over: BEV models have 4 levels of 2
// scales. A wider boundary is no place to cut, but where two parts of a graph happen to meet.
constexpr std::size_t kMaxWidth = 16;

TensorSet both(const TensorSet& a, const TensorSet& b) {
  TensorSet out(a.size(), false);
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] && b[i];
  return out;
}

bool reads_any(const DataFlow& flow, int node, const TensorSet& set) {
  const TensorIds& inputs = flow.inputs(node);
  return std::any_of(inputs.begin(), inputs.end(), [&](int id) { return set[at(id)]; });
}

std::string spell_sites(std::size_t count) {
  return fmt::format("{} sampling site{}", count, count == 1 ? "" : "s");
}

class Finder {
 public:
  Finder(const Model& model, const TensorInfos& infos)
      : flow_(model), infos_(infos), sites_(sampling_sites(flow_)) {
    for (const SamplingSite& site : sites_) behind_.push_back(flow_.descendants({site.node}));
  }

  AutoCut run() {
    if (sites_.empty()) {
      out_.cut = before_post_processing();
      return std::move(out_);
    }
    if (!with_selection()) without_selection();
    if (out_.cut) backbone_features();
    return std::move(out_);
  }

 private:
  // Rule 1; false where there is no query selection.
  bool with_selection() {
    TensorSet chosen(flow_.tensors(), false);
    TensorIds sampled, selected;
    std::set<int> fed;  // sites
    std::string first;
    for (const int node : selection_nodes(flow_)) {
      if (reads_any(flow_, node, chosen)) continue;  // a selection within the decoder
      const TensorSet behind = flow_.descendants({node});
      bool selects_queries = false;
      for (std::size_t i = 0; i < sites_.size(); ++i) {
        if (!reads_any(flow_, sites_[i].node, behind)) continue;
        // What the selection has made is no value path: a TopK within a backbone.
        for (const int id : sites_[i].data) {
          if (behind[at(id)]) continue;
          sampled.push_back(id);
          selects_queries = true;
          fed.insert(static_cast<int>(i));
        }
      }
      if (!selects_queries) continue;
      for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = chosen[i] || behind[i];
      for (const int id : flow_.inputs(node)) selected.push_back(id);
      if (first.empty()) first = node_label(flow_.node(node));
    }
    if (selected.empty()) return false;
    const TensorSet set = both(flow_.ancestors(sampled), flow_.ancestors(selected));
    out_.cut = accept(set, "",
                      fmt::format("what feeds both the query selection ({}) and {}", first,
                                  spell_sites(fed.size())),
                      out_.why_none);
    return true;
  }

  // Rule 2.
  void without_selection() {
    // The decoder's sites: nothing that they read becomes part of what another one samples.
    std::vector<std::size_t> decoder;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const bool feeds_value_path =
          std::any_of(sites_.begin(), sites_.end(), [&](const SamplingSite& other) {
            return std::any_of(other.data.begin(), other.data.end(),
                               [&](int id) { return behind_[i][at(id)]; });
          });
      if (!feeds_value_path) decoder.push_back(i);
    }
    // Layers: a site whose place depends on another one's result is in a later layer.
    std::unordered_map<std::size_t, std::size_t> layer;
    std::size_t layers = 0;
    for (const std::size_t i : decoder) {
      std::size_t mine = 0;
      for (const std::size_t j : decoder)
        if (j != i && layer.contains(j) && reads_any(flow_, sites_[i].node, behind_[j]))
          mine = std::max(mine, layer[j] + 1);
      layer[i] = mine;
      layers = std::max(layers, mine + 1);
    }
    TensorSet set(flow_.tensors(), true);
    for (std::size_t l = 0; l < layers; ++l) {
      TensorIds data;
      for (const std::size_t i : decoder)
        if (layer[i] == l) data.insert(data.end(), sites_[i].data.begin(), sites_[i].data.end());
      set = both(set, flow_.ancestors(data));
    }
    out_.cut = accept(set, "",
                      fmt::format("what {} in {} layer{} read; there is no query selection",
                                  spell_sites(decoder.size()), layers, layers == 1 ? "" : "s"),
                      out_.why_none);
  }

  // Where sites are left before the cut: what the first of them sample and are steered by.
  void backbone_features() {
    const Sides sides = sides_of(flow_.index(), out_.cut->tensors);
    TensorIds data, places;
    std::size_t before = 0;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      if (!sides.before[at(sites_[i].node)]) continue;
      ++before;
      bool first = true;
      for (std::size_t j = 0; j < sites_.size(); ++j)
        first &= j == i || !reads_any(flow_, sites_[i].node, behind_[j]);
      if (!first) continue;
      data.insert(data.end(), sites_[i].data.begin(), sites_[i].data.end());
      places.insert(places.end(), sites_[i].places.begin(), sites_[i].places.end());
    }
    if (data.empty()) return;
    TensorSet set = flow_.ancestors(data);
    if (!places.empty()) set = both(set, flow_.ancestors(places));
    std::string why;  // no alternative is no error
    auto found = accept(
        set, "backbone features",
        fmt::format("before all sampling, also {} of the encoder", spell_sites(before)), why);
    if (found && found->tensors != out_.cut->tensors) out_.alternatives.push_back(*found);
  }

  // Rule 3.
  std::optional<FoundCut> before_post_processing() {
    PostProcessing found = find_post_processing(flow_);
    if (found.boundary.empty()) {
      out_.why_none = found.why_none;
      return std::nullopt;
    }
    return finish(std::move(found.boundary), "post-processing",
                  fmt::format("the boundary between the last layer with weights and the "
                              "selection that ends the model ({})",
                              found.selection),
                  out_.why_none);
  }

  std::optional<FoundCut> accept(const TensorSet& set, std::string kind, std::string reason,
                                 std::string& why_none) {
    return finish(features_of(flow_, flow_.frontier(set), set), std::move(kind), std::move(reason),
                  why_none);
  }

  // Checks, drops what nothing reads any more, sorts.
  std::optional<FoundCut> finish(TensorIds ids, std::string kind, std::string reason,
                                 std::string& why_none) {
    if (ids.empty()) {
      why_none = "what the sampling reads and what the selection reads have nothing in common";
      return std::nullopt;
    }
    for (const int id : ids) {
      if (!flow_.is_source(id)) continue;
      why_none = fmt::format("the sampling reads the input '{}' itself; nothing lies before it",
                             flow_.name(id));
      return std::nullopt;
    }
    sort(ids);
    FoundCut out;
    for (const int id : ids) out.tensors.push_back(flow_.name(id));
    Sides sides = sides_of(flow_.index(), out.tensors);
    for (std::size_t i = ids.size(); i-- > 0;)
      if (!sides.used[i]) out.tensors.erase(out.tensors.begin() + static_cast<std::ptrdiff_t>(i));
    if (out.tensors.size() > kMaxWidth) {
      why_none = fmt::format(
          "what crosses there is {} tensors, from '{}' on; up to {} are taken for a boundary",
          out.tensors.size(), out.tensors[0], kMaxWidth);
      return std::nullopt;
    }
    sides = sides_of(flow_.index(), out.tensors);
    if (!sides.separates()) {
      why_none = fmt::format(
          "the cut would be ['{}'], but what lies behind it needs the input '{}' as well; shapes "
          "that are computed from it do so: fix them with --input-shape {}=1x3x... and leave "
          "constant folding on",
          fmt::join(out.tensors, "', '"), sides.shared_inputs[0], sides.shared_inputs[0]);
      return std::nullopt;
    }
    out.kind = kind.empty() ? kind_of(out.tensors) : std::move(kind);
    out.reason = std::move(reason);
    return out;
  }

  std::string kind_of(const std::vector<std::string>& tensors) const {
    const bool flat = std::all_of(tensors.begin(), tensors.end(), [&](const std::string& name) {
      const auto info = infos_.find(name);
      return info != infos_.end() && info->second.has_rank && info->second.shape.size() == 3;
    });
    return flat ? "encoder memory" : "features";
  }

  // The finest level first: most elements, then nearest to the image.
  void sort(TensorIds& ids) const {
    std::vector<int> depth(flow_.tensors(), 0);
    for (const int node : flow_.nodes()) {
      int deepest = 0;
      for (const int id : flow_.inputs(node)) deepest = std::max(deepest, depth[at(id)]);
      for (const int id : flow_.outputs(node)) depth[at(id)] = deepest + 1;
    }
    const auto elements = [&](int id) {
      const auto info = infos_.find(flow_.name(id));
      return info == infos_.end() || !info->second.has_rank ? -1
                                                            : element_count(info->second.shape);
    };
    std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) {
      const auto of_a = elements(a), of_b = elements(b);
      return of_a != of_b ? of_a > of_b : depth[at(a)] < depth[at(b)];
    });
  }

  DataFlow flow_;
  const TensorInfos& infos_;
  std::vector<SamplingSite> sites_;
  std::vector<TensorSet> behind_;  // by site: what its result becomes part of
  AutoCut out_;
};

}  // namespace

AutoCut find_auto_cut(const Model& model, const TensorInfos& infos) {
  return Finder(model, infos).run();
}

}  // namespace tenonnx
