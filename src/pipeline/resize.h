// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Image.resize((width, height), BILINEAR) of Pillow, bit for bit: what torchvision and most
// training code do to a PIL image. It is no point-sampled interpolation: going down, the triangle
// filter is widened to the scale (antialias). Source: Pillow's documentation, "Filters"; compared
// with Pillow itself by tests/pillow_reference.
#pragma once

#include "pipeline/image.h"

namespace tenonnx {

// Pillow 13 runs the pass down the columns first where the height shrinks by more than twice as
// many pixels as the width does; before, the pass along the rows always came first. Each pass
// rounds to 8 bits, so the two differ by 1 or 2 levels for such images (tall ones, mostly).
enum class PillowPasses { kAsPillow13, kAsPillow12 };

// Channels 1 and 3 are filtered as they are. 4 channels are RGBA: premultiplied by alpha before and
// divided after, as Pillow does. InvalidArgument where a size is below 1 or beyond 100 megapixels.
Result<Image> resize_pillow_bilinear(const Image& image, int width, int height,
                                     PillowPasses passes = PillowPasses::kAsPillow13);

// cv::resize with INTER_LINEAR. The same errors.
Result<Image> resize_opencv_linear(const Image& image, int width, int height);

}  // namespace tenonnx
