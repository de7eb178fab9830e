// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Runs of the candidate with some nodes kept at the reference, all others on the device: what a
// fault finder tries. Each set is run once, counted, and kept on disk for going on later.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "cut/kept_nodes.h"
#include "numerics/kept_graph.h"
#include "numerics/output_judge.h"

namespace tenonnx {

struct Trial {
  OutputFigures figures;
  DivisionPrice price;
  bool recalled = false;
};

struct TrialsOptions {
  LoadOptions load;
  std::size_t budget = 60;        // runs that are not recalled
  std::filesystem::path journal;  // a file; empty: nothing is kept
  bool resume = false;            // use what it holds, else it is begun anew
  Progress progress;
};

class Trials {
 public:
  // All outlive it.
  static Result<Trials> make(const CompareSetup& setup, const KeptGraphs& graphs,
                             const OutputJudge& judge, TrialsOptions options);

  // Nodes of the candidate's graph that follow from its inputs: those that can be kept.
  const std::set<int>& nodes() const { return nodes_; }
  std::set<int> without(const std::set<int>& nodes) const;

  // `all_inputs`: else it ends at the first input that fails, those that fail without anything
  // kept first. nullopt where the budget is used up. A device that does not take a segment is an
  // answer too: it does not pass, and the figures say why.
  Result<std::optional<Trial>> keep(const std::set<int>& kept, bool all_inputs = false);
  // The same division with every segment at the reference: "" where its outputs are the
  // reference's element by element, else which is not.
  Result<std::string> differs_at_reference(const std::set<int>& kept);

  std::size_t used() const { return used_; }
  std::size_t recalled() const { return recalled_; }
  std::size_t budget() const { return options_.budget; }
  bool on_disk() const { return !options_.journal.empty(); }
  const GraphIndex& index() const { return *index_; }
  const KeptGraphs& graphs() const { return *graphs_; }

 private:
  Trials(const CompareSetup& setup, const KeptGraphs& graphs, const OutputJudge& judge,
         TrialsOptions options);
  struct Loaded {
    std::string where;
    std::unique_ptr<LoadedGraph> graph;
  };
  Result<std::vector<Loaded>> load(const KeptGraph& graph, const std::vector<NodeSegment>& segments,
                                   bool at_reference) const;
  Result<TensorMap> run(std::vector<Loaded>& loaded, std::size_t position) const;
  std::string key_of(const std::set<int>& kept, bool all_inputs) const;
  Status read_journal();
  Status remember(const std::string& key, const Trial& trial);

  const CompareSetup* setup_;
  const KeptGraphs* graphs_;
  const OutputJudge* judge_;
  TrialsOptions options_;
  std::unique_ptr<GraphIndex> index_;
  std::set<int> nodes_;
  std::vector<std::size_t> order_;  // of the inputs
  std::map<std::string, Trial> known_;
  std::size_t used_ = 0, recalled_ = 0;
  std::map<std::string, std::string> output_names_;  // of the candidate -> of the reference
};

Json to_json(const OutputFigures& figures);

}  // namespace tenonnx
