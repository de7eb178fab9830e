// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "base/wording.h"
#include "flow/result_text.h"
#include "numerics/probe.h"

namespace tenonnx {
namespace {

constexpr std::size_t kListed = 20;
constexpr std::size_t kDetailed = 3;
constexpr std::size_t kNameWidth = 44;

std::string figure(double value) { return fmt::format("{:.3g}", value); }

std::vector<std::string> row_of(const ProbedPiece& piece, const ProbedOutput& output) {
  const ErrorProfile& p = output.profile;
  if (p.count() == 0)
    return {shortened(piece.piece.label, kNameWidth),
            "-",
            "-",
            p.lost() > 0 ? fmt::format("{} lost", p.lost()) : "not compared",
            "-",
            "-"};
  return {shortened(piece.piece.label, kNameWidth),
          figure(p.rms()),
          figure(p.rounding_rms()),
          p.lost() > 0 ? fmt::format("{} lost", p.lost()) : figure(p.ratio()),
          figure(p.max_abs()),
          figure(p.bias())};
}

std::string distribution(const ErrorProfile& p, DType storage) {
  std::string out = fmt::format("error in spacings of {}: 0 in {:.1f} %", to_string(storage),
                                100.0 * static_cast<double>(p.classes()[0]) /
                                    static_cast<double>(std::max<std::int64_t>(p.count(), 1)));
  for (std::size_t i = 0; i < ErrorProfile::kUlps.size(); ++i) {
    if (p.classes()[i + 1] == 0) continue;
    const double share = 100.0 * static_cast<double>(p.classes()[i + 1]) /
                         static_cast<double>(std::max<std::int64_t>(p.count(), 1));
    out += std::isinf(ErrorProfile::kUlps[i])
               ? fmt::format(", more in {:.2g} %", share)
               : fmt::format(", up to {} in {:.2g} %", ErrorProfile::kUlps[i], share);
  }
  return out;
}

std::string details(const ProbedPiece& piece, DType storage) {
  std::string out = wrapped("  " + piece.piece.label + ", fed with " + piece.input_dtypes) + "\n";
  for (const ProbedOutput& output : piece.outputs) {
    const ErrorProfile& p = output.profile;
    if (p.not_finite() > 0)
      out += wrapped(fmt::format(
                 "    '{}': {} of {} Inf or NaN in the reference and left out", output.tensor,
                 p.not_finite(),
                 counted(p.not_finite() + p.count() + p.lost(), "element is", "elements are"))) +
             "\n";
    if (p.count() == 0) continue;
    out += wrapped("    " + distribution(p, storage)) + "\n";
    if (output.softmax_sum)
      out += wrapped(fmt::format("    largest |sum - 1| along its axis {}; of the exact results "
                                 "stored in {} {}",
                                 figure(*output.softmax_sum), to_string(storage),
                                 figure(*output.softmax_baseline))) +
             "\n";
    std::vector<std::vector<std::string>> rows = {
        {"input", "elements", "max abs", "max rel.", "bias"}};
    for (const ErrorRange& r : p.ranges())
      rows.push_back({fmt::format("{:g} to {:g}", r.from, r.to), fmt::format("{}", r.count),
                      figure(r.max_abs), figure(r.max_relative), figure(r.bias())});
    if (rows.size() > 1) {
      out += aligned(rows, "    ");
      if (p.candidate_settles() != p.reference_settles() && p.candidate_settles() > 0)
        out += wrapped(fmt::format("    between its least and greatest result up to |x| = {}; the "
                                   "reference up to {}",
                                   figure(p.candidate_settles()), figure(p.reference_settles()))) +
               "\n";
    }
  }
  for (const std::string& why : piece.skipped) out += wrapped("    left out: " + why) + "\n";
  return out;
}

}  // namespace

std::string describe(const ProbeResult& result) {
  std::string out = wrapped(fmt::format(
      "{} of {} on {} against {}, each alone, fed with the reference's tensors ({})",
      counted(result.pieces.size(), "piece"), result.model, result.on, result.ref, result.inputs));
  out += "\n";
  std::vector<std::vector<std::string>> rows = {
      {"piece", "rms error", "rounding", "ratio", "max abs", "bias"}};
  std::size_t listed = 0;
  for (const ProbedPiece& piece : result.pieces) {
    for (const ProbedOutput& output : piece.outputs)
      if (listed++ < kListed) rows.push_back(row_of(piece, output));
    if (piece.outputs.empty() && listed++ < kListed)
      rows.push_back(
          {shortened(piece.piece.label, kNameWidth), "-", "-", "not compared", "-", "-"});
  }
  out += aligned(rows, "  ");
  if (listed > kListed) out += fmt::format("  and {} more\n", listed - kListed);
  out += wrapped(fmt::format(
             "rounding: rms of storing the exact result in {}; a ratio of about 1 is a device that "
             "computes exactly and rounds once",
             to_string(result.storage))) +
         "\n";
  for (std::size_t i = 0; i < result.pieces.size() && i < kDetailed; ++i)
    out += details(result.pieces[i], result.storage);
  if (!result.compared())
    out += wrapped(
               "INCONCLUSIVE: nothing was compared, so that this says nothing of the device: no "
               "output holds a floating number that is finite in the reference") +
           "\n";
  for (const std::string& note : result.notes) out += wrapped("note: " + note) + "\n";
  if (result.random_inputs)
    out += "note: random inputs: real ones may reach values that these do not\n";
  return out;
}

Json to_json(const ProbeResult& result) {
  Json pieces = Json::array();
  for (const ProbedPiece& piece : result.pieces) {
    Json outputs = Json::array();
    for (const ProbedOutput& output : piece.outputs) {
      Json one = to_json(output.profile);
      one["tensor"] = output.tensor;
      if (output.softmax_sum) {
        one["softmax_sum_error"] = json_number(*output.softmax_sum);
        one["softmax_sum_baseline"] = json_number(*output.softmax_baseline);
      }
      outputs.push_back(std::move(one));
    }
    pieces.push_back({{"piece", piece.piece.label},
                      {"nodes", piece.piece.nodes.size()},
                      {"inputs", piece.piece.inputs},
                      {"ratio", piece.compared() ? json_number(piece.ratio()) : Json()},
                      {"outputs", std::move(outputs)},
                      {"left_out", piece.skipped}});
  }
  Json versions = Json::object();
  for (const auto& [name, version] : result.versions) versions[name] = version;
  return {{"schema_version", 1},
          {"model", result.model},
          {"sha256", result.sha256},
          {"ref", result.ref},
          {"on", result.on},
          {"inputs", result.inputs},
          {"random_inputs", result.random_inputs},
          {"storage", to_string(result.storage)},
          {"compared", result.compared()},
          {"pieces", std::move(pieces)},
          {"notes", result.notes},
          {"versions", std::move(versions)}};
}

}  // namespace tenonnx
