// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a comparison's figures come to.
#pragma once

#include <vector>

#include "flow/compare.h"

namespace tenonnx {

// Judges every tensor and every selection that has figures. A tensor behind a selection whose rows
// could not be brought together neither passes nor fails: INCONCLUSIVE. Its floor is as large as a
// shuffling of rows, so that wrong labels and reversed boxes would be within it.
void judge_all(CompareResult& result, const CompareSettings& settings);

// One check over all tensors, one over Inf and NaN, one a selection; INCONCLUSIVE ones for what was
// not compared and for random inputs. A failure on random inputs stays one: it is a
// counter-example.
std::vector<Check> compare_checks(const CompareResult& result);

// Where most errors are the noise floor itself: what a ratio of 1 says then. Empty elsewhere.
std::string floor_note(const CompareResult& result);

// Outputs whose order differs although their rows agree.
std::vector<std::string> order_notes(const CompareResult& result);

}  // namespace tenonnx
