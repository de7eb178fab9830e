// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "base/wording.h"
#include "flow/compare.h"
#include "flow/result_text.h"
#include "metrics/signal.h"

namespace tenonnx {
namespace {

constexpr std::size_t kListed = 10;
constexpr std::size_t kNameWidth = 40;

// Lines of their own, `indent` characters in.
std::string paragraph(const std::string& text, std::size_t indent) {
  return wrapped(std::string(indent, ' ') + text) + '\n';
}

std::string figure(double value) { return fmt::format("{:.3g}", value); }

std::vector<std::string> row_of(const ComparedTensor& tensor) {
  const TensorComparison& figures = *tensor.figures;
  const TensorError& error = figures.error;
  const auto sqnr = sqnr_db(error);
  const bool floats = error.relative_l2.has_value();
  const double floor = std::max(figures.storage.max_abs, figures.path.max_abs);
  return {shortened(tensor.plan.tensor.name, kNameWidth),
          floats ? figure(*error.relative_l2) : fmt::format("{} differ", error.differing),
          floats ? figure(error.max_abs) : "",
          floats ? figure(floor) : fmt::format("{}", figures.path_differing),
          sqnr ? fmt::format("{:.1f}", *sqnr) : "",
          is_floor_itself(figures) ? "= floor" : figure(figures.ratio),
          std::string(to_string(figures.check.verdict))};
}

std::string worst_table(const CompareResult& result) {
  std::vector<std::vector<std::string>> rows = {
      {"tensor", "rel. L2", "max abs", "floor", "SQNR dB", "ratio", "verdict"}};
  const auto worst = result.worst();
  for (std::size_t i = 0; i < worst.size() && i < kListed; ++i) rows.push_back(row_of(*worst[i]));
  std::string out = "worst tensors, by the ratio of their error to the noise floor\n";
  return out + aligned(rows, "  ");
}

std::string checks_text(const CompareResult& result) {
  std::string out;
  for (const Check& check : result.checks) {
    std::string line = fmt::format("{}  {}", to_string(check.verdict), check.name);
    if (!std::isnan(check.value))
      line += fmt::format(" {:.4g} {} {:.4g} ({})", check.value, to_string(check.comparison),
                          check.limit.value, check.limit.origin);
    if (!check.note.empty()) line += ": " + check.note;
    out += paragraph(line, 2);
  }
  return out;
}

// Of outputs whose range the contract declares.
std::string psnr_text(const CompareResult& result) {
  std::vector<std::vector<std::string>> rows;
  for (const ComparedTensor& tensor : result.tensors)
    if (tensor.figures && tensor.figures->psnr)
      rows.push_back({shortened(tensor.plan.tensor.name, kNameWidth),
                      fmt::format("{:.1f} dB", tensor.figures->psnr->db),
                      tensor.figures->psnr->origin});
  return rows.empty() ? "" : "\nPSNR over the declared range\n" + aligned(rows, "  ");
}

std::string first_text(const CompareResult& result) {
  const ComparedTensor* first = result.first_beyond();
  if (first == nullptr) return {};
  const TensorComparison& figures = *first->figures;
  std::string out = "\nfirst beyond its limit, in the order of computation\n";
  out += paragraph(fmt::format("'{}' of {}, {} {}, on '{}'", first->plan.tensor.name,
                               first->plan.node, to_string(first->plan.tensor.info.dtype),
                               to_string(first->plan.tensor.info.shape), figures.worst_input),
                   2);
  return out + paragraph(to_text(figures.check), 2);
}

}  // namespace

std::string describe(const CompareResult& result) {
  std::string out = fmt::format("{}: {}\n", to_string(result.verdict), coverage(result));
  out += fmt::format("  reference  {} on {}\n", result.reference, result.ref);
  out += fmt::format("  candidate  {} on {}\n", result.candidate, result.on);
  out += fmt::format("  inputs     {}\n", result.inputs);
  out += fmt::format("  tensors    taken {}; floor in {}{}, factor {:g}\n\n", result.taken,
                     to_string(result.storage),
                     result.forms_of.empty() ? "" : ", forms of " + result.forms_of, result.factor);
  for (const std::string& line : result.explanations) out += paragraph("cause: " + line, 0);
  if (!result.explanations.empty()) out += '\n';
  out += "checks\n" + checks_text(result) + '\n';
  out += worst_table(result);
  out += psnr_text(result);
  out += first_text(result);
  if (!result.notes.empty()) out += '\n';
  for (const std::string& note : result.notes) out += paragraph("note: " + note, 0);
  return out;
}

}  // namespace tenonnx
