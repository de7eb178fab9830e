// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Folding per-channel factors and addends into a convolution, before it and behind it:
//
//   Conv(W, B), then a[m] y + b[m]:   W'[m] = a[m] W[m],        B'[m] = a[m] B[m] + b[m]
//   a[c] x + b[c], then Conv(W, B):   W'[m, c] = a[c] W[m, c],  B'[m] = B[m] + sum b[c] W[m, c]
//
// The second one with b needs a Conv without padding: zeros that padding adds are not b. Computed
// in double, stored in the weight's dtype.
#pragma once

#include <string>
#include <vector>

#include "passes/rewriter.h"

namespace tenonnx {

// y[c] = scale[c] x[c] + shift[c]
struct ChannelAffine {
  std::vector<double> scale, shift;
  explicit ChannelAffine(std::int64_t channels)
      : scale(static_cast<std::size_t>(channels), 1), shift(scale.size(), 0) {}
  // This one first, then `next`.
  ChannelAffine then(const ChannelAffine& next) const;
  bool shifts() const;
  bool is_identity() const;
};

struct ConvParts {
  int node = -1;
  bool transposed = false;
  bool padded = false;
  std::int64_t group = 1, in_channels = 0, out_channels = 0;
  std::size_t rank = 0;  // of its input and output
  const Tensor* weight = nullptr;
  const Tensor* bias = nullptr;  // nullptr where it has none
};

bool is_conv(const onnx::NodeProto& node);
// Reads a Conv or ConvTranspose; returns why nothing can be folded into it, "" where something can.
std::string read_conv(const Rewriter& r, int index, ConvParts& conv);
// Why `before` cannot be folded into it, "" where it can.
std::string shift_reason(const ConvParts& conv, const ChannelAffine& before);

// What an element-wise Mul, Add, Sub or Div by a constant does to `data`, a tensor with `channels`
// at axis 1 of `rank`; nullopt where the constant is not one number, or one a channel.
std::optional<ChannelAffine> elementwise_affine(const Rewriter& r, const onnx::NodeProto& node,
                                                std::string_view data, std::int64_t channels,
                                                std::size_t rank);

struct FoldedConv {
  Tensor weight, bias;  // bias is undefined where it would be all zero
};
// Returns why the result cannot be stored in the weight's dtype, "" where it can.
std::string fold_conv(const ConvParts& conv, const ChannelAffine& before,
                      const ChannelAffine& behind, FoldedConv& folded);
// The same node with the folded constants, from x to y. Between begin() and apply().
onnx::NodeProto folded_node(Rewriter& r, const ConvParts& conv, const FoldedConv& folded,
                            const std::string& x, const std::string& y);

// The largest magnitude; infinity where there is a NaN.
double largest_magnitude(const std::vector<double>& values);
// Why values of at most `now` cannot be stored in `dtype` in place of values of at most `before`:
// they overflow, or all fall below the smallest normal number and lose their digits; "" where they
// can.
std::string storage_reason(DType dtype, double before, double now);

}  // namespace tenonnx
