// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Gates that people quote by name. They are agreed figures, not noise floors: offered beside the
// floor because a report is asked for them. The three come from one deployment report of a BEV
// model whose GridSample was replaced by Gather: "allclose atol 1e-5", "PSNR > 45 dB", "mAP
// difference < 0.5 %".
#pragma once

#include <string_view>

#include "metrics/limit.h"
#include "tenonnx/base.h"

namespace tenonnx {

inline constexpr double kAllcloseAbsolute = 1e-5;
// What torch.allclose adds where only atol is given: 1e-5 of the reference's magnitude.
inline constexpr double kAllcloseRelative = 1e-5;
inline constexpr double kPsnrDb = 45;
inline constexpr double kMapDifference = 0.005;

// "<name>: allclose": elements with |candidate - reference| > 1e-5 + 1e-5 |reference|, or where NaN
// or Inf stands on one side only; none may be. InvalidArgument as compare_tensors.
Result<Check> allclose_gate(std::string_view name, const Tensor& reference,
                            const Tensor& candidate);

// "<name>: PSNR" >= 45 dB over the peak: the width of the declared range, or (peak 0) the width of
// the reference's own values, which the origin says. `declared` says who declares it, and what.
// INCONCLUSIVE where the reference is constant. FAIL where the candidate has Inf or NaN in place of
// a number.
Result<Check> psnr_gate(std::string_view name, const Tensor& reference, const Tensor& candidate,
                        double peak, std::string_view declared = "");

// "mAP difference" <= 0.005 of two average precisions in [0,1]: half a point in percent.
Check map_gate(double reference, double candidate);

}  // namespace tenonnx
