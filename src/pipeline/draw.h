// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Boxes with class names and scores on a picture, to be looked at.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "pipeline/image.h"
#include "tenonnx/detection.h"

namespace tenonnx {

// A copy of an RGB image with a frame and a label ("circle 0.93") for each detection; one colour a
// class. Images whose short side is below 480 pixels are enlarged by a whole factor, so that the
// labels can be read. A label beyond `classes` is called by its number. InvalidArgument where the
// image is not RGB.
Result<Image> draw_detections(const Image& image, std::span<const Detection> detections,
                              const std::vector<std::string>& classes);

// "circle", or "class 7" where there is no name.
std::string class_name(const std::vector<std::string>& classes, std::int64_t label);

}  // namespace tenonnx
