// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "base/wording.h"
#include "flow/result_text.h"
#include "numerics/locate.h"

namespace tenonnx {
namespace {

constexpr std::size_t kNameWidth = 52;
constexpr std::size_t kListedNodes = 12;
// Bars of the waterfall are at most this wide.
constexpr double kBarWidth = 20;

std::string figure(double value) { return fmt::format("{:.3g}", value); }

// "FAILS 0.5317 0.7890 3/5"
std::string trial_text(const LocateResult& result, const std::optional<Trial>& trial) {
  if (!trial) return "not tried";
  const OutputFigures& f = trial->figures;
  const std::string verdict = f.passes ? "passes" : "FAILS ";
  if (!result.has_task) return fmt::format("{} {}", verdict, figure(f.scores_error));
  return fmt::format("{} {:.4f} {:.4f} {}/{}", verdict, f.top_score, f.scores_cosine, f.matched,
                     f.expected);
}

std::string cross_split_table(const LocateResult& result) {
  if (!result.whole) return "";
  const char* figures = result.has_task ? "top score, scores cosine, boxes matched"
                                        : "largest relative L2 of an output";
  std::string out =
      wrapped(fmt::format(
          "\ncross-split: the device is {}{}, the reference {}{}; {}", result.on,
          result.candidate == result.reference ? "" : " with " + result.candidate, result.ref,
          result.candidate == result.reference ? "" : " with " + result.reference, figures)) +
      "\n";
  if (result.has_task)
    out += fmt::format("  reference          {:.4f}\n", result.reference_top_score);
  out += fmt::format("  all on the device  {}\n", trial_text(result, result.whole));
  for (const std::string& why : result.whole->figures.failed)
    out += wrapped("                     " + why) + "\n";
  if (result.cuts.empty()) return out;
  std::vector<std::vector<std::string>> rows = {
      {"cut", "", "nodes", "device then reference", "reference then device"}};
  for (std::size_t i = 0; i < result.cuts.size(); ++i) {
    const CrossSplit& cut = result.cuts[i];
    const std::string nodes = fmt::format("{}|{}", cut.nodes_before, cut.nodes_behind);
    if (!cut.not_identical.empty())
      rows.push_back({fmt::format("{}", i + 1), cut.label, nodes, "left out", cut.not_identical});
    else
      rows.push_back({fmt::format("{}", i + 1), cut.label, nodes,
                      trial_text(result, cut.device_then_reference),
                      trial_text(result, cut.reference_then_device)});
  }
  out += aligned(rows, "  ");
  for (const std::string& sentence : result.sides) out += wrapped("  " + sentence) + "\n";
  return out;
}

std::string how_it_differs(const LocatedSelection& one) {
  if (!one.beyond_ties) return "what differs are ties within rounding";
  if (one.agreement.margin <= one.limit && one.agreement.invalid == 0)
    return fmt::format("the order is off by {} where rounding explains {}",
                       figure(one.agreement.disorder), figure(one.limit));
  return fmt::format("a score is off by {} where rounding explains {}",
                     figure(one.agreement.margin), figure(one.limit));
}

std::string suspects_text(const LocateResult& result) {
  std::string out =
      wrapped(fmt::format(
          "\nerrors: {} of {} compared tensors are beyond their floor, {} by an error of their own"
          "{}",
          result.accumulated_failing, result.tensors, result.own_failing,
          result.unmapped == 0 ? ""
                               : fmt::format("; {} of the reference {} no counterpart",
                                             counted(result.unmapped, "tensor"),
                                             result.unmapped == 1 ? "has" : "have"))) +
      "\n";
  // What stands out of nothing is no suspect.
  const bool any =
      result.verdict == Verdict::kFail || result.own_failing > 0 ||
      (!result.suspects.empty() && result.suspects.front().kind.kind == FaultKind::kSelection);
  const std::size_t listed = any ? result.suspects.size() : 0;
  for (std::size_t i = 0; i < listed; ++i) {
    const Suspect& one = result.suspects[i];
    out += wrapped(fmt::format("  {}. {}{}", i + 1, one.node,
                               one.block.empty() ? "" : ", in " + one.block)) +
           "\n";
    out += wrapped(fmt::format("     {}: {}", to_string(one.kind.kind), one.kind.text)) + "\n";
    if (one.piece > 1 || one.reference_piece > 1)
      out += wrapped(fmt::format("     or another of the {} that make it out of tensors that both "
                                 "graphs have ({} of the reference)",
                                 counted(one.piece, "node"), one.reference_piece)) +
             "\n";
    if (!one.culprit_node.empty())
      out += wrapped("     that value is made by " + one.culprit_node) + "\n";
    if (!one.tensor.empty() && !std::isinf(one.ratio))
      out +=
          wrapped(fmt::format(
              "     own error {} (relative L2) against a floor of {}, ratio {}; accumulated {}",
              figure(one.own), figure(one.own_floor), figure(one.ratio), figure(one.accumulated))) +
          "\n";
    if (one.alone_breaks)
      out += *one.alone_breaks ? "     alone on the device it breaks the task\n"
                               : "     alone on the device it does not break the task\n";
  }
  for (const LocatedSelection& one : result.selections) {
    if (!one.differs) continue;
    out += wrapped(fmt::format("  selection {}: {}; {}", one.label, to_string(one.agreement),
                               how_it_differs(one))) +
           "\n";
  }
  return out;
}

std::string price_of(const NodeSet& set) {
  const DivisionPrice& price = set.trial.price;
  return fmt::format("{}, {} cross ({}{:.1f} KiB)", counted(price.segments, "segment"),
                     counted(price.tensors, "tensor"), price.bytes_known ? "" : "at least ",
                     static_cast<double>(price.bytes) / 1024);
}

std::string set_text(const std::string& title, const NodeSet& set) {
  std::string out =
      wrapped(fmt::format("  {}: {}{}; {}", title, counted(set.nodes.size(), "node"),
                          set.minimal ? ", none can be left out" : "", price_of(set))) +
      "\n";
  for (std::size_t i = 0; i < set.nodes.size() && i < kListedNodes; ++i)
    out += "    " + set.nodes[i] + "\n";
  if (set.nodes.size() > kListedNodes)
    out += fmt::format("    and {} more\n", set.nodes.size() - kListedNodes);
  return out;
}

std::string sets_text(const LocateResult& result) {
  if (!result.keep && !result.breaks) return "";
  std::string out = "\nnode sets\n";
  if (result.keep)
    out += set_text("kept at the reference, these bring the task back", *result.keep);
  if (result.breaks) out += set_text("alone on the device, these break it", *result.breaks);
  for (const NodeSet& set : result.alternatives)
    out += wrapped(fmt::format("  also kept at the reference: {} ({}); {}", set.by,
                               counted(set.nodes.size(), "node"), price_of(set))) +
           "\n";
  return out;
}

std::string waterfall_text(const LocateResult& result) {
  if (result.waterfall.empty()) return "";
  std::string out =
      result.has_task ? "\nwaterfall: what the device adds between cuts (1 - scores cosine; 1 - "
                        "mean IoU)\n"
                      : "\nwaterfall: what the device adds between cuts (relative L2 of outputs)\n";
  double most = 0, most_boxes = 0, scores = 0, boxes = 0;
  for (const WaterfallBar& bar : result.waterfall) {
    most = std::max(most, std::fabs(bar.scores));
    most_boxes = std::max(most_boxes, std::fabs(bar.boxes));
  }
  // Bars of what is nothing beside the other say nothing.
  const bool by_boxes = most < 1e-3 * most_boxes;
  if (by_boxes) most = most_boxes;
  std::vector<std::vector<std::string>> rows = {{"from", "to", "scores", "boxes", "by", ""}};
  for (const WaterfallBar& bar : result.waterfall) {
    const double height = by_boxes ? bar.boxes : bar.scores;
    const auto width =
        most > 0 ? static_cast<std::size_t>(std::lround(std::fabs(height) / most * kBarWidth)) : 0;
    rows.push_back({bar.from, bar.to, fmt::format("{:+.2e}", bar.scores),
                    fmt::format("{:+.2e}", bar.boxes), bar.name,
                    std::string(width, height < 0 ? '-' : '#')});
    scores += bar.scores;
    boxes += bar.boxes;
  }
  rows.push_back(
      {"sum", "", fmt::format("{:+.2e}", scores), fmt::format("{:+.2e}", boxes), "", ""});
  return out + aligned(rows, "  ") +
         fmt::format("  bars of {}; #: adds to the error, -: takes away from it\n",
                     by_boxes ? "boxes" : "scores");
}

Json json_of(const NodeSet& set) {
  return {{"by", set.by},
          {"nodes", set.nodes},
          {"minimal", set.minimal},
          {"figures", to_json(set.trial.figures)},
          {"segments", set.trial.price.segments},
          {"tensors_that_cross", set.trial.price.tensors},
          {"bytes_that_cross", set.trial.price.bytes}};
}

Json json_of(const std::optional<Trial>& trial) {
  return trial ? to_json(trial->figures) : Json(nullptr);
}

Json json_of(const Suspect& one) {
  Json out = {{"node", one.node},
              {"tensor", one.tensor},
              {"block", one.block},
              {"kind", to_string(one.kind.kind)},
              {"finding", one.kind.text},
              {"explained", json_number(one.kind.explained)},
              {"own_relative_l2", json_number(one.own)},
              {"floor_relative_l2", json_number(one.own_floor)},
              {"ratio", json_number(one.ratio)},
              {"nodes_of_piece", one.piece},
              {"nodes_of_piece_in_reference", one.reference_piece},
              {"accumulated_relative_l2", json_number(one.accumulated)}};
  if (!one.culprit_node.empty()) {
    out["value"] = one.culprit_tensor;
    out["value_made_by"] = one.culprit_node;
  }
  if (one.alone_breaks) out["alone_breaks_task"] = *one.alone_breaks;
  return out;
}

}  // namespace

std::string describe(const LocateResult& result) {
  std::string out = wrapped(fmt::format("{} on {} against {} on {} ({})", result.candidate,
                                        result.on, result.reference, result.ref, result.inputs)) +
                    "\n";
  out +=
      wrapped(result.dry_run ? result.headline
                             : fmt::format("{}: {}", to_string(result.verdict), result.headline)) +
      "\n";
  for (const std::string& text : result.contract) out += wrapped("  contract: " + text) + "\n";
  if (result.tensors > 0) {
    out += cross_split_table(result);
    out += suspects_text(result);
    out += sets_text(result);
    out += waterfall_text(result);
    out += wrapped(fmt::format("\n{} on the device ({} recalled) of at most {}; {}",
                               counted(result.trials, "trial"), result.recalled, result.budget,
                               result.looking)) +
           "\n";
  }
  for (const std::string& text : result.not_shown) out += wrapped("not shown: " + text) + "\n";
  for (const std::string& note : result.notes) out += wrapped("note: " + note) + "\n";
  return out;
}

Json to_json(const LocateResult& result) {
  Json cuts = Json::array(), suspects = Json::array(), selections = Json::array(),
       alternatives = Json::array(), bars = Json::array();
  for (const CrossSplit& cut : result.cuts)
    cuts.push_back({{"label", cut.label},
                    {"tensors", cut.tensors},
                    {"nodes_before", cut.nodes_before},
                    {"nodes_behind", cut.nodes_behind},
                    {"reference_differs", cut.not_identical},
                    {"device_then_reference", json_of(cut.device_then_reference)},
                    {"reference_then_device", json_of(cut.reference_then_device)}});
  for (const Suspect& one : result.suspects) suspects.push_back(json_of(one));
  for (const LocatedSelection& one : result.selections) {
    Json entry = to_json(one.agreement);
    entry["selection"] = one.label;
    entry["limit"] = json_number(one.limit);
    entry["differs"] = one.differs;
    entry["beyond_ties"] = one.beyond_ties;
    selections.push_back(std::move(entry));
  }
  for (const NodeSet& set : result.alternatives) alternatives.push_back(json_of(set));
  for (const WaterfallBar& bar : result.waterfall)
    bars.push_back({{"from", bar.from},
                    {"to", bar.to},
                    {"scores", json_number(bar.scores)},
                    {"boxes", json_number(bar.boxes)},
                    {"name", bar.name}});
  Json versions = Json::object();
  for (const auto& [name, version] : result.versions) versions[name] = version;
  return {{"schema_version", 1},
          {"verdict", to_string(result.verdict)},
          {"headline", result.headline},
          {"reference", result.reference},
          {"reference_sha256", result.reference_sha256},
          {"candidate", result.candidate},
          {"candidate_sha256", result.candidate_sha256},
          {"ref", result.ref},
          {"on", result.on},
          {"inputs", result.inputs},
          {"random_inputs", result.random_inputs},
          {"gate", result.gate},
          {"looking", result.looking},
          {"storage", to_string(result.storage)},
          {"reference_top_score", json_number(result.reference_top_score)},
          {"contract", result.contract},
          {"whole", json_of(result.whole)},
          {"cuts", std::move(cuts)},
          {"sides", result.sides},
          {"tensors",
           {{"compared", result.tensors},
            {"without_counterpart", result.unmapped},
            {"identical", result.identical},
            {"with_own_error", result.with_own},
            {"beyond_floor", result.accumulated_failing},
            {"own_beyond_floor", result.own_failing}}},
          {"suspects", std::move(suspects)},
          {"selections", std::move(selections)},
          {"keep", result.keep ? json_of(*result.keep) : Json(nullptr)},
          {"breaks", result.breaks ? json_of(*result.breaks) : Json(nullptr)},
          {"alternatives", std::move(alternatives)},
          {"waterfall", std::move(bars)},
          {"trials",
           {{"used", result.trials}, {"recalled", result.recalled}, {"budget", result.budget}}},
          {"not_shown", result.not_shown},
          {"notes", result.notes},
          {"versions", std::move(versions)}};
}

}  // namespace tenonnx
