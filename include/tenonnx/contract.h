// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a detector expects and what it returns. File format: docs/reference/contract.md.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

enum class ColorOrder { kRgb, kBgr };
enum class ResizeKind { kPillowBilinear, kOpencvLinear };
enum class ResizeFit { kStretch, kLetterbox };
enum class Layout { kNchw, kNhwc };
// Who applies mean and std: exactly one of the two. kModel: the graph itself does; mean and std are
// then a record of what it does, and the pipeline stops after `scale`.
enum class NormalizedBy { kPipeline, kModel };
// The order of the two numbers of orig_target_sizes.
enum class SizeOrder { kWidthHeight, kHeightWidth };
enum class OutputKind {
  kDetections,  // labels, boxes (xyxy, pixels of the original image), scores: used as they are
  kRaw,         // logits, pred_boxes (cxcywh, 0..1): decoded by the pipeline
};

struct ImageInput {
  std::string name = "images";
  DType dtype = DType::kFloat32;  // float32, float16 or uint8 (scale 1, normalized by the model)
  Shape shape;                    // [1,3,H,W] or [1,H,W,3]
  Layout layout = Layout::kNchw;
  ColorOrder color = ColorOrder::kRgb;
  ResizeKind resize = ResizeKind::kPillowBilinear;
  ResizeFit fit = ResizeFit::kStretch;
  std::array<std::uint8_t, 3> letterbox_fill = {114, 114, 114};
  NormalizedBy normalized_by = NormalizedBy::kPipeline;
  // x * scale, computed in double and rounded to float32, then (x - mean) / std in float32. A scale
  // within 1e-6 of 1/255 means the float32 division x / 255, which is what training code does.
  double scale = 1.0 / 255.0;
  std::array<double, 3> mean = {0, 0, 0};  // in the order of `color`, after scale
  std::array<double, 3> std = {1, 1, 1};
  std::array<double, 2> range = {0, 1};  // of the values that reach the model
};

// The input that holds the size of the original image: [1,2], pixels, both above 0.
struct SizeInput {
  std::string name = "orig_target_sizes";
  DType dtype = DType::kInt64;  // or int32 or float32, where the graph has that
  SizeOrder order = SizeOrder::kWidthHeight;
};

struct Outputs {
  OutputKind kind = OutputKind::kDetections;
  std::string labels = "labels", boxes = "boxes", scores = "scores";  // kDetections
  std::string logits = "logits", pred_boxes = "pred_boxes";           // kRaw
  int top_k = 300;                                                    // kRaw
  // dtype and shape of the outputs named above, as far as they are stated; -1: any.
  std::vector<TensorInfo> tensors;
};

struct Contract {
  ImageInput image;
  std::optional<SizeInput> size;  // none: boxes are in pixels of the model's input
  Outputs outputs;
  std::vector<std::string> classes;  // names by label, from 0
  std::vector<std::string> cut;      // boundary tensors of a known good cut; empty: none named
};

}  // namespace tenonnx
