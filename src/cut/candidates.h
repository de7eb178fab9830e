// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The places at which a model can be cut, each described.
#pragma once

#include <string>
#include <vector>

#include "cut/auto_cut.h"
#include "cut/describe.h"
#include "model/model.h"

namespace tenonnx {

struct CutCandidate {
  CutDescription cut;
  // "auto" for the automatic cut, "alternative" for its alternatives, "" for others; with the kind
  // and the reason of FoundCut.
  std::string mark, kind, reason;
};

struct CutCandidates {
  std::vector<CutCandidate> candidates;  // from the image to the outputs; all of them separators
  std::string why_none;                  // where there is no automatic cut
};

struct CandidateOptions {
  std::size_t max_width = 8;  // tensors that cross
  std::size_t max_count = 24;
};

// Places where less crosses than shortly before and behind (local minima of bytes), without those
// that another one with the same sampling and selections behind it beats in width and in bytes;
// the automatic cut and its alternatives always. Of more than max_count the ones with the fewest
// bytes are kept. Sizes need inferred shapes; where they are not known, width alone counts.
CutCandidates find_candidates(const Model& model, const CandidateOptions& options = {});

// The automatic cut alone, with its description: a fraction of the work.
struct DescribedCut {
  AutoCut found;
  CutDescription description;  // of found.cut; empty where there is none
};
DescribedCut find_described_cut(const Model& model);

}  // namespace tenonnx
