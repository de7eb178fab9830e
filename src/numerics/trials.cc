// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/trials.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <numeric>

#include "base/files.h"
#include "base/json.h"
#include "base/status.h"
#include "metrics/tensor_error.h"
#include "ort/capture.h"

namespace tenonnx {
namespace {

Result<OutputFigures> figures_from_json(const JsonReader& reader) {
  OutputFigures out;
  TENONNX_ASSIGN_OR_RETURN(out.passes, reader.boolean("passes"));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader failed, reader.at("failed"));
  TENONNX_ASSIGN_OR_RETURN(const auto items, failed.items());
  for (const JsonReader& item : items) {
    TENONNX_ASSIGN_OR_RETURN(std::string text, item.string());
    out.failed.push_back(std::move(text));
  }
  TENONNX_ASSIGN_OR_RETURN(out.top_score, reader.number("top_score"));
  TENONNX_ASSIGN_OR_RETURN(out.scores_cosine, reader.number("scores_cosine"));
  TENONNX_ASSIGN_OR_RETURN(out.matched, reader.integer("matched"));
  TENONNX_ASSIGN_OR_RETURN(out.expected, reader.integer("expected"));
  TENONNX_ASSIGN_OR_RETURN(out.scores_error, reader.number("scores_error"));
  TENONNX_ASSIGN_OR_RETURN(out.boxes_error, reader.number("boxes_error"));
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t inputs, reader.integer("inputs"));
  out.inputs = static_cast<std::size_t>(inputs);
  return out;
}

Json to_json(const DivisionPrice& price) {
  return {{"segments", price.segments},
          {"tensors", price.tensors},
          {"bytes", price.bytes},
          {"bytes_known", price.bytes_known}};
}

Result<DivisionPrice> price_from_json(const JsonReader& reader) {
  DivisionPrice out;
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t segments, reader.integer("segments"));
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t tensors, reader.integer("tensors"));
  TENONNX_ASSIGN_OR_RETURN(out.bytes, reader.integer("bytes"));
  TENONNX_ASSIGN_OR_RETURN(out.bytes_known, reader.boolean("bytes_known"));
  out.segments = static_cast<std::size_t>(segments);
  out.tensors = static_cast<std::size_t>(tensors);
  return out;
}

Result<Trial> trial_from_json(const JsonReader& reader) {
  Trial out;
  TENONNX_ASSIGN_OR_RETURN(const JsonReader figures, reader.at("figures"));
  TENONNX_ASSIGN_OR_RETURN(out.figures, figures_from_json(figures));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader price, reader.at("price"));
  TENONNX_ASSIGN_OR_RETURN(out.price, price_from_json(price));
  out.recalled = true;
  return out;
}

}  // namespace

Json to_json(const OutputFigures& figures) {
  return {{"passes", figures.passes},
          {"failed", figures.failed},
          {"top_score", json_number(figures.top_score)},
          {"scores_cosine", json_number(figures.scores_cosine)},
          {"matched", figures.matched},
          {"expected", figures.expected},
          {"scores_error", json_number(figures.scores_error)},
          {"boxes_error", json_number(figures.boxes_error)},
          {"inputs", figures.inputs}};
}

Trials::Trials(const CompareSetup& setup, const KeptGraphs& graphs, const OutputJudge& judge,
               TrialsOptions options)
    : setup_(&setup), graphs_(&graphs), judge_(&judge), options_(std::move(options)) {
  index_ = std::make_unique<GraphIndex>(setup.candidate().proto().graph());
  for (const NodeSegment& segment : divide_nodes(*index_, {}))
    nodes_.insert(segment.nodes.begin(), segment.nodes.end());
  order_.resize(judge.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  for (const auto& [name, tensor] : judge.reference(0)) {
    const auto renamed = setup.names.renamed.find(name);
    output_names_[renamed == setup.names.renamed.end() ? name : renamed->second] = name;
  }
}

Result<Trials> Trials::make(const CompareSetup& setup, const KeptGraphs& graphs,
                            const OutputJudge& judge, TrialsOptions options) {
  Trials out(setup, graphs, judge, std::move(options));
  TENONNX_RETURN_IF_ERROR(out.read_journal());
  return out;
}

std::set<int> Trials::without(const std::set<int>& nodes) const {
  std::set<int> out;
  std::set_difference(nodes_.begin(), nodes_.end(), nodes.begin(), nodes.end(),
                      std::inserter(out, out.end()));
  return out;
}

// A file that is not what was written (a killed run of another version) is begun anew.
Status Trials::read_journal() {
  if (options_.journal.empty() || !options_.resume) return {};
  const auto json = read_json_file(options_.journal);
  if (!json.ok()) return {};
  const auto members = JsonReader(*json, options_.journal.string()).members();
  if (!members.ok()) return {};
  for (const auto& [key, entry] : *members) {
    const auto trial = trial_from_json(entry);
    if (trial.ok()) known_.emplace(key, *trial);
  }
  return {};
}

Status Trials::remember(const std::string& key, const Trial& trial) {
  known_[key] = trial;
  known_[key].recalled = true;
  if (options_.journal.empty()) return {};
  Json all = Json::object();
  for (const auto& [name, one] : known_)
    all[name] = {{"figures", to_json(one.figures)}, {"price", to_json(one.price)}};
  return write_json_file(options_.journal, all);
}

std::string Trials::key_of(const std::set<int>& kept, bool all_inputs) const {
  return sha256_hex(fmt::format("{} {}", all_inputs, fmt::join(kept, ",")));
}

Result<std::vector<Trials::Loaded>> Trials::load(const KeptGraph& graph,
                                                 const std::vector<NodeSegment>& segments,
                                                 bool at_reference) const {
  std::vector<Loaded> out;
  for (const NodeSegment& segment : segments) {
    const bool ours = segment.kept || at_reference;
    const Executor& executor = ours ? *setup_->ref : *setup_->on;
    LoadOptions load = options_.load;
    if (ours) load.optimization = Optimization::kDisabled;
    const std::string where =
        fmt::format("segment {} of {} ({} nodes) on '{}'", out.size() + 1, segments.size(),
                    segment.nodes.size(), executor.address());
    TENONNX_ASSIGN_OR_RETURN(const Model part, cut_out(*graph.model, segment));
    auto loaded = executor.load(part, load);
    if (!loaded.ok()) return loaded.status().at(where);
    out.push_back({where, std::move(*loaded)});
  }
  return out;
}

Result<TensorMap> Trials::run(std::vector<Loaded>& loaded, std::size_t position) const {
  const ReferenceInput& input = judge_->input(position);
  TensorMap known = input.tensors;
  for (Loaded& segment : loaded) {
    TENONNX_RETURN_IF_ERROR(segment.graph->select_case(input.name, position));
    auto made = segment.graph->run(inputs_of(*segment.graph, known));
    if (!made.ok()) return made.status().at(segment.where);
    for (auto& [name, tensor] : *made) known.insert_or_assign(name, tensor);
  }
  TensorMap out;
  for (const auto& [theirs, ours] : output_names_)
    if (const auto found = known.find(theirs); found != known.end())
      out.emplace(ours, found->second);
  return out;
}

Result<std::optional<Trial>> Trials::keep(const std::set<int>& kept, bool all_inputs) {
  std::set<int> nodes;  // of which there is something to keep
  std::set_intersection(nodes_.begin(), nodes_.end(), kept.begin(), kept.end(),
                        std::inserter(nodes, nodes.end()));
  const std::string key = key_of(nodes, all_inputs);
  if (const auto found = known_.find(key); found != known_.end()) {
    if (found->second.recalled) ++recalled_;
    return std::optional<Trial>(found->second);
  }
  if (used_ >= options_.budget) return std::optional<Trial>();
  if (options_.progress)
    options_.progress("trials", static_cast<std::int64_t>(used_),
                      static_cast<std::int64_t>(options_.budget));
  ++used_;
  TENONNX_ASSIGN_OR_RETURN(const KeptGraph graph, graphs_->keep(nodes));
  const GraphIndex index(graph.model->proto().graph());
  const std::vector<NodeSegment> segments = divide_nodes(index, graph.kept);
  Trial trial;
  trial.price = price_of(*graph.model, index, segments);
  auto loaded = load(graph, segments, false);
  if (!loaded.ok()) {
    trial.figures.passes = false;
    trial.figures.failed.push_back("does not load: " + loaded.status().message());
    TENONNX_RETURN_IF_ERROR(remember(key, trial));
    return std::optional<Trial>(std::move(trial));
  }
  std::vector<std::size_t> positions;
  std::vector<TensorMap> outputs;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    auto made = run(*loaded, order_[i]);
    if (!made.ok()) {
      trial.figures.passes = false;
      trial.figures.failed.push_back("does not run: " + made.status().message());
      break;
    }
    positions.push_back(order_[i]);
    outputs.push_back(std::move(*made));
    if (all_inputs) continue;
    TENONNX_ASSIGN_OR_RETURN(const OutputFigures one,
                             judge_->judge({positions.back()}, {outputs.back()}));
    if (one.passes) continue;
    // What failed here is likely to fail first the next time too.
    std::rotate(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(i),
                order_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    break;
  }
  if (trial.figures.passes) {
    TENONNX_ASSIGN_OR_RETURN(trial.figures, judge_->judge(positions, outputs));
  }
  TENONNX_RETURN_IF_ERROR(remember(key, trial));
  return std::optional<Trial>(std::move(trial));
}

Result<std::string> Trials::differs_at_reference(const std::set<int>& kept) {
  KeptGraph graph;
  graph.model = &setup_->reference;
  if (setup_->two_models) return std::string();  // the reference's own graph is what ran
  graph.kept = kept;
  const std::vector<NodeSegment> segments = divide_nodes(*index_, kept);
  TENONNX_ASSIGN_OR_RETURN(std::vector<Loaded> loaded, load(graph, segments, true));
  for (std::size_t n = 0; n < judge_->size(); ++n) {
    TENONNX_ASSIGN_OR_RETURN(const TensorMap made, run(loaded, n));
    for (const auto& [name, tensor] : judge_->reference(n)) {
      TENONNX_ASSIGN_OR_RETURN(const Identity same, compare_identical(tensor, made.at(name)));
      if (!same.identical)
        return fmt::format("'{}' of '{}': {} of {} elements differ", name, judge_->input(n).name,
                           same.differing, tensor.size());
    }
  }
  return std::string();
}

}  // namespace tenonnx
