// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/resize.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "base/status.h"

namespace tenonnx {
namespace {

// Weights are integers with 22 fractional bits: 32 bits less 8 of the pixel, less 2 for filters
// whose weights leave [0,1].
constexpr int kPrecisionBits = 22;
constexpr std::int32_t kHalf = 1 << (kPrecisionBits - 1);

// One output position: the inputs [first, first + count) with the weights at `offset`.
struct Tap {
  int first = 0;
  int count = 0;
  std::size_t offset = 0;
};

struct Taps {
  std::vector<Tap> taps;
  std::vector<std::int32_t> weights;
};

// A call is an end to contraction: GCC would merge the product below into a fused multiply-add
// where the machine has one (aarch64), and the taps would not be those of other machines.
[[gnu::noinline]] double product(double a, double b) { return a * b; }

// Not std::lround: Pillow truncates toward zero after adding, and equality with it is the point.
int add_half_and_truncate(double x) {
  return static_cast<int>(x + 0.5);  // NOLINT(bugprone-incorrect-roundings)
}

Taps make_taps(int in, int out) {
  const double scale = static_cast<double>(in) / out;
  const double filter_scale = std::max(scale, 1.0);
  const double support = filter_scale;  // the triangle reaches 1 to each side
  const double inverse = 1.0 / filter_scale;
  Taps result;
  result.taps.resize(static_cast<std::size_t>(out));
  std::vector<double> weights;
  for (int i = 0; i < out; ++i) {
    const double center = product(i + 0.5, scale);
    const int first = std::max(0, add_half_and_truncate(center - support));
    const int last = std::min(in, add_half_and_truncate(center + support));
    weights.clear();
    double sum = 0;
    for (int x = first; x < last; ++x) {
      const double weight = std::max(0.0, 1.0 - std::abs((x - center + 0.5) * inverse));
      weights.push_back(weight);
      sum += weight;
    }
    result.taps[static_cast<std::size_t>(i)] = {first, last - first, result.weights.size()};
    for (double weight : weights) {
      if (sum != 0) weight /= sum;
      result.weights.push_back(add_half_and_truncate(weight * (1 << kPrecisionBits)));
    }
  }
  return result;
}

// The weights are at least 0 and sum to 2^22 up to rounding: only the top can be passed.
std::uint8_t to_pixel(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::min(sum >> kPrecisionBits, 255));
}

template <int C>
void resize_row(const std::uint8_t* from, const Taps& taps, std::uint8_t* to) {
  for (const Tap& tap : taps.taps) {
    const std::int32_t* weight = taps.weights.data() + tap.offset;
    const std::uint8_t* pixel = from + static_cast<std::ptrdiff_t>(tap.first) * C;
    std::int32_t sum[C];
    std::fill_n(sum, C, kHalf);
    for (int i = 0; i < tap.count; ++i, pixel += C)
      for (int c = 0; c < C; ++c) sum[c] += pixel[c] * weight[i];
    for (int c = 0; c < C; ++c) *to++ = to_pixel(sum[c]);
  }
}

Image resize_horizontally(const Image& image, int width) {
  const Taps taps = make_taps(image.width, width);
  Image out(width, image.height, image.channels);
  for (int y = 0; y < image.height; ++y) {
    if (image.channels == 1)
      resize_row<1>(image.row(y), taps, out.row(y));
    else if (image.channels == 3)
      resize_row<3>(image.row(y), taps, out.row(y));
    else
      resize_row<4>(image.row(y), taps, out.row(y));
  }
  return out;
}

Image resize_vertically(const Image& image, int height) {
  const Taps taps = make_taps(image.height, height);
  Image out(image.width, height, image.channels);
  const std::size_t bytes = static_cast<std::size_t>(image.width) * image.channels;
  std::vector<std::int32_t> sum(bytes);
  for (int y = 0; y < height; ++y) {
    const Tap& tap = taps.taps[static_cast<std::size_t>(y)];
    std::fill(sum.begin(), sum.end(), kHalf);
    for (int i = 0; i < tap.count; ++i) {
      const std::int32_t weight = taps.weights[tap.offset + static_cast<std::size_t>(i)];
      const std::uint8_t* from = image.row(tap.first + i);
      for (std::size_t x = 0; x < bytes; ++x) sum[x] += from[x] * weight;
    }
    std::uint8_t* to = out.row(y);
    for (std::size_t x = 0; x < bytes; ++x) to[x] = to_pixel(sum[x]);
  }
  return out;
}

// round(a * b / 255) in integers, as Pillow computes it.
std::uint8_t multiply_255(unsigned a, unsigned b) {
  const unsigned t = a * b + 128;
  return static_cast<std::uint8_t>(((t >> 8) + t) >> 8);
}

void premultiply(Image& image) {
  for (std::size_t i = 0; i < image.pixels.size(); i += 4)
    for (std::size_t c = 0; c < 3; ++c)
      image.pixels[i + c] = multiply_255(image.pixels[i + c], image.pixels[i + 3]);
}

void divide_by_alpha(Image& image) {
  for (std::size_t i = 0; i < image.pixels.size(); i += 4) {
    const unsigned alpha = image.pixels[i + 3];
    if (alpha == 0 || alpha == 255) continue;
    for (std::size_t c = 0; c < 3; ++c)
      image.pixels[i + c] =
          static_cast<std::uint8_t>(std::min(255U, 255U * image.pixels[i + c] / alpha));
  }
}

Status check(const Image& image, int width, int height) {
  if (width < 1 || height < 1 || static_cast<std::int64_t>(width) * height > kMaxPixels)
    return InvalidArgument(
        "cannot resize to {} x {}: sizes are at least 1 and at most {} megapixels", width, height,
        kMaxPixels / 1'000'000);
  const bool known = image.channels == 1 || image.channels == 3 || image.channels == 4;
  if (image.width < 1 || image.height < 1 || !known ||
      image.pixels.size() != static_cast<std::size_t>(image.width) * image.height * image.channels)
    return InvalidArgument("cannot resize an image of {} x {} x {} with {} bytes", image.width,
                           image.height, image.channels, image.pixels.size());
  // Whichever pass comes first, its result is held in between.
  if (std::max(static_cast<std::int64_t>(width) * image.height,
               static_cast<std::int64_t>(image.width) * height) > kMaxPixels)
    return InvalidArgument(
        "cannot resize {} x {} to {} x {}: the image in between may be beyond {} "
        "megapixels",
        image.width, image.height, width, height, kMaxPixels / 1'000'000);
  return {};
}

}  // namespace

Result<Image> resize_pillow_bilinear(const Image& image, int width, int height,
                                     PillowPasses passes) {
  TENONNX_RETURN_IF_ERROR(check(image, width, height));
  if (image.width == width && image.height == height) return image;
  Image work = image;
  if (image.channels == 4) premultiply(work);
  // Differences in pixels, not ratios: found by comparing both orders with Pillow 13.0.0 on 45,000
  // random size pairs.
  const bool columns_first = passes == PillowPasses::kAsPillow13 && image.height > height &&
                             image.height - height > 2 * (image.width - width);
  if (columns_first && work.height != height) work = resize_vertically(work, height);
  if (work.width != width) work = resize_horizontally(work, width);
  if (work.height != height) work = resize_vertically(work, height);
  if (image.channels == 4) divide_by_alpha(work);
  return work;
}

Result<Image> resize_opencv_linear(const Image& image, int width, int height) {
  TENONNX_RETURN_IF_ERROR(check(image, width, height));
  if (image.width == width && image.height == height) return image;
  try {
    Image out(width, height, image.channels);
    // OpenCV only reads from the source.
    const cv::Mat from(image.height, image.width, CV_8UC(image.channels),
                       const_cast<std::uint8_t*>(image.pixels.data()));
    cv::Mat to(height, width, CV_8UC(image.channels), out.pixels.data());
    cv::resize(from, to, to.size(), 0, 0, cv::INTER_LINEAR);
    return out;
  } catch (const std::exception& error) {
    return Internal("OpenCV could not resize {} x {} to {} x {}: {}", image.width, image.height,
                    width, height, error.what());
  }
}

}  // namespace tenonnx
