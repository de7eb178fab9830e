// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/value_ranges.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>
#include <vector>

#include "model/graph.h"
#include "passes/edit.h"

namespace tenonnx {
namespace {

using Range = std::optional<ValueRange>;
using Wide = __int128;  // products and sums of int64 fit

Range checked(Wide low, Wide high) {
  constexpr Wide kLow = std::numeric_limits<std::int64_t>::min();
  constexpr Wide kHigh = std::numeric_limits<std::int64_t>::max();
  if (low < kLow || high > kHigh) return std::nullopt;
  return ValueRange{static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)};
}

Range corners(std::initializer_list<Wide> values) {
  return checked(std::min(values), std::max(values));
}

Range united(const Range& a, const Range& b) {
  if (!a || !b) return std::nullopt;
  return ValueRange{std::min(a->low, b->low), std::max(a->high, b->high)};
}

Range of_tensor(const Tensor& t) {
  if (t.size() == 0) return ValueRange{0, 0};
  if (t.dtype() == DType::kInt64) {
    const auto [low, high] =
        std::minmax_element(t.data<std::int64_t>(), t.data<std::int64_t>() + t.size());
    return ValueRange{*low, *high};
  }
  if (t.dtype() == DType::kInt32) {
    const auto [low, high] =
        std::minmax_element(t.data<std::int32_t>(), t.data<std::int32_t>() + t.size());
    return ValueRange{*low, *high};
  }
  return std::nullopt;
}

Range of_dtype(int onnx_type) {
  switch (onnx_type) {
    case onnx::TensorProto::BOOL:
      return ValueRange{0, 1};
    case onnx::TensorProto::UINT8:
      return ValueRange{0, 255};
    case onnx::TensorProto::INT8:
      return ValueRange{-128, 127};
    case onnx::TensorProto::UINT16:
      return ValueRange{0, 65535};
    case onnx::TensorProto::INT16:
      return ValueRange{-32768, 32767};
    case onnx::TensorProto::INT32:
      return ValueRange{std::numeric_limits<std::int32_t>::min(),
                        std::numeric_limits<std::int32_t>::max()};
    default:
      return std::nullopt;
  }
}

// Outputs hold elements of the first input and no others.
bool moves_first_input(std::string_view op) {
  static const std::unordered_set<std::string_view> kOps = {
      "Identity",       "Reshape",  "Unsqueeze", "Squeeze",   "Flatten",
      "Transpose",      "Slice",    "Expand",    "Tile",      "Gather",
      "GatherElements", "GatherND", "Split",     "ReduceMax", "ReduceMin"};
  return kOps.contains(op);
}

class Ranges {
 public:
  Ranges(const Model& model, const Inference& inference,
         const std::unordered_map<std::string, ValueRange>& assumed)
      : model_(model), types_(inference.graphs.front()), assumed_(assumed) {
    const onnx::GraphProto& graph = model.proto().graph();
    for (const auto& t : graph.initializer()) {
      if (t.data_type() != onnx::TensorProto::INT64 && t.data_type() != onnx::TensorProto::INT32)
        continue;
      const auto tensor = model.tensor(t);
      if (tensor.ok()) set(t.name(), of_tensor(*tensor));
    }
    // What an input may override is not known.
    for (const auto& input : graph.input()) ranges_.erase(input.name());
    for (const auto& node : graph.node()) add(node);
    for (const auto& [name, values] : inference.values) {
      if (values.empty()) continue;
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      ranges_.insert_or_assign(name, ValueRange{*low, *high});
    }
  }

  std::unordered_map<std::string, ValueRange> take() { return std::move(ranges_); }

 private:
  Range get(const std::string& name) const {
    const auto it = ranges_.find(name);
    return it == ranges_.end() ? std::nullopt : Range(it->second);
  }
  Range input(const onnx::NodeProto& node, int i) const {
    return i < node.input_size() && !node.input(i).empty() ? get(node.input(i)) : std::nullopt;
  }
  void set(const std::string& name, const Range& range) {
    if (range && !name.empty()) ranges_.insert_or_assign(name, *range);
  }
  int type(const std::string& name) const {
    const auto it = types_.find(name);
    return it == types_.end() ? 0 : it->second.onnx_type;
  }
  // The indices along an axis of a tensor.
  Range indices(const std::string& name, std::int64_t axis) const {
    const auto it = types_.find(name);
    if (it == types_.end() || !it->second.has_shape) return std::nullopt;
    const Shape& shape = it->second.shape;
    if (axis < 0) axis += static_cast<std::int64_t>(shape.size());
    if (axis < 0 || axis >= static_cast<std::int64_t>(shape.size())) return std::nullopt;
    const std::int64_t dim = shape[static_cast<std::size_t>(axis)];
    return dim < 1 ? std::nullopt : Range(ValueRange{0, dim - 1});
  }

  void add(const onnx::NodeProto& node) {
    if (node.output_size() == 0 || !normalized_domain(node.domain()).empty()) return;
    const std::string& op = node.op_type();
    if (op == "TopK") {
      if (node.output_size() > 1)
        set(node.output(1), indices(node.input(0), attribute_or(node, "axis", std::int64_t{-1})));
      return;
    }
    if (op == "ArgMax" || op == "ArgMin")
      return set(node.output(0),
                 indices(node.input(0), attribute_or(node, "axis", std::int64_t{0})));
    const int out = type(node.output(0));
    if (out != onnx::TensorProto::INT64 && out != onnx::TensorProto::INT32) return;
    if (moves_first_input(op)) {
      for (const std::string& name : node.output()) set(name, input(node, 0));
      return;
    }
    Range range = computed(node);
    // int32 arithmetic wraps at another place.
    if (range && out == onnx::TensorProto::INT32)
      if (range->low < std::numeric_limits<std::int32_t>::min() ||
          range->high > std::numeric_limits<std::int32_t>::max())
        range.reset();
    set(node.output(0), range);
  }

  Range computed(const onnx::NodeProto& node) const {
    const std::string& op = node.op_type();
    const Range a = node.input_size() > 0 ? input(node, 0) : std::nullopt;
    const Range b = input(node, 1);
    if (op == "Constant") {
      const auto tensor = model_.constant(node.output(0));
      return tensor.ok() ? of_tensor(*tensor) : std::nullopt;
    }
    if (op == "Cast") {
      if (const auto it = assumed_.find(node.output(0)); it != assumed_.end()) return it->second;
      const int from = type(node.input(0));
      if (from == onnx::TensorProto::INT64 || from == onnx::TensorProto::INT32)
        if (a) return a;
      return of_dtype(from);
    }
    if (op == "Concat" || op == "Max" || op == "Min") {
      Range all = a;
      for (int i = 1; i < node.input_size(); ++i) {
        const Range next = input(node, i);
        if (!all || !next) return std::nullopt;
        if (op == "Concat")
          all = united(all, next);
        else if (op == "Max")
          all = ValueRange{std::max(all->low, next->low), std::max(all->high, next->high)};
        else
          all = ValueRange{std::min(all->low, next->low), std::min(all->high, next->high)};
      }
      return all;
    }
    if (op == "Where") return united(b, input(node, 2));
    if ((op == "ScatterND" || op == "ScatterElements") &&
        attribute_or(node, "reduction", "none") == "none")
      return united(a, input(node, 2));
    if (op == "Clip") return clipped(node, a);
    if (op == "Neg") return a ? checked(-Wide{a->high}, -Wide{a->low}) : std::nullopt;
    if (op == "Abs" && a) {
      const Wide low = a->low, high = a->high;
      return checked(low > 0 ? low : high < 0 ? -high : 0, std::max(high, -low));
    }
    if (!a || !b) return op == "Mod" ? remainder(node, a, b) : std::nullopt;
    const Wide al = a->low, ah = a->high, bl = b->low, bh = b->high;
    if (op == "Add") return checked(al + bl, ah + bh);
    if (op == "Sub") return checked(al - bh, ah - bl);
    if (op == "Mul") return corners({al * bl, al * bh, ah * bl, ah * bh});
    if (op == "Div" && bl >= 1) return corners({al / bl, al / bh, ah / bl, ah / bh});
    if (op == "Mod") return remainder(node, a, b);
    return std::nullopt;
  }

  static Range remainder(const onnx::NodeProto& node, const Range& a, const Range& b) {
    if (!b || b->low < 1) return std::nullopt;
    // fmod = 0: the sign of the divisor, which is positive; fmod = 1: the sign of the dividend.
    const bool negative = attribute_or(node, "fmod", std::int64_t{0}) != 0 && (!a || a->low < 0);
    return ValueRange{negative ? 1 - b->high : 0, b->high - 1};
  }

  Range clipped(const onnx::NodeProto& node, const Range& a) const {
    const Range low = input(node, 1), high = input(node, 2);
    const bool has_low = node.input_size() > 1 && !node.input(1).empty();
    const bool has_high = node.input_size() > 2 && !node.input(2).empty();
    if ((has_low && !low) || (has_high && !high)) return std::nullopt;
    if (!a && (!low || !high)) return std::nullopt;
    // Where min exceeds max, max holds.
    constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    ValueRange r = a.value_or(ValueRange{kMin, kMax});
    if (low) r = {std::max(r.low, low->low), std::max(r.high, low->high)};
    if (high) r = {std::min(r.low, high->low), std::min(r.high, high->high)};
    return r;
  }

  const Model& model_;
  const InferredTypes& types_;
  const std::unordered_map<std::string, ValueRange>& assumed_;
  std::unordered_map<std::string, ValueRange> ranges_;
};

}  // namespace

std::unordered_map<std::string, ValueRange> value_ranges(
    const Model& model, const Inference& inference,
    const std::unordered_map<std::string, ValueRange>& assumed) {
  return Ranges(model, inference, assumed).take();
}

}  // namespace tenonnx
