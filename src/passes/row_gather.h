// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Gathers that keep some rows of a tensor whole: what hoist_gather reads and writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "passes/rewriter.h"

namespace tenonnx {

// Source: ONNX Gather-13, GatherElements-13, GatherND-13. Numbers of rows below 0 count from the
// end in all three, which stays so.
struct RowGather {
  enum class Form {
    kShared,    // K row numbers for all images: Gather(axis)
    kPerImage,  // K row numbers for each index before `axis`: GatherND(batch_dims = axis)
    kPoints     // rows of (image, row): GatherND(batch_dims = 0)
  };
  int node = -1;
  Form form = Form::kShared;
  std::string data, rows, output;
  std::size_t axis = 0;   // of data, the last axis that is chosen from; what lies behind is kept
  Shape lead, kept_lead;  // dimensions up to `axis`, of data and of the output: the same rank
  std::int64_t rows_before() const;
  std::int64_t rows_after() const;
};

// How a tensor that stands beside, or follows from, the data lies against the rows.
struct RowPlace {
  bool has_rows = false;  // else it is the same for every row
  std::size_t axis = 0;   // where its rows are
};

// nullopt where the node is no gather of whole rows. `why` then says what is amiss where it is a
// gather of a computed tensor (GatherElements whose index changes inside a row, unknown shapes, an
// index of another rank), else it stays empty.
std::optional<RowGather> read_row_gather(const Rewriter& r, int node, std::string& why);

// Of a tensor of shape `shape` that broadcasts to one of rank `rank` whose rows are at `axis`;
// nullopt where its rows cannot be gathered: some of the images alone.
std::optional<RowPlace> row_place(const RowGather& gather, const Shape& shape, std::size_t rank,
                                  std::size_t axis);

// Gathers the rows of `tensor`, at `place`, by new nodes before the gather's; returns the name.
// Between Rewriter::begin() and apply().
std::string gather_rows(Rewriter& r, const RowGather& gather, const std::string& tensor,
                        const RowPlace& place);

// The shape that a tensor of the data's lead and then `shape` from `axis` + 1 on has afterwards.
Shape kept_shape(const RowGather& gather, const Shape& shape, std::size_t axis);

}  // namespace tenonnx
