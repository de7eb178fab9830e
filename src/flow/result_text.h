// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Results for people and for the manifest: what `deploy` and `verify` have in common.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "flow/prove.h"

namespace tenonnx {

// Lines "name value limit verdict [n]", aligned; below them where the limits come from, each origin
// once, and the notes of the checks that did not pass.
std::string checks_table(std::span<const Check> checks);

// Which box of which image differs, one a line; empty where nothing was found.
std::string findings_text(const Proof& proof);

// Rows of equal columns, aligned to the left, two spaces apart; an empty last column leaves no
// blanks. What does not fit into kScreenColumns goes on below the last column's beginning.
std::string aligned(const std::vector<std::vector<std::string>>& rows, std::string_view indent);

// "mAP 0.840 whole, 0.839 package (20 labelled images)" and what the verdict is over; with a
// newline.
std::string task_text(const Proof& proof);

// Manifest::summary.
Json summary_of(const Proof& proof, const std::string& inputs);

}  // namespace tenonnx
