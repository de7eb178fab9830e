// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>

#include "base/status.h"
#include "base/wording.h"
#include "passes/proof_sampling.h"

namespace tenonnx {
namespace {

std::string spell_size(const std::vector<std::int64_t>& size) {
  std::string out;  // height x width, as shapes are written
  for (std::size_t a = size.size(); a-- > 0;) out += fmt::format("{}{}", size[a], a > 0 ? "x" : "");
  return out;
}

double rounding(const SampledLevel& level, DType dtype) {
  double most = 0;
  for (const std::int64_t n : level.size)
    most = std::max(most, grid_rounding(dtype, n, level.align_corners));
  return most;
}

Json to_json(const PointKinds& kinds) {
  return {{"points", kinds.points},
          {"centre", kinds.centre},
          {"corner", kinds.corner},
          {"border", kinds.border},
          {"tie", kinds.tie},
          {"outside_less", kinds.outside_less},
          {"outside_more", kinds.outside_more},
          {"far", kinds.far},
          {"not_finite", kinds.not_finite}};
}

Json json_or_null(double value) { return value < 0 ? Json() : json_number(value); }
Json json_or_null(std::int64_t value) { return value < 0 ? Json() : Json(value); }

std::string spell_ulp(std::int64_t ulp) {
  return ulp < 0 ? "ulp not known" : fmt::format("{} ulp", ulp);
}

std::string spell_mebibytes(std::int64_t bytes) {
  return fmt::format("{:.3g} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

Json to_json(const SamplingProof& proof) {
  Json levels = Json::array();
  for (const SampledLevelProof& one : proof.levels) {
    const SampledLevel& level = one.level;
    Json budget = {{"float16", json_number(rounding(level, DType::kFloat16))},
                   {"bfloat16", json_number(rounding(level, DType::kBFloat16))},
                   {"int8", json_number(rounding(level, DType::kInt8))},
                   {"int16", json_number(rounding(level, DType::kInt16))}};
    budget[std::string(to_string(level.dtype))] = json_number(rounding(level, level.dtype));
    const bool read = one.tap_sets > 0;
    levels.push_back({{"node", level.node},
                      {"level", level.level},
                      {"size", Shape(level.size.rbegin(), level.size.rend())},
                      {"mode", level.mode},
                      {"padding", level.padding},
                      {"align_corners", level.align_corners},
                      {"grid_dtype", to_string(level.dtype)},
                      {"grid_rounding_pixels", std::move(budget)},
                      {"made", to_json(one.made)},
                      {"real", to_json(one.real)},
                      {"taps", read ? Json(one.taps.taps) : Json()},
                      {"wrong_taps", read ? Json(one.taps.wrong) : Json()},
                      {"index_difference", read ? json_number(one.taps.index_difference) : Json()},
                      {"problem", one.taps.problem}});
  }
  Json breaks;
  if (proof.breaks)
    breaks = {{"node", proof.breaks->node},
              {"level", proof.breaks->level},
              {"input", proof.breaks->where},
              {"grid", proof.breaks->grid},
              {"pixel", proof.breaks->pixel}};
  return {{"levels", std::move(levels)},
          {"first_break", std::move(breaks)},
          {"made_max_abs", json_number(proof.made_abs)},
          {"made_max_ulp", json_or_null(proof.made_ulp)},
          {"real_max_abs", json_number(proof.real_abs)},
          {"real_max_ulp", json_or_null(proof.real_ulp)},
          {"bytes_before", json_or_null(proof.bytes_before)},
          {"bytes_after", json_or_null(proof.bytes_after)},
          {"seconds_before", json_or_null(proof.seconds_before)},
          {"seconds_after", json_or_null(proof.seconds_after)},
          {"notes", proof.notes}};
}

std::string describe(const SamplingProof& proof, std::string_view indent) {
  std::string out;
  for (const SampledLevelProof& one : proof.levels) {
    const SampledLevel& level = one.level;
    out += fmt::format("{}{}{}, {}, {}, {}{}: {} made, {} real\n", indent, level.node,
                       level.level > 0 ? fmt::format(" level {}", level.level) : "",
                       spell_size(level.size), level.mode, level.padding,
                       level.align_corners ? ", corners aligned" : "",
                       counted(one.made.points, "point"), one.real.points);
    if (one.made.points > 0)
      if (const auto missing = one.made.missing(); !missing.empty())
        out += fmt::format("{}  not reached: {}\n", indent, fmt::join(missing, ", "));
    if (one.tap_sets > 0)
      out += fmt::format("{}  wrong taps: {} of {}; largest index difference {:.3g}\n", indent,
                         one.taps.wrong, one.taps.taps, one.taps.index_difference);
    if (!one.taps.problem.empty())
      out += fmt::format("{}  taps not read on {}\n", indent, one.taps.problem);
    out += fmt::format(
        "{}  rounding the grid moves a point by up to {:.2g} pixels in float16, {:.2g} in "
        "bfloat16, {:.2g} in int8\n",
        indent, rounding(level, DType::kFloat16), rounding(level, DType::kBFloat16),
        rounding(level, DType::kInt8));
  }
  if (proof.breaks)
    out += fmt::format("{}first point that breaks: grid ({:.9g}), pixel ({:.6g}) of {}{}, on {}\n",
                       indent, fmt::join(proof.breaks->grid, ", "),
                       fmt::join(proof.breaks->pixel, ", "), proof.breaks->node,
                       proof.breaks->level > 0 ? fmt::format(" level {}", proof.breaks->level) : "",
                       proof.breaks->where);
  out += fmt::format("{}error: {:.3g}, {} on made inputs; {:.3g}, {} on the first real one\n",
                     indent, proof.made_abs, spell_ulp(proof.made_ulp), proof.real_abs,
                     spell_ulp(proof.real_ulp));
  if (proof.bytes_before >= 0 && proof.bytes_after >= 0)
    out += fmt::format("{}memory beside inputs and constants, from shapes: {} -> {}\n", indent,
                       spell_mebibytes(proof.bytes_before), spell_mebibytes(proof.bytes_after));
  if (proof.seconds_before >= 0 && proof.seconds_after >= 0)
    out += fmt::format("{}time of one run without optimisation: {:.3g} ms -> {:.3g} ms\n", indent,
                       proof.seconds_before * 1e3, proof.seconds_after * 1e3);
  for (const std::string& note : proof.notes) out += fmt::format("{}{}\n", indent, note);
  return out;
}

}  // namespace tenonnx
