// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fold_batch_normalization: BatchNormalization of inference goes into the constants of its
// neighbour. With a = scale / sqrt(variance + epsilon) and b = bias - a * mean:
//
// before: y = BatchNormalization(Conv(x, W, B))      after: y = Conv(x, W', B')
//         W'[m] = a[m] W[m]       B'[m] = a[m] B[m] + b[m]
//   the same for ConvTranspose, whose weight is [in, out / group, ...], for Gemm, and for MatMul of
//   rank 2, which becomes Gemm
// before: y = Conv(BatchNormalization(x), W, B)      after: y = Conv(x, W', B')
//         W'[m, c] = a[c] W[m, c]     B'[m] = B[m] + sum over c and taps of b[c] W[m, c]
//
// Conditions: all parameters constant, the weight used here alone, the tensor between the two used
// here alone. Computed in double, stored in the weight's dtype. Class algebraic.
// Source: ONNX BatchNormalization-7 to -15.
// Refuses: training mode; parameters or weights that are computed; a weight of several nodes; a
// tensor between that is used elsewhere; before a Conv that pads, unless b is 0: the zeros of the
// padding come in behind the normalisation and do not have b; a result that overflows the dtype or
// leaves a channel below its smallest normal number.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/status.h"
#include "passes/constants.h"
#include "passes/conv_fold.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {
namespace {

// Of node `index`; the reason where it has no such form.
std::string batch_affine(const Rewriter& r, int index, std::optional<ChannelAffine>& affine) {
  const onnx::NodeProto& node = r.node(index);
  if (attribute_or(node, "training_mode", std::int64_t{0}) != 0) return "it is in training mode";
  if (attribute_or(node, "spatial", std::int64_t{1}) != 1) return "it is not spatial";
  for (int k = 1; k < node.output_size(); ++k)
    if (r.use_count(node.output(k)) > 0)
      return fmt::format("its output '{}' is used, which only training makes", node.output(k));
  std::vector<double> values[4];  // scale, bias, mean, variance
  for (int k = 0; k < 4; ++k) {
    const Tensor* tensor = r.constant(node.input(k + 1));
    if (tensor != nullptr) values[k] = doubles(*tensor).value_or(values[k]);
    if (values[k].empty() || values[k].size() != values[0].size())
      return fmt::format("its parameter '{}' is not a constant", node.input(k + 1));
  }
  affine.emplace(static_cast<std::int64_t>(values[0].size()));
  const double epsilon = attribute_or(node, "epsilon", 1e-5F);
  for (std::size_t c = 0; c < affine->scale.size(); ++c) {
    const double a = values[0][c] / std::sqrt(values[3][c] + epsilon);
    affine->scale[c] = a;
    affine->shift[c] = values[1][c] - a * values[2][c];
    if (!std::isfinite(a) || !std::isfinite(affine->shift[c]))
      return fmt::format("variance + epsilon of channel {} is {}, which has no root to divide by",
                         c, values[3][c] + epsilon);
  }
  return {};
}

std::string not_alone(const Rewriter& r, std::string_view name) {
  return r.sole_user(name) >= 0
             ? std::string()
             : fmt::format("'{}' is used elsewhere too, or is an output of the graph", name);
}

// Into the Conv or ConvTranspose before it; `before` the other way round.
std::string into_conv(Rewriter& r, int batch, int conv_index, const ChannelAffine& affine,
                      bool before) {
  const onnx::NodeProto& norm = r.node(batch);
  ConvParts conv;
  std::string reason = read_conv(r, conv_index, conv);
  if (!reason.empty()) return reason;
  if (static_cast<std::int64_t>(affine.scale.size()) !=
      (before ? conv.in_channels : conv.out_channels))
    return "its channels are not those of the convolution";
  if (before) reason = shift_reason(conv, affine);
  if (reason.empty()) reason = not_alone(r, before ? norm.output(0) : norm.input(0));
  FoldedConv folded;
  if (reason.empty())
    reason = fold_conv(conv, before ? affine : ChannelAffine(conv.in_channels),
                       before ? ChannelAffine(conv.out_channels) : affine, folded);
  if (!reason.empty()) return reason;
  if (!r.begin({batch, conv_index})) return {};
  const onnx::NodeProto& old = r.node(conv_index);
  if (before) {
    r.replace(conv_index, folded_node(r, conv, folded, norm.input(0), old.output(0)));
    r.remove(batch);
  } else {
    r.replace(batch, folded_node(r, conv, folded, old.input(0), norm.output(0)));
    r.remove(conv_index);
  }
  r.apply(batch, fmt::format("folded into {}", node_label(old)));
  return {};
}

// Into the Gemm, or the MatMul of rank 2, before it.
std::string into_gemm(Rewriter& r, int batch, int gemm_index, const ChannelAffine& affine) {
  const onnx::NodeProto& norm = r.node(batch);
  const onnx::NodeProto& gemm = r.node(gemm_index);
  const bool is_gemm = is_op(gemm, "Gemm");
  const auto shape = r.shape(norm.input(0));
  if (!shape || shape->size() != 2) return "the product before it is not of rank 2";
  const Tensor* weight = r.constant(gemm.input(1));
  if (weight == nullptr || weight->shape().size() != 2 || !doubles(*weight))
    return fmt::format("its weight '{}' is not a constant matrix", gemm.input(1));
  if (r.use_count(gemm.input(1)) > 1)
    return fmt::format("its weight '{}' is used {} times: folding would store it again for each",
                       gemm.input(1), r.use_count(gemm.input(1)));
  std::string reason = not_alone(r, norm.input(0));
  if (!reason.empty()) return reason;
  const bool transposed = is_gemm && attribute_or(gemm, "transB", std::int64_t{0}) != 0;
  const auto columns = static_cast<std::size_t>(weight->shape()[1]);
  const std::size_t channels = affine.scale.size();
  if (static_cast<std::size_t>(weight->shape()[transposed ? 0 : 1]) != channels)
    return "its channels are not those of the product";
  std::vector<double> values = doubles(*weight).value_or(std::vector<double>());
  const double old = largest_magnitude(values);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] *= affine.scale[transposed ? i / columns : i % columns];
  double beta = is_gemm ? attribute_or(gemm, "beta", 1.0F) : 1.0;
  std::vector<double> bias = affine.shift;
  if (is_gemm && beta != 0 && gemm.input_size() > 2 && !gemm.input(2).empty()) {
    const Tensor* added = r.constant(gemm.input(2));
    const bool row =
        added != nullptr && (added->size() == 1 || added->shape().back() == added->size());
    if (!row || (added->size() != 1 && static_cast<std::size_t>(added->size()) != channels))
      return fmt::format("its addend '{}' is not a constant row", gemm.input(2));
    const std::vector<double> row_values = doubles(*added).value_or(std::vector<double>{0});
    for (std::size_t c = 0; c < channels; ++c)
      bias[c] += affine.scale[c] * beta * row_values[row_values.size() == 1 ? 0 : c];
  }
  reason = storage_reason(weight->dtype(), old, largest_magnitude(values));
  if (reason.empty()) reason = storage_reason(weight->dtype(), 0, largest_magnitude(bias));
  if (!reason.empty()) return reason;
  if (!r.begin({batch, gemm_index})) return {};
  onnx::NodeProto node = make_node(
      "Gemm",
      {gemm.input(0),
       r.add_constant(gemm.input(1), from_doubles(weight->dtype(), weight->shape(), values)),
       r.add_constant(gemm.input(1) + "/bias",
                      from_doubles(weight->dtype(), {static_cast<std::int64_t>(channels)}, bias))},
      {norm.output(0)});
  node.set_name(gemm.name());
  for (const auto& attribute : gemm.attribute())
    if (attribute.name() != "beta") *node.add_attribute() = attribute;
  r.replace(batch, std::move(node));
  r.remove(gemm_index);
  r.apply(batch, fmt::format("folded into {}", node_label(gemm)));
  return {};
}

}  // namespace

namespace passes {

Result<PassOutcome> fold_batch_normalization(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("fold_batch_normalization", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_op(node, "BatchNormalization")) return;
    std::optional<ChannelAffine> affine;
    std::string reason = batch_affine(r, i, affine);
    if (!reason.empty()) return r.refuse(i, reason);
    const int behind = r.producer(node.input(0)), user = r.sole_user(node.output(0));
    const bool before_conv =
        user >= 0 && is_conv(r.node(user)) && r.node(user).input(0) == node.output(0);
    reason = "no Conv, ConvTranspose, Gemm or MatMul is before it, and none alone behind it";
    if (behind >= 0 && is_conv(r.node(behind))) {
      reason = into_conv(r, i, behind, *affine, /*before=*/false);
    } else if (behind >= 0 && (is_op(r.node(behind), "Gemm") || is_op(r.node(behind), "MatMul"))) {
      reason = into_gemm(r, i, behind, *affine);
    }
    if (!reason.empty() && before_conv) reason = into_conv(r, i, user, *affine, /*before=*/true);
    if (!reason.empty()) r.refuse(i, reason);
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
