// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// tenonnx::Int8LutGridSample, version 1
//   value         [N, C, H, W], or [N, H, W, C] with layout NHWC: int8
//   grid          [N, Ho, Wo, 2], (x, y) in -1..1: float32
//   output        optional, [N, C, Ho, Wo] or [N, Ho, Wo, C]: int8
//   output_float  optional, the same, dequantised without rounding to int8: float32
//   attributes    value_scale (needed), value_zero_point (0); out_scale and out_zero_point (those
//                 of the value); padding_mode: zeros (default), border; align_corners: 0 or 1;
//                 layout: NCHW (default), NHWC
// A node names the output that it wants; the name of the other is empty or left out.
#include "kernels/custom_op.h"

#include "kernels/int8_lut_grid_sample/int8_lut_grid_sample.h"
#include "kernels/library.h"

namespace tenonnx::kernels {
namespace {

constexpr const char* kName = "Int8LutGridSample";

class Int8LutGridSampleKernel {
 public:
  explicit Int8LutGridSampleKernel(const Ort::ConstKernelInfo& info) {
    call_.value_scale = attribute_or<float>(info, "value_scale", 0.0F);
    if (call_.value_scale == 0) fail(kName, "the attribute 'value_scale' is missing or 0");
    call_.value_zero_point = zero_point(info, "value_zero_point", 0);
    call_.out_scale = attribute_or<float>(info, "out_scale", call_.value_scale);
    call_.out_zero_point = zero_point(info, "out_zero_point", call_.value_zero_point);
    call_.align_corners = attribute_or<std::int64_t>(info, "align_corners", 0) != 0;
    const std::string padding = attribute_or<std::string>(info, "padding_mode", "zeros");
    if (padding != "zeros" && padding != "border")
      fail(kName, "padding_mode '" + padding + "' is none of zeros, border");
    call_.padding = padding == "zeros" ? Int8LutPadding::kZeros : Int8LutPadding::kBorder;
    const std::string layout = attribute_or<std::string>(info, "layout", "NCHW");
    if (layout != "NCHW" && layout != "NHWC")
      fail(kName, "layout '" + layout + "' is none of NCHW, NHWC");
    call_.channels_last = layout == "NHWC";
    Int8LutGridSample one = call_;  // what is wrong with attributes is said before the first run
    one.channels = one.height = one.width = 1;
    if (const std::string wrong = one.check(); !wrong.empty()) fail(kName, wrong);
  }

  void compute(const Ort::KernelContext& context) const {
    const auto value = context.GetInput(0), grid = context.GetInput(1);
    const Dims v(kName, "value", value), g(kName, "grid", grid);
    if (v.rank() != 4 || g.rank() != 4 || g[3] != 2)
      fail(kName, "value " + v.text() + " and grid " + g.text() +
                      " are not of rank 4, the grid with 2 coordinates last");
    if (v[0] != g[0])
      fail(kName, "value " + v.text() + " has " + std::to_string(v[0]) + " images, grid " +
                      g.text() + " " + std::to_string(g[0]));
    Int8LutGridSample call = call_;
    const std::size_t first = call.channels_last ? 1 : 2;
    call.batch = v[0];
    call.channels = v[call.channels_last ? 3 : 1];
    call.height = v[first];
    call.width = v[first + 1];
    call.out_height = g[1];
    call.out_width = g[2];
    if (const std::string wrong = call.check(); !wrong.empty())
      fail(kName, wrong + " (value " + v.text() + ")");
    std::array<std::int64_t, 4> dims = {v[0], call.channels, g[1], g[2]};
    if (call.channels_last) dims = {v[0], g[1], g[2], call.channels};
    const auto* from = static_cast<const std::int8_t*>(value.GetTensorRawData());
    const auto* at = static_cast<const float*>(grid.GetTensorRawData());
    const OrtParallel parallel(context);
    for (std::size_t i = 0; i < context.GetOutputCount(); ++i) {
      auto out = context.GetOutput(i, dims.data(), dims.size());
      if (!out) continue;
      if (i == 0)
        int8_lut_grid_sample(call, from, at,
                             static_cast<std::int8_t*>(out.GetTensorMutableRawData()), parallel);
      else
        int8_lut_grid_sample(call, from, at, static_cast<float*>(out.GetTensorMutableRawData()),
                             parallel);
    }
  }

 private:
  static std::int32_t zero_point(const Ort::ConstKernelInfo& info, const char* name,
                                 std::int32_t fallback) {
    const auto given = attribute_or<std::int64_t>(info, name, fallback);
    if (given < -128 || given > 127)
      fail(kName, std::string(name) + " is " + std::to_string(given) +
                      ", -128 to 127 (int8) are possible");
    return static_cast<std::int32_t>(given);
  }

  Int8LutGridSample call_;
};

struct Int8LutGridSampleOp : OpBase<Int8LutGridSampleOp, Int8LutGridSampleKernel> {
  const char* GetName() const { return kName; }
  std::size_t GetInputTypeCount() const { return 2; }
  ONNXTensorElementDataType GetInputType(std::size_t i) const {
    return i == 0 ? element_type<std::int8_t>() : element_type<float>();
  }
  std::size_t GetOutputTypeCount() const { return 2; }
  ONNXTensorElementDataType GetOutputType(std::size_t i) const {
    return i == 0 ? element_type<std::int8_t>() : element_type<float>();
  }
  OrtCustomOpInputOutputCharacteristic GetOutputCharacteristic(std::size_t) const {
    return INPUT_OUTPUT_OPTIONAL;
  }

  static OrtStatusPtr infer_shapes(Ort::ShapeInferContext& context, ONNXTensorElementDataType) {
    const auto& value = context.GetInputShape(0);
    const auto& grid = context.GetInputShape(1);
    if (value.size() != 4 || grid.size() != 4) return nullptr;
    const bool last = layout_of(context) == "NHWC";
    Ort::ShapeInferContext::Shape out = {value[0], value[1], grid[1], grid[2]};
    if (last) out = {value[0], grid[1], grid[2], value[3]};
    if (auto status = context.SetOutputShape(0, out, element_type<std::int8_t>()); !status.IsOK())
      return status.release();
    // Fails where the node does not name the second output.
    static_cast<void>(context.SetOutputShape(1, out, element_type<float>()));
    return nullptr;
  }
  static std::string layout_of(Ort::ShapeInferContext& context) {
    try {
      return context.GetAttrString("layout");
    } catch (const Ort::Exception&) {  // absent
      return "NCHW";
    }
  }
};

}  // namespace

void add_int8_lut_grid_sample(CustomOps& ops) { add_op<Int8LutGridSampleOp>(ops); }

}  // namespace tenonnx::kernels
