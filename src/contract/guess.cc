// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "contract/contract.h"
#include "contract/list.h"
#include "contract/range.h"

namespace tenonnx {
namespace {

const TensorInfo* find_by_rank(const std::vector<TensorInfo>& infos, std::size_t rank) {
  for (const TensorInfo& info : infos)
    if (info.shape.size() == rank) return &info;
  return nullptr;
}

Status guess_image(const Model& model, ImageInput& image, std::vector<std::string>& assumed) {
  const auto inputs = model.inputs();
  const TensorInfo* found = nullptr;
  for (const TensorInfo& info : inputs) {
    if (info.shape.size() != 4) continue;
    if (found != nullptr)
      return InvalidArgument(
          "the graph has two inputs that may be the image, '{}' and '{}': write "
          "a contract that names it",
          found->name, info.name);
    found = &info;
  }
  if (found == nullptr)
    return InvalidArgument("no input of the graph is an image [1,3,H,W] or [1,H,W,3]: {}",
                           list(inputs));
  image.name = found->name;
  image.dtype = found->dtype;
  image.shape = found->shape;
  if (image.shape[0] < 0) image.shape[0] = 1;
  image.layout = image.shape[3] == 3 && image.shape[1] != 3 ? Layout::kNhwc : Layout::kNchw;
  // A dynamic channel dimension says nothing about the layout; images are [1,3,H,W] then.
  auto& channels = image.shape[image.layout == Layout::kNchw ? 1 : 3];
  if (channels < 0) channels = 3;
  if (channels != 3 || image.shape[0] != 1)
    return InvalidArgument("input '{}' is {}; an image is [1,3,H,W] or [1,H,W,3]", found->name,
                           to_string(found->shape));
  if (element_count(image.shape) < 0)
    return InvalidArgument(
        "input '{}' is {}: its size is not fixed. Try: --input-shape "
        "{}=1x3x640x640, with the size that the model was trained for",
        found->name, to_string(found->shape), found->name);
  if (image.dtype == DType::kUInt8) {
    image.scale = 1;
    image.normalized_by = NormalizedBy::kModel;
    assumed.emplace_back("the model normalizes, as its image input is uint8");
  } else if (image.dtype == DType::kFloat32 || image.dtype == DType::kFloat16) {
    assumed.push_back(fmt::format(
        "input '{}' is RGB / 255 without mean and std, normalized by the pipeline", image.name));
  } else {
    return InvalidArgument("input '{}' is {}; an image is float32, float16 or uint8", image.name,
                           to_string(image.dtype));
  }
  image.range = implied_range(image);
  assumed.emplace_back("images are resized by Pillow's bilinear filter, stretched to the input");
  return {};
}

Status guess_outputs(const Model& model, Outputs& outputs, std::vector<std::string>& assumed) {
  const auto graph = model.outputs();
  const auto has = [&](std::string_view name) {
    return std::any_of(graph.begin(), graph.end(),
                       [&](const TensorInfo& info) { return info.name == name; });
  };
  if (has("logits") && has("pred_boxes")) {
    outputs.kind = OutputKind::kRaw;
    assumed.push_back(
        "outputs logits and pred_boxes are decoded: sigmoid, top 300, cxcywh in 0..1");
    return {};
  }
  if (!(has("labels") && has("boxes") && has("scores"))) {
    // By kind: the one of integers, the one whose rows have four numbers, the other.
    if (graph.size() != 3)
      return InvalidArgument(
          "the graph's outputs are neither labels, boxes, scores nor logits, "
          "pred_boxes: {}. Write a contract that names them",
          list(graph));
    const auto integers = [](const TensorInfo& i) {
      return i.dtype == DType::kInt64 || i.dtype == DType::kInt32;
    };
    const auto labels = std::find_if(graph.begin(), graph.end(), integers);
    const TensorInfo* boxes = find_by_rank(graph, 3);
    if (labels == graph.end() || boxes == nullptr || boxes == &*labels)
      return InvalidArgument(
          "which of the graph's outputs are labels, boxes and scores is not "
          "clear: {}. Write a contract that names them",
          list(graph));
    outputs.labels = labels->name;
    outputs.boxes = boxes->name;
    for (const TensorInfo& info : graph)
      if (&info != &*labels && &info != boxes) outputs.scores = info.name;
  }
  assumed.push_back(
      fmt::format("outputs '{}', '{}', '{}' are labels, boxes (xyxy in pixels of the original "
                  "image) and scores",
                  outputs.labels, outputs.boxes, outputs.scores));
  return {};
}

}  // namespace

Result<Contract> guess_contract(const Model& model, std::vector<std::string>& assumed) {
  Contract contract;
  TENONNX_RETURN_IF_ERROR(guess_image(model, contract.image, assumed));
  for (const TensorInfo& info : model.inputs()) {
    if (info.name == contract.image.name) continue;
    const bool size = info.shape.size() == 2 && info.shape[1] == 2;
    if (!size || contract.size)
      return InvalidArgument(
          "input '{}' {} {} is neither the image nor a size [1,2]: write a "
          "contract. A model with more inputs than these is not a detector that "
          "the pipeline can feed",
          info.name, to_string(info.dtype), to_string(info.shape));
    contract.size = SizeInput{info.name, info.dtype, SizeOrder::kWidthHeight};
    assumed.push_back(fmt::format("'{}' is [width, height]", info.name));
  }
  TENONNX_RETURN_IF_ERROR(guess_outputs(model, contract.outputs, assumed));
  if (!contract.size && contract.outputs.kind == OutputKind::kDetections)
    assumed.emplace_back("boxes are in pixels of the model's input, as there is no size input");
  assumed.emplace_back("class names are not known");
  TENONNX_RETURN_IF_ERROR(check_contract(contract, model).status());
  return contract;
}

}  // namespace tenonnx
