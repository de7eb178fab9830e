// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// tenonnx::GridSample, version 1: that of ONNX, opsets 16 to 22, with a layout
//   value         [N, C, H, W] or [N, C, D, H, W]; [N, H, W, C] or [N, D, H, W, C] with NHWC: T
//   grid          [N, Ho, Wo, 2], (x, y), or [N, Do, Ho, Wo, 3], (x, y, z), in -1..1: G
//   output        [N, C, Ho, Wo] or [N, C, Do, Ho, Wo], or with the channels last: T
//   attributes    mode: linear or bilinear (default), nearest, cubic or bicubic (4-D alone);
//                 padding_mode: zeros (default), border, reflection; align_corners: 0 or 1;
//                 layout: NCHW (default), NHWC, of 5-D values too
// T: float32, float16, bfloat16; G: float32 or T.
#include "kernels/custom_op.h"

#include "kernels/grid_sample/grid_sample.h"
#include "kernels/library.h"

namespace tenonnx::kernels {
namespace {

constexpr const char* kName = "GridSample";

GridSampleMode mode_of(const Ort::ConstKernelInfo& info) {
  const std::string mode = attribute_or<std::string>(info, "mode", "linear");
  if (mode == "linear" || mode == "bilinear") return GridSampleMode::kLinear;
  if (mode == "nearest") return GridSampleMode::kNearest;
  if (mode == "cubic" || mode == "bicubic") return GridSampleMode::kCubic;
  fail(kName, "mode '" + mode + "' is none of linear (bilinear), nearest, cubic (bicubic)");
}

GridSamplePadding padding_of(const Ort::ConstKernelInfo& info) {
  const std::string padding = attribute_or<std::string>(info, "padding_mode", "zeros");
  if (padding == "zeros") return GridSamplePadding::kZeros;
  if (padding == "border") return GridSamplePadding::kBorder;
  if (padding == "reflection") return GridSamplePadding::kReflection;
  fail(kName, "padding_mode '" + padding + "' is none of zeros, border, reflection");
}

bool channels_last_of(const Ort::ConstKernelInfo& info) {
  const std::string layout = attribute_or<std::string>(info, "layout", "NCHW");
  if (layout != "NCHW" && layout != "NHWC")
    fail(kName, "layout '" + layout + "' is none of NCHW, NHWC");
  return layout == "NHWC";
}

GridSampleSizes sizes_of(const Dims& value, const Dims& grid, bool channels_last) {
  GridSampleSizes sizes;
  const std::size_t rank = value.rank();
  const auto dimensions = static_cast<std::int64_t>(rank) - 2;
  if ((rank != 4 && rank != 5) || grid.rank() != rank || grid[rank - 1] != dimensions)
    fail(kName,
         "value " + value.text() + " and grid " + grid.text() +
             " are not both of rank 4, the grid with 2 coordinates last, or of rank 5 with 3");
  if (value[0] != grid[0])
    fail(kName, "value " + value.text() + " has " + std::to_string(value[0]) + " images, grid " +
                    grid.text() + " " + std::to_string(grid[0]));
  sizes.dimensions = static_cast<int>(dimensions);
  sizes.batch = value[0];
  sizes.channels = value[channels_last ? rank - 1 : 1];
  const std::size_t before = 5 - rank;  // sizes that a 2-D image lacks
  for (std::size_t i = before; i < 3; ++i) {
    sizes.in[i] = value[i - before + (channels_last ? 1 : 2)];
    sizes.out[i] = grid[i - before + 1];
  }
  return sizes;
}

template <typename T, typename G>
class GridSampleKernel {
 public:
  explicit GridSampleKernel(const Ort::ConstKernelInfo& info) {
    options_.mode = mode_of(info);
    options_.padding = padding_of(info);
    options_.align_corners = attribute_or<std::int64_t>(info, "align_corners", 0) != 0;
    options_.channels_last = channels_last_of(info);
  }

  void compute(const Ort::KernelContext& context) const {
    const auto value = context.GetInput(0), grid = context.GetInput(1);
    const Dims v(kName, "value", value), g(kName, "grid", grid);
    const GridSampleSizes sizes = sizes_of(v, g, options_.channels_last);
    if (const std::string wrong = check(options_, sizes); !wrong.empty())
      fail(kName, wrong + " (value " + v.text() + ")");
    std::array<std::int64_t, 5> dims{};
    const std::size_t rank = v.rank();
    dims[0] = sizes.batch;
    dims[options_.channels_last ? rank - 1 : 1] = sizes.channels;
    for (std::size_t i = 1; i + 1 < rank; ++i) dims[i + (options_.channels_last ? 0 : 1)] = g[i];
    auto out = context.GetOutput(0, dims.data(), rank);
    grid_sample(options_, sizes,
                GridSampleTensors<T, G>{static_cast<const T*>(value.GetTensorRawData()),
                                        static_cast<const G*>(grid.GetTensorRawData()),
                                        static_cast<T*>(out.GetTensorMutableRawData())},
                OrtParallel(context));
  }

 private:
  GridSampleOptions options_;
};

template <typename T, typename G>
struct GridSampleOp : OpBase<GridSampleOp<T, G>, GridSampleKernel<T, G>> {
  const char* GetName() const { return kName; }
  std::size_t GetInputTypeCount() const { return 2; }
  ONNXTensorElementDataType GetInputType(std::size_t i) const {
    return i == 0 ? element_type<T>() : element_type<G>();
  }
  std::size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(std::size_t) const { return element_type<T>(); }

  static OrtStatusPtr infer_shapes(Ort::ShapeInferContext& context,
                                   ONNXTensorElementDataType value_type) {
    const auto& value = context.GetInputShape(0);
    const auto& grid = context.GetInputShape(1);
    if ((value.size() != 4 && value.size() != 5) || grid.size() != value.size()) return nullptr;
    bool last = false;
    try {
      last = context.GetAttrString("layout") == "NHWC";
    } catch (const Ort::Exception&) {  // absent
    }
    Ort::ShapeInferContext::Shape out(grid.begin(), grid.end() - 1);
    out.insert(last ? out.end() : out.begin() + 1, last ? value.back() : value[1]);
    return context.SetOutputShape(0, out, value_type).release();
  }
};

}  // namespace

void add_grid_sample(CustomOps& ops) {
  add_op<GridSampleOp<float, float>>(ops);
  add_op<GridSampleOp<Half, float>>(ops);
  add_op<GridSampleOp<Half, Half>>(ops);
  add_op<GridSampleOp<BHalf, float>>(ops);
  add_op<GridSampleOp<BHalf, BHalf>>(ops);
}

}  // namespace tenonnx::kernels
