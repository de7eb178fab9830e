// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The automatic cut and the candidates as the commands use them: for people and as JSON, with an
// error where there is none.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "cut/candidates.h"
#include "flow/prepare.h"
#include "tenonnx/base.h"

namespace tenonnx {

// What --at and --cut take for the automatic cut.
inline constexpr std::string_view kAutomaticCut = "auto";
bool is_automatic(const std::vector<std::string>& cut);

// The automatic cut of a prepared model. NotFound says why there is none and what to do.
Result<DescribedCut> automatic_cut(const Model& prepared);
// Of a cut that was named. Exact names.
CutDescription describe_named_cut(const Model& prepared, const std::vector<std::string>& cut);

struct CutListRequest {
  std::filesystem::path model;
  Preparation preparation;
  CandidateOptions options;
};
struct CutList {
  std::string model, sha256;
  CutCandidates found;
};
Result<CutList> list_cuts(const CutListRequest& request);

// docs/reference/json.md, "Cut".
Json to_json(const CutDescription& cut);
Json to_json(const CutList& list);
// "1,612,800 elements, 6.15 MiB in float32; behind it 12 sampling sites, 3 selections, 88
// normalisations, 60 layers with weights"
std::string describe(const CutDescription& cut);
// A table of at most 100 columns.
std::string describe(const CutList& list);

}  // namespace tenonnx
