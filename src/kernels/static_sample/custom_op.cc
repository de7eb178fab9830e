// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// tenonnx::StaticSample, version 1: see static_sample.h for the forms of the grid
//   value        [N, C, H, W], or [N, H, W, C] with layout NHWC: T
//   indices      form taps: [1 or N, points, 1 or 4]: int32
//   weights      form taps: the same: float32
//   coordinates  form int16: [1 or N, Ho, Wo, 2]: int16
//   base         form blocks: [1 or N, blocks, 4]: float32
//   delta        form blocks: [1 or N, blocks, 100, 2]: int8
//   output       [N, C, Ho, Wo] or [N, Ho, Wo, C]: T
//   attributes   form: taps (default), int16, blocks; input_size: H, W; output_size: Ho, Wo;
//                taps: 4 (default) or 1; step, offset: of x and y, form int16; padding_mode: zeros
//                (default), border, of int16 and blocks; layout: NCHW (default), NHWC
// T: float32, float16, bfloat16. All but the value are initializers, checked when the kernel is
// made.
#include "kernels/custom_op.h"

#include <algorithm>

#include "kernels/library.h"
#include "kernels/static_sample/static_sample.h"

namespace tenonnx::kernels {
namespace {

constexpr const char* kName = "StaticSample";

template <typename V>
std::vector<V> constant(const Ort::ConstKernelInfo& info, std::size_t index, const char* name) {
  int is_constant = 0;
  Ort::ConstValue value{nullptr};
  if (index < info.GetInputCount()) value = info.GetTensorConstantInput(index, &is_constant);
  if (is_constant == 0 || !value)
    fail(kName, std::string(name) + " is missing or no initializer: the grid has to be constant");
  const auto shape = value.GetTensorTypeAndShapeInfo();
  const auto* data = static_cast<const V*>(value.GetTensorRawData());
  return {data, data + shape.GetElementCount()};
}

StaticGrid grid_of(const Ort::ConstKernelInfo& info) {
  StaticGrid grid;
  const auto size = [&](const char* name, std::int64_t& height, std::int64_t& width) {
    const std::vector<std::int64_t> given = attributes_or_none<std::int64_t>(info, name);
    if (given.size() != 2)
      fail(kName, std::string("the attribute '") + name +
                      "' needs 2 numbers, height and width, got " + std::to_string(given.size()));
    height = given[0];
    width = given[1];
  };
  size("input_size", grid.height, grid.width);
  size("output_size", grid.out_height, grid.out_width);
  if (grid.out_height < 1 || grid.out_width < 1)
    fail(kName, "output_size is " + std::to_string(grid.out_height) + " x " +
                    std::to_string(grid.out_width) + ": at least 1 x 1 is needed");
  const std::string padding = attribute_or<std::string>(info, "padding_mode", "zeros");
  if (padding != "zeros" && padding != "border")
    fail(kName, "padding_mode '" + padding + "' is none of zeros, border");
  grid.padding = padding == "zeros" ? StaticPadding::kZeros : StaticPadding::kBorder;
  const std::string form = attribute_or<std::string>(info, "form", "taps");
  // The number of images follows from the length of the first array; check() compares the rest.
  const auto images = [&](std::size_t elements, std::int64_t of_image) {
    if (of_image < 1) return std::int64_t{1};
    return std::max<std::int64_t>(static_cast<std::int64_t>(elements) / of_image, 1);
  };
  constexpr std::int64_t kMost = 1 << 24;
  const bool sane = grid.out_height <= kMost && grid.out_width <= kMost;
  if (form == "taps") {
    grid.taps = attribute_or<std::int64_t>(info, "taps", 4);
    grid.indices = constant<std::int32_t>(info, 1, "indices");
    grid.weights = constant<float>(info, 2, "weights");
    if (sane && (grid.taps == 1 || grid.taps == 4))
      grid.images = images(grid.indices.size(), grid.points() * grid.taps);
  } else if (form == "int16") {
    grid.format = StaticFormat::kInt16;
    const std::vector<float> step = attributes_or_none<float>(info, "step"),
                             offset = attributes_or_none<float>(info, "offset");
    if (step.size() != 2 || offset.size() != 2)
      fail(kName, "form int16 needs the attributes 'step' and 'offset', of x and y");
    std::copy(step.begin(), step.end(), grid.step);
    std::copy(offset.begin(), offset.end(), grid.offset);
    grid.coordinates = constant<std::int16_t>(info, 3, "coordinates");
    if (sane) grid.images = images(grid.coordinates.size(), grid.points() * 2);
  } else if (form == "blocks") {
    grid.format = StaticFormat::kBlocks;
    grid.base = constant<float>(info, 4, "base");
    grid.delta = constant<std::int8_t>(info, 5, "delta");
    if (sane) grid.images = images(grid.base.size(), grid.blocks() * 4);
  } else {
    fail(kName, "form '" + form + "' is none of taps, int16, blocks");
  }
  if (const std::string wrong = grid.check(); !wrong.empty()) fail(kName, wrong);
  return grid;
}

template <typename T>
class StaticSampleKernel {
 public:
  explicit StaticSampleKernel(const Ort::ConstKernelInfo& info) : grid_(grid_of(info)) {
    const std::string layout = attribute_or<std::string>(info, "layout", "NCHW");
    if (layout != "NCHW" && layout != "NHWC")
      fail(kName, "layout '" + layout + "' is none of NCHW, NHWC");
    channels_last_ = layout == "NHWC";
  }

  void compute(const Ort::KernelContext& context) const {
    const auto value = context.GetInput(0);
    const Dims v(kName, "value", value);
    if (v.rank() != 4) fail(kName, "value " + v.text() + " is not of rank 4");
    const std::size_t first = channels_last_ ? 1 : 2;
    if (v[first] != grid_.height || v[first + 1] != grid_.width)
      fail(kName, "value " + v.text() + " has " + std::to_string(v[first]) + " x " +
                      std::to_string(v[first + 1]) + " pixels, the attribute 'input_size' " +
                      std::to_string(grid_.height) + " x " + std::to_string(grid_.width));
    if (grid_.images != 1 && grid_.images != v[0])
      fail(kName, "value " + v.text() + " has " + std::to_string(v[0]) +
                      " images, the grid is made for " + std::to_string(grid_.images));
    const StaticSizes sizes{v[0], v[channels_last_ ? 3 : 1], channels_last_};
    if (v.count() > std::int64_t{1} << 40)
      fail(kName, "value " + v.text() + " has more than 2^40 elements");
    std::array<std::int64_t, 4> dims = {v[0], sizes.channels, grid_.out_height, grid_.out_width};
    if (channels_last_) dims = {v[0], grid_.out_height, grid_.out_width, sizes.channels};
    auto out = context.GetOutput(0, dims.data(), dims.size());
    static_sample(grid_, sizes, static_cast<const T*>(value.GetTensorRawData()),
                  static_cast<T*>(out.GetTensorMutableRawData()), OrtParallel(context));
  }

 private:
  const StaticGrid grid_;
  bool channels_last_ = false;
};

template <typename T>
struct StaticSampleOp : OpBase<StaticSampleOp<T>, StaticSampleKernel<T>> {
  const char* GetName() const { return kName; }
  std::size_t GetInputTypeCount() const { return 6; }
  ONNXTensorElementDataType GetInputType(std::size_t i) const {
    constexpr ONNXTensorElementDataType kTypes[] = {
        element_type<T>(),     element_type<std::int32_t>(),
        element_type<float>(), element_type<std::int16_t>(),
        element_type<float>(), element_type<std::int8_t>()};
    return kTypes[i];
  }
  OrtCustomOpInputOutputCharacteristic GetInputCharacteristic(std::size_t i) const {
    return i == 0 ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
  }
  std::size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(std::size_t) const { return element_type<T>(); }

  static OrtStatusPtr infer_shapes(Ort::ShapeInferContext& context,
                                   ONNXTensorElementDataType value_type) {
    const auto& value = context.GetInputShape(0);
    if (value.size() != 4) return nullptr;
    try {
      const auto size = context.GetAttrInts("output_size");
      if (size.size() != 2) return nullptr;
      bool last = false;
      try {
        last = context.GetAttrString("layout") == "NHWC";
      } catch (const Ort::Exception&) {  // absent: NCHW
      }
      using Dim = Ort::ShapeInferContext::SymbolicInteger;
      Ort::ShapeInferContext::Shape out = {value[0], value[1], Dim(size[0]), Dim(size[1])};
      if (last) out = {value[0], Dim(size[0]), Dim(size[1]), value[3]};
      return context.SetOutputShape(0, out, value_type).release();
    } catch (const Ort::Exception&) {  // output_size is missing: the kernel says so
      return nullptr;
    }
  }
};

}  // namespace

void add_static_sample(CustomOps& ops) {
  add_op<StaticSampleOp<float>>(ops);
  add_op<StaticSampleOp<Half>>(ops);
  add_op<StaticSampleOp<BHalf>>(ops);
}

}  // namespace tenonnx::kernels
