// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Where the original image lies on the model's canvas, and the way back.
#pragma once

#include "tenonnx/contract.h"
#include "tenonnx/detection.h"

namespace tenonnx {

struct Placement2d {
  int canvas_width = 0, canvas_height = 0;  // of the model's input
  int left = 0, top = 0;                    // of the resized image on the canvas
  int width = 0, height = 0;                // of the resized image
};

// Width and height of the model's input, whatever its layout.
int canvas_width(const ImageInput& image);
int canvas_height(const ImageInput& image);

// Stretch: the whole canvas. Letterbox: the largest size of the original's aspect ratio (rounded,
// at least 1 pixel), in the middle, the odd pixel to the right and below.
Placement2d place(const ImageInput& image, int original_width, int original_height);

// What goes into orig_target_sizes. Stretch: the size of the original image, so that the model's
// boxes are in its pixels. Letterbox: the size of the canvas; to_original() then undoes the
// placement.
struct TargetSize {
  int width = 0, height = 0;
};
TargetSize target_size(const Contract& contract, int original_width, int original_height);

// A box in pixels of the canvas to pixels of the original image.
Box to_original(const Box& canvas_box, const Placement2d& placement, int original_width,
                int original_height);

}  // namespace tenonnx
