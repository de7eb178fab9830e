// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/size_order.h"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/half.h"
#include "base/status.h"
#include "metrics/tensor_error.h"
#include "pipeline/image.h"
#include "pipeline/preprocess.h"

namespace tenonnx {
namespace {

constexpr int kLong = 1000, kShort = 10;
// Boxes are multiplied by the size, so the ratio is 100 up to rounding; sums over all boxes of a
// graph that also clips or rounds to pixels come within a few tens of percent of it.
constexpr double kLeastRatio = 30, kMostRatio = 300;

// Repeatable noise; a constant image may give boxes of zero size.
Image noise_image() {
  Image image(64, 64, 3);
  std::uint32_t state = 1;
  for (std::uint8_t& pixel : image.pixels) {
    state = state * 1664525U + 1013904223U;  // Numerical Recipes' generator; any would do
    pixel = static_cast<std::uint8_t>(state >> 24);
  }
  return image;
}

Result<Tensor> sizes(const SizeInput& input, int first, int second) {
  if (input.dtype == DType::kInt64)
    return Tensor::from<std::int64_t>(input.dtype, {1, 2}, {first, second});
  if (input.dtype == DType::kInt32)
    return Tensor::from<std::int32_t>(input.dtype, {1, 2}, {first, second});
  if (input.dtype == DType::kFloat32)
    return Tensor::from<float>(input.dtype, {1, 2},
                               {static_cast<float>(first), static_cast<float>(second)});
  return InvalidArgument("'{}' is {} in the contract; int64, int32 or float32 is needed",
                         input.name, to_string(input.dtype));
}

// Sum of |x| (both corners) and of |y| over all boxes.
using Extent = std::array<double, 2>;

Result<Extent> extent(const Contract& contract, const TensorMap& outputs) {
  const auto found = outputs.find(contract.outputs.boxes);
  if (found == outputs.end())
    return InvalidArgument("output '{}', which the contract names, is missing",
                           contract.outputs.boxes);
  const Tensor& boxes = found->second;
  const bool half = boxes.dtype() == DType::kFloat16;
  if ((!half && boxes.dtype() != DType::kFloat32) || boxes.shape().empty() ||
      boxes.shape().back() != 4)
    return InvalidArgument("output '{}' is {} {}; float32 [1,K,4] is expected",
                           contract.outputs.boxes, to_string(boxes.dtype()),
                           to_string(boxes.shape()));
  Extent sums = {0, 0};
  for (std::int64_t i = 0; i < boxes.size(); ++i) {
    const double value =
        half ? float16_to_float(boxes.data<std::uint16_t>()[i]) : boxes.data<float>()[i];
    if (std::isfinite(value)) sums[static_cast<std::size_t>(i % 2)] += std::abs(value);
  }
  return sums;
}

// Which number scales a coordinate, from its extents under [1000,10] and [10,1000]: 0, 1, or -1 for
// neither.
int scaled_by(double long_first, double short_first) {
  const auto within = [](double ratio) { return ratio > kLeastRatio && ratio < kMostRatio; };
  if (within(long_first / short_first)) return 0;
  if (within(short_first / long_first)) return 1;
  return -1;
}

bool same(const TensorMap& a, const TensorMap& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    if (other == b.end()) return false;
    const auto compared = compare_identical(tensor, other->second);
    if (!compared.ok() || compared->differing > 0) return false;
  }
  return true;
}

std::string_view name_of(SizeOrder order) {
  return order == SizeOrder::kWidthHeight ? "[width, height]" : "[height, width]";
}

}  // namespace

Result<SizeOrderProof> probe_size_order(const Contract& contract, const ModelRunner& run) {
  SizeOrderProof proof;
  if (!contract.size) {
    proof.detail = "the contract names no input for the size";
    return proof;
  }
  TENONNX_ASSIGN_OR_RETURN(const Preprocessor preprocessor, Preprocessor::create(contract));
  const Image image = noise_image();
  TensorMap inputs;
  TENONNX_RETURN_IF_ERROR(preprocessor.image_tensor(view_of(image), inputs[contract.image.name]));
  TENONNX_ASSIGN_OR_RETURN(inputs[contract.size->name], sizes(*contract.size, kLong, kShort));
  TENONNX_ASSIGN_OR_RETURN(const TensorMap long_outputs, run(inputs));
  TENONNX_ASSIGN_OR_RETURN(inputs[contract.size->name], sizes(*contract.size, kShort, kLong));
  TENONNX_ASSIGN_OR_RETURN(const TensorMap short_outputs, run(inputs));
  if (contract.outputs.kind == OutputKind::kRaw) {
    proof.no_effect = same(long_outputs, short_outputs);
    proof.detail =
        fmt::format("the raw outputs are {} with the sizes [{}, {}] and [{}, {}]",
                    proof.no_effect ? "the same" : "not the same", kLong, kShort, kShort, kLong);
    return proof;
  }
  TENONNX_ASSIGN_OR_RETURN(const Extent long_first, extent(contract, long_outputs));
  TENONNX_ASSIGN_OR_RETURN(const Extent short_first, extent(contract, short_outputs));

  const int x = scaled_by(long_first[0], short_first[0]);
  const int y = scaled_by(long_first[1], short_first[1]);
  proof.detail = fmt::format(
      "with the sizes [{0}, {1}] and [{1}, {0}] the x of all boxes sum to {2:.6g} and {3:.6g}, the "
      "y "
      "to {4:.6g} and {5:.6g}",
      kLong, kShort, long_first[0], short_first[0], long_first[1], short_first[1]);
  if (x == 0 && y == 1) proof.order = SizeOrder::kWidthHeight;
  if (x == 1 && y == 0) proof.order = SizeOrder::kHeightWidth;
  return proof;
}

Result<SizeOrderFinding> check_size_order(const Contract& contract, const ModelRunner& run) {
  TENONNX_ASSIGN_OR_RETURN(const SizeOrderProof proof, probe_size_order(contract, run));
  if (!contract.size) return SizeOrderFinding{true, proof.detail};
  const std::string& name = contract.size->name;
  if (proof.no_effect)
    return SizeOrderFinding{
        true, fmt::format("the order of '{}' does not matter: {}", name, proof.detail)};
  if (!proof.order)
    return SizeOrderFinding{
        false, fmt::format(
                   "the order {} of '{}' could not be proved: {}; the boxes must be scaled by "
                   "'{}', one number for x and the other for y: export the model so, or, where its "
                   "boxes do not depend on the size, without that input",
                   name_of(contract.size->order), name, proof.detail, name)};
  if (*proof.order != contract.size->order)
    return InvalidArgument(
        "the contract says that '{}' is {}, but the graph multiplies x by the {} number, so it is "
        "{}: {}. Set \"order\": \"{}\" in the contract's size",
        name, name_of(contract.size->order),
        *proof.order == SizeOrder::kWidthHeight ? "first" : "second", name_of(*proof.order),
        proof.detail, *proof.order == SizeOrder::kWidthHeight ? "width_height" : "height_width");
  return SizeOrderFinding{true, fmt::format("the order {} of '{}' is proved: {}",
                                            name_of(*proof.order), name, proof.detail)};
}

}  // namespace tenonnx
