// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// How GridSample's mode is spelled: "bilinear", "nearest", "bicubic" at opset 16 to 19, "linear",
// "nearest", "cubic" from 20 on (ONNX GridSample-16, -20). ONNX Runtime 1.29 loads no graph with
// the other spelling, so that nothing can be proved of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/model.h"

namespace tenonnx {

inline constexpr std::int64_t kGridSampleModesRenamed = 20;

// The same mode as `opset` spells it, whatever the case of the letters of `mode`; "" where no opset
// has it.
std::string_view spelled_for_opset(std::string_view mode, std::int64_t opset);

struct MisspelledMode {
  std::string what;        // "GridSample 'n' has the mode 'linear', which opset 17 spells ..."
  bool is_a_mode = false;  // of some opset: else there is no right spelling
  int others = 0;          // such nodes beside this one
};
// The first GridSample, bodies included, whose mode is not spelled as the model's opset does.
std::optional<MisspelledMode> misspelled_mode(const Model& model);
// Spells them all right that have a right spelling. How many there were.
int spell_modes(Model& model);

}  // namespace tenonnx
