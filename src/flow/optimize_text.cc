// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <map>

#include "base/status.h"
#include "base/wording.h"
#include "flow/optimize.h"
#include "flow/result_text.h"
#include "flow/sampling_text.h"
#include "flow/split.h"
#include "passes/explain.h"
#include "passes/proof_floor.h"

namespace tenonnx {
namespace {

// Lines about what one pass left alone: of one that was asked for by name every near miss counts.
constexpr std::size_t kMostSkipped = 5, kMostSkippedByName = 24;

bool runs_by_name(const PassRun& run) { return run.pass->stage != PassStage::kOptimize; }

Json size_json(const GraphSize& size) {
  return {{"nodes", size.nodes}, {"bytes", size.bytes}, {"sha256", size.sha256}};
}

// The proof of all rounds whose worst check is nearest to its limit; nullptr where there is none.
const PassProof* hardest(const PassRun& run) {
  const PassProof* worst = nullptr;
  for (const PassProof& proof : run.proofs) {
    if (worst == nullptr || (proof.verdict == Verdict::kFail && worst->verdict != Verdict::kFail) ||
        severity(proof.worst) > severity(worst->worst))
      worst = &proof;
  }
  return worst;
}

// Of an approximate pass the task gate judges, and the proof has no check. nullptr: neither has
// one.
const Check* worst_check(const PassRun& run) {
  const Check* worst = nullptr;
  for (const Check& check : run.gate)
    if (worst == nullptr || (check.verdict == Verdict::kFail && worst->verdict != Verdict::kFail) ||
        (check.verdict == worst->verdict && severity(check) > severity(*worst)))
      worst = &check;
  const PassProof* proof = hardest(run);
  return worst != nullptr || proof == nullptr ? worst : &proof->worst;
}

// Changed regions over all rounds, and the real inputs that each ran on.
struct Regions {
  int count = 0, real = 0, made = 0, context = 0;
};

Regions regions_of(const PassRun& run) {
  Regions sum;
  for (const PassProof& proof : run.proofs) {
    sum.count += proof.regions;
    sum.real = std::max(sum.real, proof.captured_inputs);
    sum.made += proof.made_inputs;
    sum.context += proof.with_context;
  }
  return sum;
}

std::vector<std::string> row_of(const PassRun& run, bool proved) {
  std::vector<std::string> row = {
      std::string(run.pass->name), std::string(to_string(run.pass->exactness)),
      fmt::format("{}", run.applied),
      run.nodes_changed != 0 ? fmt::format("{:+}", run.nodes_changed) : "0"};
  if (!proved) return row;
  const Check* check = worst_check(run);
  if (check == nullptr) {
    row.insert(row.end(), {run.undone ? "FAIL" : "", "", "", ""});
    return row;
  }
  const bool measured = check->value == check->value;
  row.push_back(std::string(to_string(run.verdict)));
  row.push_back(measured ? fmt::format("{:.3g}", check->value) : "-");
  row.push_back(measured ? fmt::format("{:.3g}", check->limit.value) : "");
  row.push_back(fmt::format("{}", regions_of(run).count));
  return row;
}

std::string failures_text(const PassRun& run) {
  std::string out;
  for (const PassProof& proof : run.proofs) {
    for (const RegionFailure& failure : proof.failures) {
      out +=
          fmt::format("  {}: on {}: {}\n", run.pass->name, failure.input, to_text(failure.check));
      if (!failure.before.empty())
        out += fmt::format("    before: {}\n", fmt::join(failure.before, ", "));
      if (!failure.after.empty())
        out += fmt::format("    after:  {}\n", fmt::join(failure.after, ", "));
      if (!failure.minimal_case.empty())
        out += fmt::format("    case:   {}\n", failure.minimal_case.string());
    }
  }
  for (const Check& check : run.gate)
    if (check.verdict == Verdict::kFail)
      out += fmt::format("  {}: the task gate: {}\n", run.pass->name, to_text(check));
  return out;
}

// What the proofs of sampling nodes found, of the passes that changed some.
std::string sampling_text(const PassRun& run) {
  std::string out;
  for (const PassProof& proof : run.proofs)
    for (const SamplingProof& sampling : proof.sampling)
      out += fmt::format("  {}: {}", run.pass->name, describe(sampling, "    "));
  return out;
}

// The heading says what these checks are of.
std::vector<Check> without_prefix(std::vector<Check> checks) {
  constexpr std::string_view kPrefix = "whole graph: ";
  for (Check& check : checks)
    if (check.name.starts_with(kPrefix)) check.name.erase(0, kPrefix.size());
  return checks;
}

std::string and_more(const std::vector<std::string>& nodes) {
  return nodes.front() +
         (nodes.size() > 1 ? fmt::format(" and {} more", nodes.size() - 1) : std::string());
}

std::string skipped_text(const PassRun& run) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const Refusal& refusal : run.skipped) by_reason[refusal.reason].push_back(refusal.node);
  const std::size_t most = runs_by_name(run) ? kMostSkippedByName : kMostSkipped;
  std::string out;
  std::size_t lines = 0;
  for (const auto& [reason, nodes] : by_reason) {
    if (lines++ == most)
      return out + fmt::format("  {}: ... {} more with --json\n", run.pass->name,
                               counted(by_reason.size() - most, "reason"));
    out += fmt::format("  {}: {}: {}\n", run.pass->name, reason, and_more(nodes));
  }
  return out;
}

// What the output is without.
std::string undone_text(const OptimizeResult& result) {
  std::string out;
  for (const PassRun& run : result.passes.passes) {
    if (!run.undone) continue;
    const std::string what = run.applied > 0 ? fmt::format("the last change of {}", run.pass->name)
                                             : std::string(run.pass->name);
    const std::string& why = run.problem;
    out += result.written
               ? fmt::format("  UNDONE: {} is written without {}: {}\n", result.out, what, why)
               : fmt::format("  UNDONE: {}: {}; {} is not written\n", what, why, result.out);
  }
  return out;
}

// How many places a rewriting pass found, and what became of them.
std::string sites_text(const PassRun& run) {
  if (run.pass->stage != PassStage::kRewrite || run.sites.empty()) return {};
  std::string out = fmt::format("  {}: {}{}{} changed, {} left\n", run.pass->name, run.total,
                                run.total.empty() ? "" : "; ", counted(run.sites.size(), "site"),
                                run.skipped.size());
  std::vector<std::pair<std::string, std::vector<std::string>>> by_what;  // as they were found
  for (const Site& site : run.sites) {
    const auto same = std::find_if(by_what.begin(), by_what.end(),
                                   [&](const auto& one) { return one.first == site.what; });
    if (same == by_what.end())
      by_what.push_back({site.what, {site.node}});
    else
      same->second.push_back(site.node);
  }
  for (std::size_t i = 0; i < by_what.size(); ++i) {
    if (i == kMostSkippedByName)
      return out + fmt::format("    ... {} more with --json\n", by_what.size() - i);
    out += fmt::format("    {}: {}\n", by_what[i].first, and_more(by_what[i].second));
  }
  return out;
}

}  // namespace

Json to_json(const OptimizeResult& result) {
  Json passes = Json::array();
  for (const PassRun& run : result.passes.passes) {
    Json sites = Json::array(), skipped = Json::array(), proofs = Json::array();
    for (const Site& site : run.sites) sites.push_back({{"node", site.node}, {"what", site.what}});
    for (const Refusal& refusal : run.skipped)
      skipped.push_back({{"node", refusal.node}, {"reason", refusal.reason}});
    for (const PassProof& proof : run.proofs) proofs.push_back(to_json(proof));
    const bool proved = !run.proofs.empty() || run.undone;
    passes.push_back({{"name", run.pass->name},
                      {"class", to_string(run.pass->exactness)},
                      {"applied", run.applied},
                      {"rounds", run.rounds},
                      {"nodes_before", run.nodes_before},
                      {"nodes_after", run.nodes_after},
                      {"nodes_changed", run.nodes_changed},
                      {"seconds", json_number(run.seconds)},
                      {"verdict", proved ? Json(to_string(run.verdict)) : Json()},
                      {"undone", run.undone},
                      {"problem", run.problem},
                      {"total", run.total},
                      {"sites", std::move(sites)},
                      {"skipped", std::move(skipped)},
                      {"proofs", std::move(proofs)},
                      {"task_gate", to_json(std::span<const Check>(run.gate))}});
  }
  Json versions = Json::object();
  for (const auto& [name, value] : result.versions) versions[name] = value;
  const bool checked = result.proof != ProofLevel::kNone;
  return {{"schema_version", 1},
          {"model", result.model},
          {"out", result.out},
          {"written", result.written},
          {"verdict", checked ? Json(to_string(result.verdict)) : Json()},
          {"proof", to_string(result.proof)},
          {"inputs", result.inputs},
          {"random_inputs", result.random_inputs},
          {"before", size_json(result.before)},
          {"after", size_json(result.after)},
          {"rounds", result.passes.rounds},
          {"passes", std::move(passes)},
          {"whole", to_json(std::span<const Check>(result.whole.checks))},
          {"names", to_json(result.passes.names)},
          {"declined", result.declined},
          {"left", result.left},
          {"notes", result.notes},
          {"versions", std::move(versions)},
          {"pass_seconds", json_number(result.passes.seconds)},
          {"seconds", json_number(result.seconds)}};
}

std::string describe(const OptimizeResult& result) {
  const bool checked = result.proof != ProofLevel::kNone;
  const bool proved = result.proof == ProofLevel::kRegions;
  std::string out = fmt::format(
      "{} -> {}: {}\n\n  {} -> {}, {} -> {}, {}\n", result.model, result.out,
      checked ? to_string(result.verdict) : "not checked (--proof none)", result.before.nodes,
      counted(result.after.nodes, "node"), spell_bytes(result.before.bytes),
      result.written ? spell_bytes(result.after.bytes) : "not written",
      counted(result.passes.rounds, "round"));
  for (const std::string& declined : result.declined)
    out += fmt::format("  DECLINED: {}\n", declined);
  for (const std::string& left : result.left) out += fmt::format("  LEFT: {}\n", left);
  out += undone_text(result);
  if (checked) out += fmt::format("  inputs: {}\n", result.inputs);
  std::vector<std::vector<std::string>> rows = {{"pass", "class", "applied", "nodes"}};
  if (proved) rows[0].insert(rows[0].end(), {"proof", "value", "limit", "regions"});
  std::string idle, failures, skipped, sampling, sites, notes;
  Regions sum;
  for (const PassRun& run : result.passes.passes) {
    failures += failures_text(run);
    if (run.undone) failures += fmt::format("  {} was undone: {}\n", run.pass->name, run.problem);
    skipped += skipped_text(run);
    sampling += sampling_text(run);
    for (const PassProof& proof : run.proofs)
      for (const std::string& note : proof.notes)
        notes += fmt::format("  note: {}: {}\n", run.pass->name, note);
    sites += sites_text(run);
    if (run.applied == 0 && !run.undone) {
      // What declined stands with its reasons under "skipped".
      if (!run.skipped.empty()) continue;
      idle += fmt::format("{}{}", idle.empty() ? "" : ", ", run.pass->name);
      if (!run.problem.empty()) idle += fmt::format(" ({})", run.problem);
      continue;
    }
    rows.push_back(row_of(run, proved));
    const Regions regions = regions_of(run);
    sum.count += regions.count;
    sum.real = std::max(sum.real, regions.real);
    sum.made += regions.made;
    sum.context += regions.context;
  }
  if (rows.size() > 1) out += "\n" + aligned(rows, "  ");
  if (sum.count > 0)
    out += fmt::format(
        "  value, limit: of the check nearest to its limit; regions: changed parts of the graph, "
        "each before against after on {}, and in {} on made inputs{}\n",
        counted(sum.real, result.random_inputs ? "random input" : "real input"),
        counted(sum.made, "run"),
        sum.context > 0 ? fmt::format(" ({} with the nodes before)", counted(sum.context, "region"))
                        : "");
  if (!sites.empty()) out += "\nsites\n" + sites;
  if (!sampling.empty())
    out += "\nsampling\n" + sampling +
           "  taps: pixels with a weight; index: the largest distance between what both sample, in "
           "pixels; float16, bfloat16, int8: how far rounding the grid moves a point, in pixels\n";
  if (!idle.empty()) out += fmt::format("\n  nothing to do: {}\n", idle);
  if (!failures.empty()) out += "\nfailed\n" + failures;
  if (!skipped.empty()) out += "\nskipped\n" + skipped;
  if (checked) out += "\nwhole graph\n" + checks_table(without_prefix(result.whole.checks));
  for (const std::string& note : result.notes) out += fmt::format("  note: {}\n", note);
  out += notes;
  if (!result.written)
    out +=
        "\nNothing was written: the whole graph failed its check. Run the passes one at a time "
        "(--only PASS) to see which one it is, or --skip those of class algebraic.\n";
  return out;
}

std::string list_passes() {
  std::vector<std::vector<std::string>> rows = {
      {"pass", "stage", "opset", "class", "what it does"}};
  for (const PassInfo& pass : all_passes())
    rows.push_back({std::string(pass.name), std::string(to_string(pass.stage)),
                    fmt::format("{}-{}", pass.min_opset, pass.max_opset),
                    std::string(to_string(pass.exactness)), std::string(pass.summary)});
  return aligned(rows, "");
}

Json passes_json() {
  Json passes = Json::array();
  for (const PassInfo& pass : all_passes())
    passes.push_back({{"name", pass.name},
                      {"stage", to_string(pass.stage)},
                      {"min_opset", pass.min_opset},
                      {"max_opset", pass.max_opset},
                      {"class", to_string(pass.exactness)},
                      {"summary", pass.summary}});
  return {{"schema_version", 1}, {"passes", std::move(passes)}};
}

Result<std::string> explain_pass(std::string_view name) {
  TENONNX_ASSIGN_OR_RETURN(const PassInfo* pass, find_pass(name));
  return fmt::format("{}\nStage {}, class {}, opset {} to {}.\n", pass_comment(pass->name),
                     to_string(pass->stage), to_string(pass->exactness), pass->min_opset,
                     pass->max_opset);
}

}  // namespace tenonnx
