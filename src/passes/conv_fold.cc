// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/conv_fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "metrics/elements.h"
#include "passes/constants.h"

namespace tenonnx {
namespace {

struct Range {
  double largest, smallest_normal;
};
Range range_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {65504, 0x1p-14};
    case DType::kFloat64:
      return {1.7976931348623157e308, 0x1p-1022};
    default:  // float32; bfloat16 has its exponents, and 0x1.FEp127 as its largest number
      return {dtype == DType::kBFloat16 ? 0x1.FEp127 : 0x1.FFFFFEp127, 0x1p-126};
  }
}

bool is_padded(const onnx::NodeProto& node) {
  const std::string automatic = attribute_or(node, "auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") return true;
  if (automatic == "VALID") return false;
  const auto pads = attribute_ints(node, "pads");
  return std::any_of(pads.begin(), pads.end(), [](std::int64_t pad) { return pad != 0; });
}

// The input channel of the weight's element (i, j) of its two first axes, and the output channel.
struct Channels {
  std::size_t in, out;
};
Channels channels_at(const ConvParts& conv, std::size_t i, std::size_t j) {
  const auto inputs = static_cast<std::size_t>(conv.in_channels / conv.group);
  const auto outputs = static_cast<std::size_t>(conv.out_channels / conv.group);
  // Conv: [out, in / group, ...]; ConvTranspose: [in, out / group, ...].
  if (conv.transposed) return {i, i / inputs * outputs + j};
  return {i / outputs * inputs + j, i};
}

}  // namespace

ChannelAffine ChannelAffine::then(const ChannelAffine& next) const {
  ChannelAffine both = *this;
  for (std::size_t c = 0; c < scale.size(); ++c) {
    both.scale[c] = next.scale[c] * scale[c];
    both.shift[c] = next.scale[c] * shift[c] + next.shift[c];
  }
  return both;
}

bool ChannelAffine::is_identity() const {
  return !shifts() &&
         std::all_of(scale.begin(), scale.end(), [](double value) { return value == 1; });
}

bool ChannelAffine::shifts() const {
  return std::any_of(shift.begin(), shift.end(), [](double value) { return value != 0; });
}

bool is_conv(const onnx::NodeProto& node) {
  return is_op(node, "Conv") || is_op(node, "ConvTranspose");
}

std::string read_conv(const Rewriter& r, int index, ConvParts& conv) {
  const onnx::NodeProto& node = r.node(index);
  conv = {};
  conv.node = index;
  conv.transposed = is_op(node, "ConvTranspose");
  conv.padded = is_padded(node);
  conv.group = attribute_or(node, "group", std::int64_t{1});
  const std::string& weight = node.input(1);
  conv.weight = r.constant(weight);
  if (conv.weight == nullptr) return fmt::format("its weight '{}' is not a constant", weight);
  if (r.use_count(weight) > 1)
    return fmt::format("its weight '{}' is used {} times: folding would store it again for each",
                       weight, r.use_count(weight));
  const Shape& shape = conv.weight->shape();
  conv.rank = shape.size();
  if (conv.rank < 3 || conv.group < 1 || shape[0] % conv.group != 0 || conv.weight->size() == 0 ||
      !is_floating(conv.weight->dtype()))
    return fmt::format("its weight '{}', {} {}, is not one of {} groups of floating numbers",
                       weight, to_string(conv.weight->dtype()), to_string(shape), conv.group);
  conv.in_channels = conv.transposed ? shape[0] : shape[1] * conv.group;
  conv.out_channels = conv.transposed ? shape[1] * conv.group : shape[0];
  if (node.input_size() > 2 && !node.input(2).empty()) {
    conv.bias = r.constant(node.input(2));
    if (conv.bias == nullptr || conv.bias->size() != conv.out_channels)
      return fmt::format("its bias '{}' is not a constant", node.input(2));
  }
  return {};
}

std::string shift_reason(const ConvParts& conv, const ChannelAffine& before) {
  if (!before.shifts()) return {};
  if (conv.transposed)
    return "an addend before a ConvTranspose: pixels at the border see fewer taps of it";
  if (conv.padded)
    return "an addend before a Conv that pads: the zeros of the padding do not have it";
  return {};
}

std::optional<ChannelAffine> elementwise_affine(const Rewriter& r, const onnx::NodeProto& node,
                                                std::string_view data, std::int64_t channels,
                                                std::size_t rank) {
  const bool mul = is_op(node, "Mul"), add = is_op(node, "Add"), sub = is_op(node, "Sub");
  if (!mul && !add && !sub && !is_op(node, "Div")) return std::nullopt;
  const bool first = node.input(0) == data;  // data - c, not c - data
  if (node.input(0) == node.input(1) || (!first && node.input(1) != data)) return std::nullopt;
  if (!first && is_op(node, "Div")) return std::nullopt;
  const Tensor* constant = r.constant(node.input(first ? 1 : 0));
  if (constant == nullptr || constant->shape().size() > rank) return std::nullopt;
  Shape shape = constant->shape();
  shape.insert(shape.begin(), rank - shape.size(), 1);
  Shape per_channel(rank, 1);
  if (constant->size() != 1) per_channel[1] = channels;
  const auto read = doubles(*constant);
  if (shape != per_channel || !read) return std::nullopt;
  const std::vector<double>& values = *read;
  ChannelAffine affine(channels);
  for (std::size_t c = 0; c < affine.scale.size(); ++c) {
    const double value = values.size() == 1 ? values[0] : values[c];
    if (mul) affine.scale[c] = value;
    if (add) affine.shift[c] = value;
    if (sub) affine.shift[c] = first ? -value : value;
    if (sub && !first) affine.scale[c] = -1;
    if (is_op(node, "Div")) affine.scale[c] = 1 / value;
    if (!std::isfinite(affine.scale[c]) || !std::isfinite(affine.shift[c])) return std::nullopt;
  }
  return affine;
}

double largest_magnitude(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values)
    most = std::max(most, std::isnan(value) ? INFINITY : std::fabs(value));
  return most;
}

std::string storage_reason(DType dtype, double before, double now) {
  const Range range = range_of(dtype);
  if (now > range.largest)
    return fmt::format("a folded value would be {:.4g}, beyond the largest {}, {:.5g}", now,
                       to_string(dtype), range.largest);
  if (now > 0 && now < range.smallest_normal && before >= range.smallest_normal)
    return fmt::format(
        "the folded weights would be at most {:.4g}, below the smallest normal {}, "
        "{:.4g}",
        now, to_string(dtype), range.smallest_normal);
  return {};
}

namespace {

// The largest magnitude of the row, infinite where there is a NaN. Four at once, for vectors.
template <typename T>
double scale_row(const T* __restrict row, std::size_t count, double scale, T* __restrict out) {
  constexpr std::size_t kLanes = 4;
  double most[kLanes] = {};
  int nan[kLanes] = {};
  const auto one = [&](std::size_t lane, std::size_t k) {
    const double w = to_double(row[k]);
    most[lane] = std::fabs(w) > most[lane] ? std::fabs(w) : most[lane];
    nan[lane] |= w != w ? 1 : 0;
    out[k] = from_double<T>(w * scale);
  };
  std::size_t k = 0;
  for (; k + kLanes <= count; k += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) one(lane, k + lane);
  for (; k < count; ++k) one(0, k);
  if ((nan[0] | nan[1] | nan[2] | nan[3]) != 0) return INFINITY;
  return *std::max_element(most, most + kLanes);
}

}  // namespace

std::string fold_conv(const ConvParts& conv, const ChannelAffine& before,
                      const ChannelAffine& behind, FoldedConv& folded) {
  const Shape& shape = conv.weight->shape();
  const auto rows = static_cast<std::size_t>(shape[0]),
             columns = static_cast<std::size_t>(shape[1]);
  const DType dtype = conv.weight->dtype();
  const std::size_t taps = static_cast<std::size_t>(conv.weight->size()) / (rows * columns);
  std::vector<double> bias(static_cast<std::size_t>(conv.out_channels), 0);
  if (conv.bias != nullptr) bias = doubles(*conv.bias).value_or(bias);
  // Largest magnitudes by output channel: of the old weights and of the new ones.
  std::vector<double> old(bias.size(), 0), now(bias.size(), 0);
  folded.weight = Tensor(dtype, shape);
  // In one walk from the old weights to the new ones: of a whole model these are all of its bytes.
  visit_elements(*conv.weight, [&]<typename T>(const T* weight) {
    if constexpr (is_float_element<T>) {
      T* out = folded.weight.mutable_data<T>();
      if (!conv.transposed && before.is_identity()) {
        const std::size_t of_row = columns * taps;
        for (std::size_t m = 0; m < rows; ++m, weight += of_row, out += of_row) {
          old[m] = scale_row(weight, of_row, behind.scale[m], out);
          now[m] = old[m] * std::fabs(behind.scale[m]);
        }
        return;
      }
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j, weight += taps, out += taps) {
          const Channels c = channels_at(conv, i, j);
          const double scale = before.scale[c.in] * behind.scale[c.out];
          double sum = 0, most = 0;
          for (std::size_t k = 0; k < taps; ++k) {
            const double w = to_double(weight[k]);
            sum += w;
            most = std::max(most, std::isnan(w) ? INFINITY : std::fabs(w));
            out[k] = from_double<T>(w * scale);
          }
          bias[c.out] += before.shift[c.in] * sum;
          old[c.out] = std::max(old[c.out], most);
          now[c.out] = std::max(now[c.out], most * std::fabs(scale));
        }
      }
    }
  });
  for (std::size_t m = 0; m < bias.size(); ++m) {
    bias[m] = behind.scale[m] * bias[m] + behind.shift[m];
    std::string reason = storage_reason(dtype, old[m], now[m]);
    // A small bias loses nothing that matters beside what it is added to: only its size counts.
    if (reason.empty()) reason = storage_reason(dtype, 0, largest_magnitude({bias[m]}));
    if (!reason.empty()) return reason;
  }
  if (largest_magnitude(bias) > 0) folded.bias = from_doubles(dtype, {conv.out_channels}, bias);
  return {};
}

onnx::NodeProto folded_node(Rewriter& r, const ConvParts& conv, const FoldedConv& folded,
                            const std::string& x, const std::string& y) {
  const onnx::NodeProto& old = r.node(conv.node);
  onnx::NodeProto node = old;
  node.clear_input();
  node.add_input(x);
  node.add_input(r.add_constant(old.input(1), folded.weight));
  if (folded.bias.defined()) {
    const bool named = old.input_size() > 2 && !old.input(2).empty();
    node.add_input(r.add_constant(named ? old.input(2) : old.input(1) + "/bias", folded.bias));
  }
  node.set_output(0, y);
  return node;
}

}  // namespace tenonnx
