// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/preprocess.h"

#include <algorithm>
#include <utility>

#include "base/half.h"
#include "base/status.h"
#include "contract/range.h"
#include "pipeline/geometry.h"
#include "pipeline/resize.h"

namespace tenonnx {
namespace {

void make_ready(Tensor& out, DType dtype, const Shape& shape) {
  if (out.dtype() != dtype || out.shape() != shape) out = Tensor(dtype, shape);
}

float normalized(const ImageInput& image, std::size_t channel, int pixel) {
  float value = is_division_by_255(image.scale) ? static_cast<float>(pixel) / 255.0F
                                                : static_cast<float>(pixel * image.scale);
  if (image.normalized_by == NormalizedBy::kPipeline) {
    const auto mean = static_cast<float>(image.mean[channel]);
    const auto std = static_cast<float>(image.std[channel]);
    value = (value - mean) / std;
  }
  return value;
}

Result<Image> on_canvas(const Image& rgb, const ImageInput& image) {
  const Placement2d p = place(image, rgb.width, rgb.height);
  TENONNX_ASSIGN_OR_RETURN(Image resized, image.resize == ResizeKind::kPillowBilinear
                                              ? resize_pillow_bilinear(rgb, p.width, p.height)
                                              : resize_opencv_linear(rgb, p.width, p.height));
  if (p.width == p.canvas_width && p.height == p.canvas_height) return resized;
  Image canvas(p.canvas_width, p.canvas_height, 3);
  for (std::size_t i = 0; i < canvas.pixels.size(); ++i)
    canvas.pixels[i] = image.letterbox_fill[i % 3];
  for (int y = 0; y < p.height; ++y)
    std::copy_n(resized.row(y), static_cast<std::ptrdiff_t>(p.width) * 3,
                canvas.row(p.top + y) + static_cast<std::ptrdiff_t>(p.left) * 3);
  return canvas;
}

// Writes every pixel through the table of its channel.
template <typename T, typename Table>
void fill(const Image& rgb, const ImageInput& image, const Table& table, T* out) {
  const std::size_t pixels = static_cast<std::size_t>(rgb.width) * rgb.height;
  const bool planar = image.layout == Layout::kNchw;
  for (std::size_t c = 0; c < 3; ++c) {
    const std::uint8_t* from = rgb.pixels.data() + (image.color == ColorOrder::kBgr ? 2 - c : c);
    T* to = planar ? out + c * pixels : out + c;
    const std::size_t step = planar ? 1 : 3;
    for (std::size_t i = 0; i < pixels; ++i) to[i * step] = table(c, from[i * 3]);
  }
}

std::string zero_sizes_message(const std::string& name, double first, double second) {
  return fmt::format(
      "'{}' is [{}, {}]: width and height of the original image must be at least 1. Boxes are "
      "multiplied by it, so a zero would put every box into the corner",
      name, first, second);
}

template <typename T>
Status check_size_values(const std::string& name, const Tensor& tensor) {
  const T* value = tensor.data<T>();
  // !(x >= 1) also catches NaN.
  if (!(value[0] >= 1) || !(value[1] >= 1))
    return InvalidArgument("{}", zero_sizes_message(name, static_cast<double>(value[0]),
                                                    static_cast<double>(value[1])));
  return {};
}

bool fits(const Shape& shape, const Shape& expected) {
  if (shape.size() != expected.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (expected[i] >= 0 && shape[i] != expected[i]) return false;
  return true;
}

// "; it looks like NHWC: ..." where an image of the other layout would fit.
std::string layout_hint(const Contract& contract, const TensorInfo& info, const Shape& shape) {
  if (info.name != contract.image.name || shape.size() != 4 || info.shape.size() != 4) return {};
  const bool planar = contract.image.layout == Layout::kNchw;
  const Shape transposed = planar ? Shape{shape[0], shape[3], shape[1], shape[2]}
                                  : Shape{shape[0], shape[2], shape[3], shape[1]};
  if (!fits(transposed, info.shape)) return {};
  return fmt::format("; it looks like {}, but the model takes {}: transpose it",
                     planar ? "NHWC" : "NCHW", planar ? "NCHW" : "NHWC");
}

}  // namespace

Result<Preprocessor> Preprocessor::create(const Contract& contract) {
  const ImageInput& image = contract.image;
  const std::size_t channel = image.layout == Layout::kNchw ? 1 : 3;
  if (image.shape.size() != 4 || image.shape[0] != 1 || image.shape[channel] != 3 ||
      *std::min_element(image.shape.begin(), image.shape.end()) < 1)
    return InvalidArgument(
        "the contract's image input '{}' has shape {}; {} is needed", image.name,
        to_string(image.shape),
        channel == 1 ? "[1,3,height,width] (NCHW)" : "[1,height,width,3] (NHWC)");
  if (image.shape[1] * image.shape[2] * image.shape[3] > kMaxPixels * 3)
    return InvalidArgument("the contract's image input '{}' has shape {}, beyond {} megapixels",
                           image.name, to_string(image.shape), kMaxPixels / 1'000'000);
  if (image.dtype != DType::kFloat32 && image.dtype != DType::kFloat16 &&
      image.dtype != DType::kUInt8)
    return InvalidArgument(
        "the contract's image input '{}' is {}; float32, float16 or uint8 is "
        "needed",
        image.name, to_string(image.dtype));
  if (image.dtype == DType::kUInt8 &&
      (image.scale != 1.0 || image.normalized_by != NormalizedBy::kModel))
    return InvalidArgument(
        "the contract's image input '{}' is uint8, which holds pixels as they "
        "are: scale must be 1 and the model the owner of normalisation",
        image.name);
  Preprocessor result;
  result.contract_ = contract;
  for (std::size_t c = 0; c < 3; ++c) {
    for (int pixel = 0; pixel < 256; ++pixel) {
      const float value = normalized(image, c, pixel);
      result.table_[c][static_cast<std::size_t>(pixel)] = value;
      result.half_[c][static_cast<std::size_t>(pixel)] = float_to_float16(value);
    }
  }
  return result;
}

Status Preprocessor::image_tensor(const ImageView& view, Tensor& out) const {
  const ImageInput& image = contract_.image;
  TENONNX_ASSIGN_OR_RETURN(const Image rgb, to_rgb(view));
  TENONNX_ASSIGN_OR_RETURN(const Image canvas, on_canvas(rgb, image));
  make_ready(out, image.dtype, image.shape);
  if (image.dtype == DType::kUInt8)
    fill(
        canvas, image, [](std::size_t, std::uint8_t x) { return x; },
        out.mutable_data<std::uint8_t>());
  else if (image.dtype == DType::kFloat16)
    fill(
        canvas, image, [this](std::size_t c, std::uint8_t x) { return half_[c][x]; },
        out.mutable_data<std::uint16_t>());
  else
    fill(
        canvas, image, [this](std::size_t c, std::uint8_t x) { return table_[c][x]; },
        out.mutable_data<float>());
  return {};
}

Status Preprocessor::size_tensor(int original_width, int original_height, Tensor& out) const {
  if (!contract_.size)
    return FailedPrecondition("the contract names no input for the size of the original image");
  const SizeInput& size = *contract_.size;
  if (original_width < 1 || original_height < 1)
    return InvalidArgument("{}", zero_sizes_message(size.name, original_width, original_height));
  const TargetSize target = target_size(contract_, original_width, original_height);
  make_ready(out, size.dtype, {1, 2});
  const bool width_first = size.order == SizeOrder::kWidthHeight;
  const int first = width_first ? target.width : target.height;
  const int second = width_first ? target.height : target.width;
  const auto write = [&]<typename T>(T* to) {
    to[0] = static_cast<T>(first);
    to[1] = static_cast<T>(second);
  };
  if (size.dtype == DType::kInt64)
    write(out.mutable_data<std::int64_t>());
  else if (size.dtype == DType::kInt32)
    write(out.mutable_data<std::int32_t>());
  else if (size.dtype == DType::kFloat32)
    write(out.mutable_data<float>());
  else
    return InvalidArgument("'{}' is {} in the contract; int64, int32 or float32 is needed",
                           size.name, to_string(size.dtype));
  return {};
}

Status Preprocessor::run(const ImageView& view, TensorMap& inputs) const {
  TENONNX_RETURN_IF_ERROR(image_tensor(view, inputs[contract_.image.name]));
  if (!contract_.size) return {};
  return size_tensor(view.width, view.height, inputs[contract_.size->name]);
}

Status check_inputs(const Contract& contract, const std::vector<TensorInfo>& expected,
                    TensorMap& inputs, bool convert_int32) {
  std::string names;
  for (const TensorInfo& info : expected)
    names += fmt::format("{}'{}' {} {}", names.empty() ? "" : ", ", info.name,
                         to_string(info.dtype), to_string(info.shape));
  for (const auto& given : inputs) {
    const auto named = [&](const TensorInfo& info) { return info.name == given.first; };
    if (std::none_of(expected.begin(), expected.end(), named))
      return InvalidArgument("the model has no input '{}'; its inputs are {}", given.first, names);
  }
  for (const TensorInfo& info : expected) {
    const auto found = inputs.find(info.name);
    if (found == inputs.end() || !found->second.defined())
      return InvalidArgument("input '{}' is missing; the model's inputs are {}", info.name, names);
    Tensor& tensor = found->second;
    const bool is_size = contract.size && info.name == contract.size->name;
    if (!fits(tensor.shape(), info.shape))
      return InvalidArgument("input '{}' has shape {}, the model takes {}{}", info.name,
                             to_string(tensor.shape()), to_string(info.shape),
                             layout_hint(contract, info, tensor.shape()));
    if (is_size && convert_int32 && tensor.dtype() == DType::kInt32 &&
        info.dtype == DType::kInt64) {
      Tensor wide(DType::kInt64, tensor.shape());
      for (std::int64_t i = 0; i < tensor.size(); ++i)
        wide.mutable_data<std::int64_t>()[i] = tensor.data<std::int32_t>()[i];
      tensor = std::move(wide);
    }
    if (tensor.dtype() != info.dtype)
      return InvalidArgument(
          "input '{}' is {}, the model takes {}{}", info.name, to_string(tensor.dtype()),
          to_string(info.dtype),
          is_size && tensor.dtype() == DType::kInt32
              ? ": the same bytes read as int64 would be another size. Ask for the conversion, or "
                "give int64"
              : "");
    if (!is_size) continue;
    if (tensor.size() != 2)
      return InvalidArgument("input '{}' has shape {}; one row of two numbers is needed", info.name,
                             to_string(tensor.shape()));
    if (tensor.dtype() == DType::kInt64)
      TENONNX_RETURN_IF_ERROR(check_size_values<std::int64_t>(info.name, tensor));
    if (tensor.dtype() == DType::kInt32)
      TENONNX_RETURN_IF_ERROR(check_size_values<std::int32_t>(info.name, tensor));
    if (tensor.dtype() == DType::kFloat32)
      TENONNX_RETURN_IF_ERROR(check_size_values<float>(info.name, tensor));
  }
  return {};
}

}  // namespace tenonnx
