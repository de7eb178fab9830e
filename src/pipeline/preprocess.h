// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Pixels to the model's inputs, after the contract:
//   to RGB -> resize (stretch, or letterbox on a canvas of one colour) -> scale -> mean, std
//          -> colour order and layout -> dtype
// A pixel has 256 values, so scale, mean and std are a table of 256 numbers a channel, computed
// once in the arithmetic that contract.h defines. float16 is that float32 number rounded to nearest
// even.
#pragma once

#include <array>
#include <vector>

#include "pipeline/image.h"
#include "tenonnx/contract.h"

namespace tenonnx {

// Thread-safe once made.
class Preprocessor {
 public:
  // InvalidArgument where the contract's image is not one that can be made: wrong rank, dtype,
  // layout.
  static Result<Preprocessor> create(const Contract& contract);

  // The image input [1,3,H,W] or [1,H,W,3]. Written into `out` where that has the right dtype and
  // shape, else `out` is replaced.
  Status image_tensor(const ImageView& view, Tensor& out) const;

  // orig_target_sizes [1,2] for an original of this size, in the contract's order and dtype; the
  // same reuse. InvalidArgument for a width or height below 1: a model that multiplies by 0 puts
  // every box into the corner and reports no error. FailedPrecondition where the contract has no
  // size input.
  Status size_tensor(int original_width, int original_height, Tensor& out) const;

  // Both, by name.
  Status run(const ImageView& view, TensorMap& inputs) const;

  const Contract& contract() const { return contract_; }

 private:
  Contract contract_;
  std::array<std::array<float, 256>, 3> table_{};         // channels in the contract's order
  std::array<std::array<std::uint16_t, 256>, 3> half_{};  // the same in float16
};

// What somebody else gives as inputs (a file, a test, another program): every input there and no
// other, dtype and shape right, sizes above 0. An int32 orig_target_sizes for an int64 input is
// refused, or converted where `convert_int32` asks for it. InvalidArgument, got against allowed; a
// transposed image is called that.
Status check_inputs(const Contract& contract, const std::vector<TensorInfo>& expected,
                    TensorMap& inputs, bool convert_int32 = false);

}  // namespace tenonnx
