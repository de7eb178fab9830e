// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/declared_ranges.h"

#include <algorithm>
#include <cstdint>

#include "base/status.h"

namespace tenonnx {
namespace {

double longest(const Tensor& size) {
  double out = 0;
  for (std::int64_t i = 0; i < size.size(); ++i) {
    double value = 0;
    if (size.dtype() == DType::kInt64)
      value = static_cast<double>(size.data<std::int64_t>()[i]);
    else if (size.dtype() == DType::kInt32)
      value = size.data<std::int32_t>()[i];
    else if (size.dtype() == DType::kFloat32)
      value = size.data<float>()[i];
    out = std::max(out, value);
  }
  return out;
}

std::optional<DeclaredRange> boxes_range(const Contract& contract, const TensorMap& inputs) {
  DeclaredRange range;
  if (contract.size) {
    const auto found = inputs.find(contract.size->name);
    if (found == inputs.end()) return std::nullopt;
    range.width = longest(found->second);
    range.origin = fmt::format("boxes are 0..{:g} pixels of the image, by '{}' (contract)",
                               range.width, contract.size->name);
  } else {
    const ImageInput& image = contract.image;
    if (image.shape.size() != 4) return std::nullopt;
    const std::size_t at = image.layout == Layout::kNchw ? 2 : 1;
    range.width = static_cast<double>(std::max(image.shape[at], image.shape[at + 1]));
    range.origin =
        fmt::format("boxes are 0..{:g} pixels of the model's input (contract)", range.width);
  }
  if (!(range.width > 0)) return std::nullopt;
  return range;
}

}  // namespace

std::optional<DeclaredRange> declared_range(const Contract& contract, std::string_view output,
                                            const TensorMap& inputs) {
  const Outputs& outputs = contract.outputs;
  if (outputs.kind == OutputKind::kRaw) {
    if (output == outputs.pred_boxes)
      return DeclaredRange{1, "boxes are 0..1 of the image (contract)"};
    return std::nullopt;
  }
  if (output == outputs.scores) return DeclaredRange{1, "scores are 0..1 (contract)"};
  if (output == outputs.boxes) return boxes_range(contract, inputs);
  return std::nullopt;
}

}  // namespace tenonnx
