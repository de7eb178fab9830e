// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the forms that replace GridSample share: one reading of the node, one way to write nodes in
// its place, one emission of pixel coordinates.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/grid_sample/grid_sample.h"
#include "passes/rewriter.h"

namespace tenonnx {

// A GridSample of the main graph over images (two spatial dimensions), read once. Names are copies:
// they stay when the node goes.
struct GridSampleNode {
  int node = -1;
  std::string value, grid, output;     // [N,C,H,W], [N,Ho,Wo,2], [N,C,Ho,Wo]; float32
  GridSampleOptions options;           // mode, padding, align_corners
  std::int64_t height = 0, width = 0;  // H and W: always known
  // Not known: -1. Each is taken from whichever of the three tensors tells it.
  std::int64_t batch = -1, channels = -1, out_height = -1, out_width = -1;

  bool linear() const { return options.mode == GridSampleMode::kLinear; }
  bool zeros() const { return options.padding == GridSamplePadding::kZeros; }
  std::int64_t points() const {  // of one image; -1 where not known
    return out_height < 0 || out_width < 0 ? -1 : out_height * out_width;
  }
};

bool is_grid_sample(const onnx::NodeProto& node);
// Both spellings of a mode are read at every opset ("bilinear" and "linear", "bicubic" and
// "cubic"). Returns why no form can take the node, "" where `site` is filled: a rank other than 4,
// a tensor that is not float32 (of float16 and bfloat16 a grid would lose the coordinate), H or W
// that is not known or 0, an attribute that ONNX does not define.
std::string read_grid_sample(const Rewriter& r, int node, GridSampleNode& site);

// Offers every GridSample that can be read to `rule`, as Rewriter::run() offers nodes. What `rule`
// returns is why the node stays as it is, "" where there is nothing to say; that, and why a node
// cannot be read, are refusals.
Status for_each_grid_sample(Rewriter& r,
                            const std::function<std::string(GridSampleNode& site)>& rule);

std::string_view to_string(GridSampleMode mode);        // nearest, linear, cubic
std::string_view to_string(GridSamplePadding padding);  // zeros, border, reflection

// The pixel that a coordinate of the grid stands for, in the float32 steps of ONNX Runtime and of
// pixel_coordinates() below: ((g + 1) * size - 1) / 2, or (g + 1) / 2 * (size - 1). Where a grid is
// constant.
float pixel_coordinate(float g, std::int64_t size, bool align_corners);

// Writes what stands in the place of one node: new nodes come right before it, and what they make
// is named after its output. Between Rewriter::begin() and apply().
class SiteWriter {
 public:
  using Attribute = std::pair<std::string_view, std::int64_t>;

  SiteWriter(Rewriter& r, int node) : r_(r), at_(node), base_(r.node(node).output(0)) {}
  // Return the name of the output.
  std::string add(const char* op_type, const std::vector<std::string>& inputs,
                  std::initializer_list<Attribute> attributes = {});
  std::string transpose(const std::string& x, const std::vector<std::int64_t>& perm);
  // 0: as in x, -1: what remains.
  std::string reshape(const std::string& x, const std::vector<std::int64_t>& dims);
  std::string cast(const std::string& x, DType to);
  std::vector<std::string> split(const std::string& x, std::int64_t axis,
                                 const std::vector<std::int64_t>& sizes);
  // Initializers. The same number is made once for each writer.
  std::string scalar(double value);                               // float32, rank 0
  std::string integer(DType dtype, std::int64_t value);           // rank 0
  std::string integers(const std::vector<std::int64_t>& values);  // int64, rank 1
  std::string constant(std::string_view what, const Tensor& value);
  // A node as it is; its outputs must be names of fresh().
  void insert(onnx::NodeProto node) { r_.insert(at_, std::move(node)); }
  std::string fresh(std::string_view what) { return r_.fresh(base_ + "/" + std::string(what)); }
  // The last node, which makes the output that the replaced one made; removes that one.
  void finish(const char* op_type, const std::vector<std::string>& inputs,
              std::initializer_list<Attribute> attributes = {});
  // Reshapes x to the output's [N,C,Ho,Wo] under the output's name, and removes the node. At most
  // one of Ho and Wo may be unknown.
  void finish_images(const std::string& x, const GridSampleNode& site);

 private:
  Rewriter& r_;
  int at_;
  std::string base_;
  std::vector<std::pair<std::string, std::string>> made_;  // what a constant holds -> its name
};

// How points lie in the tensors that a form works on; K = Ho * Wo.
enum class PointLayout { kPointsLast /* [N,1,K] */, kChannelsLast /* [N,K,1] */ };

struct GridCoordinates {
  std::string x, y;  // float32, as the grid has them
};
GridCoordinates grid_coordinates(SiteWriter& w, const GridSampleNode& site, PointLayout layout);

struct PixelCoordinates {
  std::string x, y;  // float32, in pixels: 0 is the middle of the first one
};
// What the grid says, as it is: not padded, NaN and infinite where the grid is. Four roundings at
// most, the same as those of ONNX Runtime 1.29.
PixelCoordinates pixel_coordinates(SiteWriter& w, const GridSampleNode& site, PointLayout layout);

}  // namespace tenonnx
