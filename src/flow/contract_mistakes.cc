// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/contract_mistakes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace tenonnx {
namespace {

constexpr std::array<double, 3> kImageNetMean = {0.485, 0.456, 0.406};
constexpr std::array<double, 3> kImageNetStd = {0.229, 0.224, 0.225};

bool has_mean_or_std(const ImageInput& image) {
  return image.mean != std::array<double, 3>{0, 0, 0} ||
         image.std != std::array<double, 3>{1, 1, 1};
}

void add_color(const ImageInput& image, std::vector<ImageMistake>& out) {
  const bool rgb = image.color == ColorOrder::kRgb;
  const std::string given = fmt::format("its image is {}", rgb ? "BGR" : "RGB");
  const std::string means = "swaps the colour channels";
  const auto swap = [](ImagePreparation& p) {
    ImageInput& i = p.contract.image;
    i.color = i.color == ColorOrder::kRgb ? ColorOrder::kBgr : ColorOrder::kRgb;
  };
  // cv2.imread without cvtColor: mean and std keep their places.
  out.push_back({"color_order", given, means, swap});
  if (image.mean[0] == image.mean[2] && image.std[0] == image.std[2]) return;
  out.push_back({"color_order", given, means, [swap](ImagePreparation& p) {
                   swap(p);
                   std::swap(p.contract.image.mean[0], p.contract.image.mean[2]);
                   std::swap(p.contract.image.std[0], p.contract.image.std[2]);
                 }});
}

void add_normalization(const ImageInput& image, std::vector<ImageMistake>& out) {
  if (image.dtype == DType::kUInt8) return;  // pixels as they are: nothing to get wrong
  const auto add = [&](std::string given, std::string means,
                       std::function<void(ImageInput&)> change) {
    out.push_back(
        {"normalization", std::move(given), std::move(means),
         [change = std::move(change)](ImagePreparation& p) { change(p.contract.image); }});
  };
  const auto unit = [](ImageInput& i) { i.scale = 1; };
  const auto no_mean = [](ImageInput& i) { i.normalized_by = NormalizedBy::kModel; };
  if (image.scale != 1.0) {
    add("the pixels of its image are not scaled (0 to 255)", "does not divide the pixels by 255",
        unit);
    add("the pixels of its image are scaled twice", "divides the pixels by 255 twice",
        [](ImageInput& i) { i.scale *= i.scale; });
  } else {
    add("the pixels of its image are divided by 255",
        "divides by 255, which the model must not get",
        [](ImageInput& i) { i.scale = 1.0 / 255.0; });
  }
  const bool applied = image.normalized_by == NormalizedBy::kPipeline && has_mean_or_std(image);
  if (applied) {
    add("mean and std are not applied to its image", "does not normalise with mean and std",
        no_mean);
    // ((x - m) / s - m) / s = (x - (m + m s)) / s^2
    add("mean and std are applied to its image twice", "normalises with mean and std twice",
        [](ImageInput& i) {
          for (std::size_t c = 0; c < 3; ++c) {
            i.mean[c] += i.mean[c] * i.std[c];
            i.std[c] *= i.std[c];
          }
        });
    if (image.scale != 1.0)
      add("its image is the plain pixels, 0 to 255", "neither scales nor normalises",
          [unit, no_mean](ImageInput& i) {
            unit(i);
            no_mean(i);
          });
    return;
  }
  if (image.normalized_by == NormalizedBy::kModel && has_mean_or_std(image))
    add("mean and std are applied to its image before the model applies them",
        "normalises with mean and std, as the model itself does",
        [](ImageInput& i) { i.normalized_by = NormalizedBy::kPipeline; });
  const auto normalize = [&](std::string what, std::array<double, 3> mean,
                             std::array<double, 3> std) {
    add(fmt::format("{} applied to its image", what),
        fmt::format("normalises with {}, which the contract does not have",
                    what.substr(0, what.rfind(' '))),
        [mean, std](ImageInput& i) {
          i.normalized_by = NormalizedBy::kPipeline;
          i.mean = mean;
          i.std = std;
        });
  };
  if (image.mean != kImageNetMean || image.std != kImageNetStd)
    normalize("ImageNet's mean and std are", kImageNetMean, kImageNetStd);
  normalize("mean 0.5 and std 0.5 are", {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5});
}

void add_resize(const ImageInput& image, std::vector<ImageMistake>& out) {
  const bool pillow = image.resize == ResizeKind::kPillowBilinear;
  out.push_back({"resize",
                 fmt::format("its image is resized as {} does",
                             pillow ? "OpenCV (INTER_LINEAR)" : "Pillow (BILINEAR)"),
                 fmt::format("resizes as {} does, not as {}", pillow ? "OpenCV" : "Pillow",
                             pillow ? "Pillow" : "OpenCV"),
                 [](ImagePreparation& p) {
                   ResizeKind& kind = p.contract.image.resize;
                   kind = kind == ResizeKind::kPillowBilinear ? ResizeKind::kOpencvLinear
                                                              : ResizeKind::kPillowBilinear;
                 }});
  const bool stretch = image.fit == ResizeFit::kStretch;
  out.push_back({"resize", stretch ? "its image is letterboxed" : "its image is stretched",
                 stretch ? "keeps the aspect ratio (letterbox) where the contract stretches"
                         : "stretches where the contract keeps the aspect ratio (letterbox)",
                 [](ImagePreparation& p) {
                   ResizeFit& fit = p.contract.image.fit;
                   fit = fit == ResizeFit::kStretch ? ResizeFit::kLetterbox : ResizeFit::kStretch;
                 }});
}

}  // namespace

std::vector<ImageMistake> image_mistakes(const Contract& contract) {
  const ImageInput& image = contract.image;
  std::vector<ImageMistake> out;
  add_color(image, out);
  add_normalization(image, out);
  add_resize(image, out);
  const bool planar = image.layout == Layout::kNchw;
  out.push_back({"layout", fmt::format("the memory of its image is {}", planar ? "NHWC" : "NCHW"),
                 fmt::format("fills an {} input with {} data", planar ? "NCHW" : "NHWC",
                             planar ? "NHWC" : "NCHW"),
                 [](ImagePreparation& p) { p.misread = !p.misread; }});
  return out;
}

std::vector<SizeMistake> size_mistakes(const Contract& contract) {
  std::vector<SizeMistake> out;
  if (!contract.size) return out;
  const std::string& name = contract.size->name;
  const bool width_first = contract.size->order == SizeOrder::kWidthHeight;
  out.push_back(
      {fmt::format("its '{}' is {}", name, width_first ? "[height, width]" : "[width, height]"),
       "exchanges width and height",
       [](std::int64_t a, std::int64_t b) { return std::pair(b, a); }});
  const bool planar = contract.image.layout == Layout::kNchw;
  const Shape& shape = contract.image.shape;
  if (shape.size() == 4) {
    const std::int64_t height = shape[planar ? 2 : 1], width = shape[planar ? 3 : 2];
    const auto model = width_first ? std::pair(width, height) : std::pair(height, width);
    out.push_back({fmt::format("its '{}' is the size of the model's input, [{}, {}]", name,
                               model.first, model.second),
                   "gives the size of the resized image, not of the original",
                   [model](std::int64_t, std::int64_t) { return model; }});
  }
  if (contract.size->dtype != DType::kFloat32)
    // The low half of the first int64, then its high half, which is 0.
    out.push_back(
        {fmt::format("the second number of its '{}' is 0", name),
         fmt::format("reads int64 sizes as int32, so that all {} are 0", width_first ? "y" : "x"),
         [](std::int64_t a, std::int64_t) { return std::pair(a, std::int64_t{0}); }});
  if (contract.size->dtype == DType::kInt64)
    out.push_back({fmt::format("the two numbers of its '{}' are packed into the first", name),
                   "reads int32 sizes as int64", [](std::int64_t a, std::int64_t b) {
                     return std::pair((b << 32) + a, std::int64_t{0});
                   }});
  return out;
}

Result<Tensor> prepare_image(const ImagePreparation& preparation, const ImageView& image) {
  Contract contract = preparation.contract;
  const Shape shape = contract.image.shape;
  if (preparation.misread && shape.size() == 4) {
    const bool planar = contract.image.layout == Layout::kNchw;
    contract.image.layout = planar ? Layout::kNhwc : Layout::kNchw;
    contract.image.shape = planar ? Shape{shape[0], shape[2], shape[3], shape[1]}
                                  : Shape{shape[0], shape[3], shape[1], shape[2]};
  }
  TENONNX_ASSIGN_OR_RETURN(const Preprocessor preprocessor, Preprocessor::create(contract));
  Tensor tensor;
  TENONNX_RETURN_IF_ERROR(preprocessor.image_tensor(image, tensor));
  return preparation.misread ? tensor.reshaped(shape) : Result<Tensor>(tensor);
}

Result<Tensor> mistaken_size(const Tensor& size, const SizeMistake& mistake) {
  Tensor out = size.clone();
  const auto change = [&]<typename T>(T* values) {
    const auto [first, second] =
        mistake.make(static_cast<std::int64_t>(values[0]), static_cast<std::int64_t>(values[1]));
    values[0] = static_cast<T>(first);
    values[1] = static_cast<T>(second);
  };
  if (size.size() == 2 && size.dtype() == DType::kInt64)
    change(out.mutable_data<std::int64_t>());
  else if (size.size() == 2 && size.dtype() == DType::kInt32)
    change(out.mutable_data<std::int32_t>());
  else if (size.size() == 2 && size.dtype() == DType::kFloat32)
    change(out.mutable_data<float>());
  else
    return InvalidArgument("a size is {} {}; two numbers of int64, int32 or float32 are needed",
                           to_string(size.dtype()), to_string(size.shape()));
  return out;
}

}  // namespace tenonnx
