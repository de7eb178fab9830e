// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Reading pixels by computed indices in the place of GridSample: which form is exact in a device's
// index arithmetic, and its nodes. Options of the passes that use it:
//
//   index_arithmetic   int32 (default), float32, float16, bfloat16
//   device             NAME: that of the device file (arithmetic, "indices"; else its storage)
//   form               auto (default), rows, elements, two_axis
//
//   rows      [N*H*W, C]  Gather, axis 0     index (n*H + y)*W + x   to N*H*W - 1
//   elements  [N,C,H*W]   GatherElements     index y*W + x           to H*W - 1
//   two_axis  [N,H,W,C]   GatherND           indices y, x            to H - 1 and W - 1
//
// auto is the first of these whose indices are all exact. With int32, coordinates are cast first
// and multiplied as integers; with a float type they are multiplied in it and cast last, as there
// is nothing else such a device could do. Indices are int32, of GatherND int64: ONNX has no other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/grid_sample_form.h"
#include "passes/options.h"

namespace tenonnx {

enum class GatherForm { kRows, kElements, kTwoAxis };
std::string_view to_string(GatherForm form);  // rows, elements, two_axis

struct GatherOptions {
  DType indices = DType::kInt32;        // what indices are computed in
  DType coordinates = DType::kFloat32;  // what pixel coordinates are stored in
  std::string origin;                   // "index_arithmetic=float16", "device 'x' (devices/x.json)"
  std::optional<GatherForm> form;       // none: the first that is exact
  std::string refusal;                  // why the device takes no form at all; empty: it takes them
};
// Reads the three options above. InvalidArgument: a value that is none of them, both
// index_arithmetic and device, a device without an arithmetic section. NotFound: no such device.
Result<GatherOptions> gather_options(std::string_view pass, const PassOptions& options);

// How one site is read. Height and width are those of the tensor that is indexed.
struct GatherPlan {
  GatherForm form = GatherForm::kRows;
  DType indices = DType::kInt32;
  std::int64_t height = 0, width = 0;

  PointLayout layout() const {
    return form == GatherForm::kElements ? PointLayout::kPointsLast : PointLayout::kChannelsLast;
  }
};
// `pad` pixels are added on every side before indexing. Returns why there is no plan: "" where
// there is. The reason names the largest index, the bound and where it comes from.
std::string plan_gather(const GridSampleNode& site, const GatherOptions& options, std::int64_t pad,
                        GatherPlan& plan);

// Writes the reads. Coordinates are float32 whole numbers inside the indexed tensor, in the plan's
// layout.
class PixelReader {
 public:
  // `value`: [N,C,height,width] as the plan has them.
  PixelReader(SiteWriter& w, const GridSampleNode& site, const GatherPlan& plan,
              const std::string& value);
  // A row or a column, prepared once for all reads that share it.
  std::string row(const std::string& y);
  std::string column(const std::string& x);
  // What stands there: [N,K,C], or [N,C,K] in the form elements.
  std::string read(const std::string& row, const std::string& column);
  // [N,K,C] or [N,C,K] to the site's output.
  void finish(const std::string& points, const GridSampleNode& site);

 private:
  SiteWriter& w_;
  GatherPlan plan_;
  std::int64_t batch_;
  std::string source_;    // the value in the form's shape
  std::string first_;     // rows: the first pixel of each image
  std::string channels_;  // elements: what indices are expanded to
};

}  // namespace tenonnx
