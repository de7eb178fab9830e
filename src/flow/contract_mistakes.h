// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The usual mistakes in feeding a detector, as changes of the contract or of the tensors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pipeline/preprocess.h"
#include "tenonnx/contract.h"
#include "tenonnx/pipeline.h"

namespace tenonnx {

// How the image becomes a tensor: after a contract, maybe with its memory read in the other layout.
struct ImagePreparation {
  Contract contract;
  bool misread = false;  // the data of the other layout (NHWC for NCHW) under the model's shape
};

struct ImageMistake {
  std::string kind;   // "color_order", "normalization", "resize", "layout"
  std::string given;  // "its image is BGR"
  std::string means;  // what the side does that made it: "swaps the colour channels"
  std::function<void(ImagePreparation&)> make;
};
std::vector<ImageMistake> image_mistakes(const Contract& contract);

struct SizeMistake {
  std::string given;
  std::string means;
  // From the right two numbers to the mistaken ones.
  std::function<std::pair<std::int64_t, std::int64_t>(std::int64_t, std::int64_t)> make;
};
// None where the contract has no size input.
std::vector<SizeMistake> size_mistakes(const Contract& contract);

// InvalidArgument as Preprocessor; a mistake may ask for what the pipeline cannot do.
Result<Tensor> prepare_image(const ImagePreparation& preparation, const ImageView& image);
Result<Tensor> mistaken_size(const Tensor& size, const SizeMistake& mistake);

}  // namespace tenonnx
