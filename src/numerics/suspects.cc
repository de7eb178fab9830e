// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/suspects.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "base/status.h"
#include "flow/noise_path.h"
#include "model/extract.h"
#include "numerics/block_name.h"
#include "numerics/decoupled.h"
#include "numerics/piece.h"
#include "numerics/values.h"
#include "ort/capture.h"

namespace tenonnx {
namespace {

bool roots_follow(const GraphIndex& index, const std::string& tensor) {
  for (const Use& use : index.uses(tensor)) {
    const std::string& op = index.graph().node(use.node).op_type();
    if (op == "Sqrt" || op == "Pow" || op == "Reciprocal") return true;
  }
  return false;
}

class Ranker {
 public:
  Ranker(const CompareSetup& setup, const ErrorTable& table, const LoadOptions& load)
      : setup_(setup),
        table_(table),
        load_(load),
        ours_(setup.reference.proto().graph()),
        theirs_(setup.candidate().proto().graph()),
        reference_(*setup.ref, setup.reference, setup.inputs, load),
        fed_(shared_tensors(table)) {
    for (const auto& [theirs, ours] : fed_) {
      shared_.insert(ours);
      shared_there_.insert(theirs);
    }
  }

  Result<RankedSuspects> run(std::size_t count) {
    RankedSuspects out;
    std::vector<const TensorErrors*> order;
    for (const TensorErrors& one : table_.tensors)
      if (one.own && !std::isnan(one.own->ratio)) order.push_back(&one);
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      if (a->own_fails() != b->own_fails()) return a->own_fails();
      return a->own->ratio > b->own->ratio;
    });
    add_selections(out);
    std::set<int> seen;
    for (const Suspect& suspect : out.suspects) seen.insert(suspect.candidate_node);
    for (const TensorErrors* one : order) {
      const Value* value = theirs_.find(one->plan.candidate);
      if (value == nullptr || value->producer < 0 || !seen.insert(value->producer).second) continue;
      if (one->own_fails()) out.failing.push_back(value->producer);
      // Only what stands out, where something does.
      if (out.suspects.size() >= count || (!one->own_fails() && !out.failing.empty())) continue;
      if (one->own->error.differing == 0) continue;
      TENONNX_ASSIGN_OR_RETURN(Suspect suspect, look_at(*one, value->producer));
      if (known_culprit(out, suspect)) continue;
      out.suspects.push_back(std::move(suspect));
    }
    out.stands_out = !out.failing.empty();
    for (const Suspect& suspect : out.suspects)
      if (out.stands_out && suspect.culprit >= 0 &&
          std::find(out.failing.begin(), out.failing.end(), suspect.culprit) == out.failing.end())
        out.failing.push_back(suspect.culprit);
    return out;
  }

 private:
  // A selection that chooses otherwise from the very same scores.
  void add_selections(RankedSuspects& out) const {
    for (const SelectionError& one : table_.selections) {
      if (!one.own) continue;
      const SelectionAgreement& own = *one.own;
      const bool sets = own.in_common == own.chosen && own.invalid == 0;
      if (sets && own.disorder <= one.own_limit) continue;
      if (!sets && own.margin <= one.own_limit && own.invalid == 0) continue;
      Suspect suspect;
      suspect.node = one.selection.label;
      suspect.tensor = one.selection.indices;
      for (const auto& [theirs, ours] : fed_)
        if (ours == one.selection.indices)
          if (const Value* value = theirs_.find(theirs); value != nullptr)
            suspect.candidate_node = value->producer;
      if (suspect.candidate_node >= 0)
        suspect.block = to_string(block_name(theirs_, suspect.candidate_node));
      suspect.ratio = std::numeric_limits<double>::infinity();
      suspect.kind = {
          FaultKind::kSelection,
          fmt::format("from the reference's scores it chooses otherwise: {}", to_string(own)), 1};
      if (suspect.candidate_node >= 0 && setup_.two_models) {
        const auto ours =
            cut_out(setup_.reference, piece_between(ours_, one.selection.indices, shared_));
        const onnx::NodeProto& there = theirs_.graph().node(suspect.candidate_node);
        const auto theirs =
            cut_out(setup_.other,
                    piece_between(theirs_, there.output(there.output_size() - 1), shared_there_));
        if (ours.ok() && theirs.ok())
          if (const std::string text = graph_difference(*ours, *theirs, fed_).text; !text.empty())
            suspect.kind.text = text + "; " + suspect.kind.text;
      }
      if (suspect.candidate_node >= 0) out.failing.push_back(suspect.candidate_node);
      out.suspects.push_back(std::move(suspect));
    }
  }

  // It makes, or meets, a value that another suspect is about already.
  static bool known_culprit(const RankedSuspects& out, const Suspect& suspect) {
    return std::any_of(out.suspects.begin(), out.suspects.end(), [&](const Suspect& other) {
      return (suspect.culprit >= 0 &&
              (other.culprit == suspect.culprit || other.candidate_node == suspect.culprit)) ||
             (other.culprit >= 0 && other.culprit == suspect.candidate_node);
    });
  }

  Result<Suspect> look_at(const TensorErrors& one, int node) {
    Suspect out;
    out.candidate_node = node;
    out.node = node_label(theirs_.graph().node(node));
    out.tensor = one.plan.tensor.name;
    out.block = to_string(block_name(theirs_, node));
    out.own = one.own->error.relative_l2.value_or(0);
    out.own_floor = std::max(one.own->storage.relative_l2, one.own->path.relative_l2);
    out.ratio = one.own->ratio;
    if (one.accumulated) out.accumulated = one.accumulated->error.relative_l2.value_or(0);
    TENONNX_RETURN_IF_ERROR(classify(one, out).at(out.node));
    return out;
  }

  Status classify(const TensorErrors& one, Suspect& out) {
    TENONNX_ASSIGN_OR_RETURN(const std::size_t position,
                             reference_.position_of(one.own->worst_input));
    const Piece ours = piece_between(ours_, one.plan.tensor.name, shared_);
    TENONNX_ASSIGN_OR_RETURN(const Model piece, cut_out(setup_.reference, ours));
    PieceCase piece_case;
    piece_case.piece = &piece;
    piece_case.output = one.plan.tensor.name;
    piece_case.storage = setup_.settings.storage;
    piece_case.epsilon_follows = roots_follow(ours_, one.plan.tensor.name);
    std::set<std::string> names(ours.inputs.begin(), ours.inputs.end());
    names.insert(one.plan.tensor.name);
    TENONNX_ASSIGN_OR_RETURN(piece_case.inputs, reference_.get(names, position));
    piece_case.expected = piece_case.inputs.extract(one.plan.tensor.name).mapped();
    const DecoupledExecutor device(*setup_.on, fed_, reference_);
    TENONNX_ASSIGN_OR_RETURN(const auto graph, load_with_outputs(device, setup_.candidate(),
                                                                 {one.plan.candidate}, load_));
    TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, setup_.inputs.load(position));
    TENONNX_RETURN_IF_ERROR(graph->select_case(input.name, position));
    TENONNX_ASSIGN_OR_RETURN(TensorMap made, graph->run(inputs_of(*graph, input.tensors)));
    piece_case.got = made.begin()->second;
    TENONNX_ASSIGN_OR_RETURN(out.kind, kind_of(piece_case));
    if (setup_.two_models) {
      const Piece theirs = piece_between(theirs_, one.plan.candidate, shared_there_);
      out.piece = theirs.nodes.size();
      out.reference_piece = ours.nodes.size();
      TENONNX_ASSIGN_OR_RETURN(const Model other, cut_out(setup_.other, theirs));
      const KindFinding found = graph_difference(piece, other, fed_);
      if (!found.text.empty()) {
        // A kernel is what remains where nothing is known: the operator may say more.
        if (out.kind.explained < kExplains && found.kind != FaultKind::kKernel)
          out.kind.kind = found.kind;
        out.kind.text = found.text + "; " + out.kind.text;
        out.kind.explained = 1;
      }
    }
    if (out.kind.kind == FaultKind::kRange) {
      if (setup_.inputs.size() > 1)
        out.kind.text += fmt::format(" (with '{}')", one.own->worst_input);
      find_culprit(piece_case, out);
    }
    return {};
  }

  // Whoever makes the value that does not fit: the node itself, or the one before it.
  void find_culprit(const PieceCase& piece_case, Suspect& out) const {
    const double limit = largest_of(setup_.settings.storage);
    for (const auto& [name, tensor] : piece_case.inputs) {
      if (!is_floating(tensor.dtype())) continue;
      if (largest_magnitude(values_of(tensor)) <= limit) continue;
      for (const auto& [theirs, ours] : fed_) {
        if (ours != name) continue;
        const Value* value = theirs_.find(theirs);
        if (value == nullptr || value->producer < 0) continue;
        out.culprit = value->producer;
        out.culprit_tensor = name;
        out.culprit_node = node_label(theirs_.graph().node(value->producer));
        return;
      }
    }
  }

  const CompareSetup& setup_;
  const ErrorTable& table_;
  const LoadOptions& load_;
  const GraphIndex ours_, theirs_;
  ReferenceTensors reference_;
  const FedTensors fed_;
  std::set<std::string, std::less<>> shared_, shared_there_;
};

}  // namespace

Result<RankedSuspects> rank_suspects(const CompareSetup& setup, const ErrorTable& table,
                                     const LoadOptions& load, std::size_t count) {
  return Ranker(setup, table, load).run(count);
}

}  // namespace tenonnx
