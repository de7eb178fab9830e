// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>

#include "base/status.h"
#include "passes/proof_sampling.h"

namespace tenonnx {
namespace {

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

}  // namespace

Json to_json(const SamplingProof& proof) {
  Json levels = Json::array();
  for (const SampledLevelProof& one : proof.levels) {
    const SampledLevel& level = one.level;
    Json budget = {{"float16", json_number(level.rounding(DType::kFloat16))},
                   {"bfloat16", json_number(level.rounding(DType::kBFloat16))},
                   {"int8", json_number(level.rounding(DType::kInt8))},
                   {"int16", json_number(level.rounding(DType::kInt16))}};
    budget[std::string(to_string(level.dtype))] = json_number(level.rounding(level.dtype));
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
                      {"taps_with", one.taps_with < 0 ? Json() : Json(one.taps_with)},
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

}  // namespace tenonnx
