// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which dimensions of a row-major space the modes of a view go along.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "passes/strided_view.h"

namespace tenonnx {

struct StridePart {
  std::size_t dim = 0;                // of the space
  std::int64_t size = 1, stride = 0;  // the stride counted in steps of the dimension
  std::int64_t other = 0;             // the stride that the same elements have elsewhere
};

// Cuts a mode of a view of `space` at the borders of the space's dimensions and adds the parts,
// innermost first; `other` is the mode's stride elsewhere. False where a border lies within a step.
bool cut_at_dimensions(const Shape& space, StrideMode mode, std::int64_t other,
                       std::vector<StridePart>& parts);

// Two views of one shape, cut so that their modes go together: the modes of `a`, each with the
// stride in `b`. nullopt where sizes do not go into one another.
std::optional<std::vector<std::pair<StrideMode, std::int64_t>>> together(const StridedView& a,
                                                                         const StridedView& b);

}  // namespace tenonnx
