// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/sampling_text.h"

#include <vector>

#include "base/status.h"
#include "base/wording.h"
#include "flow/result_text.h"
#include "flow/split.h"

namespace tenonnx {
namespace {

std::string spell_size(const std::vector<std::int64_t>& size) {
  std::string out;  // height x width, as shapes are written
  for (std::size_t a = size.size(); a-- > 0;) out += fmt::format("{}{}", size[a], a > 0 ? "x" : "");
  return out;
}

std::string spell_error(double error, std::int64_t ulp) {
  return ulp < 0 ? fmt::format("{:.3g}", error) : fmt::format("{:.3g} ({} ulp)", error, ulp);
}

std::string table_of(const SamplingProof& proof, std::string_view indent) {
  std::vector<std::vector<std::string>> rows = {
      {"level", "points made", "real", "wrong taps", "of", "index", "float16", "bfloat16", "int8"}};
  for (const SampledLevelProof& one : proof.levels) {
    const SampledLevel& level = one.level;
    const bool read = one.tap_sets > 0;
    rows.push_back({spell_size(level.size), fmt::format("{}", one.made.points),
                    fmt::format("{}", one.real.points),
                    read                 ? fmt::format("{}", one.taps.wrong)
                    : one.taps_with >= 0 ? "as above"
                                         : "-",
                    read ? fmt::format("{}", one.taps.taps) : "",
                    read ? fmt::format("{:.3g}", one.taps.index_difference) : "",
                    fmt::format("{:.2g}", level.rounding(DType::kFloat16)),
                    fmt::format("{:.2g}", level.rounding(DType::kBFloat16)),
                    fmt::format("{:.2g}", level.rounding(DType::kInt8))});
  }
  return aligned(rows, indent);
}

}  // namespace

std::string describe(const SamplingProof& proof, std::string_view indent) {
  if (proof.levels.empty()) return fmt::format("{}\n", fmt::join(proof.notes, "; "));
  const SampledLevel& first = proof.levels.front().level;
  std::string out =
      fmt::format("{}{}, {}, {}{}\n", first.node,
                  proof.levels.size() > 1
                      ? fmt::format(" and {}", counted(proof.levels.size() - 1, "more level"))
                      : "",
                  first.mode, first.padding, first.align_corners ? ", corners aligned" : "");
  out += table_of(proof, indent);
  for (const SampledLevelProof& one : proof.levels) {
    if (const auto missing = one.made.missing(); one.made.points > 0 && !missing.empty())
      out += fmt::format("{}{} was not reached: {}\n", indent, spell_size(one.level.size),
                         fmt::join(missing, ", "));
    if (!one.taps.problem.empty())
      out += fmt::format("{}{}: taps were not read on {}\n", indent, spell_size(one.level.size),
                         one.taps.problem);
  }
  if (proof.breaks)
    out +=
        fmt::format("{}first point that breaks: pixel ({:.6g}), grid ({:.9g}), on {}: {}\n", indent,
                    fmt::join(proof.breaks->pixel, ", "), fmt::join(proof.breaks->grid, ", "),
                    proof.breaks->where, proof.breaks->node);
  out += fmt::format("{}largest error {} on made points, {} on the first real input\n", indent,
                     spell_error(proof.made_abs, proof.made_ulp),
                     spell_error(proof.real_abs, proof.real_ulp));
  if (proof.bytes_before >= 0 && proof.bytes_after >= 0)
    out += fmt::format("{}memory beside inputs and constants, from shapes: {} before, {} after\n",
                       indent, spell_bytes(static_cast<std::uint64_t>(proof.bytes_before)),
                       spell_bytes(static_cast<std::uint64_t>(proof.bytes_after)));
  if (proof.seconds_before >= 0 && proof.seconds_after >= 0)
    out += fmt::format("{}one run without optimisation: {:.3g} ms before, {:.3g} ms after\n",
                       indent, proof.seconds_before * 1e3, proof.seconds_after * 1e3);
  for (const std::string& note : proof.notes) out += fmt::format("{}{}\n", indent, note);
  return out;
}

}  // namespace tenonnx
