// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "cut/features.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "cut/sites.h"

namespace tenonnx {
namespace {

using Names = std::unordered_set<std::string_view>;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

bool is_onnx(const onnx::NodeProto& node) { return normalized_domain(node.domain()).empty(); }

bool arranges(const onnx::NodeProto& node) {
  static const Names kLayout = {
      "Reshape", "Transpose", "Squeeze",  "Unsqueeze",      "Flatten",         "Identity",
      "Cast",    "Dropout",   "CastLike", "QuantizeLinear", "DequantizeLinear"};
  return kLayout.contains(node.op_type());
}

// Of one tensor and constants: a factor, a summand, a mask, a normalisation.
bool scales(const onnx::NodeProto& node) {
  static const Names kAffine = {"Add", "Sub", "Mul", "Div", "Where", "BatchNormalization"};
  static const Names kNormalizations = {"LayerNormalization", "GroupNormalization",
                                        "InstanceNormalization"};
  return is_onnx(node) &&
         (kAffine.contains(node.op_type()) || kNormalizations.contains(node.op_type()));
}

bool projects(const onnx::NodeProto& node) {
  static const Names kLinear = {"Conv", "MatMul", "Gemm"};
  return is_onnx(node) && kLinear.contains(node.op_type());
}

// One level: where layout ends, and where the projection before it begins.
struct Level {
  int arranged = -1;
  bool shared = false;   // something else reads `arranged`
  int projected = -1;    // -1: there is no projection
  bool certain = false;  // it cannot be a layer of the encoder
};

class Walk {
 public:
  Walk(const DataFlow& flow, const TensorSet& before) : flow_(flow), before_(before) {}

  std::vector<Level> levels(int tensor) {
    // Up to the Concat that joins the levels; a factor or a mask may stand behind it.
    for (int x = tensor, first = true; !shared(x) || first; first = false) {
      const int n = flow_.producer(x);
      if (n < 0) break;
      const onnx::NodeProto& node = flow_.node(n);
      if (node.op_type() == "Concat" && flow_.inputs(n).size() > 1) {
        std::vector<Level> out;
        for (const int input : flow_.inputs(n)) out.push_back(level(input, true));
        return out;
      }
      if (flow_.inputs(n).size() != 1 || !(arranges(node) || scales(node))) break;
      x = flow_.inputs(n)[0];
    }
    return {level(tensor, false)};
  }

 private:
  // Read by more than one node of `before`: the way that was walked, and another.
  bool shared(int x) const {
    int inside = 0;
    for (const int n : flow_.readers(x)) {
      const TensorIds& made = flow_.outputs(n);
      inside += std::all_of(made.begin(), made.end(), [&](int id) { return before_[at(id)]; });
    }
    return inside > 1;
  }

  // `joined`: one of the levels of a Concat.
  Level level(int x, bool joined) {
    Level out;
    out.arranged = back_through_layout(x);
    out.shared = shared(out.arranged);
    if (out.shared) return out;
    // The normalisation of a projection, and the layout within (GroupNormalization is written as
    // an InstanceNormalization between two Reshape).
    bool normalized = false;
    for (x = out.arranged; !shared(x);) {
      const int n = flow_.producer(x);
      if (n < 0 || flow_.inputs(n).size() != 1) return out;
      const onnx::NodeProto& node = flow_.node(n);
      const int input = flow_.inputs(n)[0];
      if (projects(node)) {
        if (flow_.input_at(n, 0) != input) return out;
        out.projected = back_through_layout(input);
        out.certain = is_feature(out.projected) &&
                      (normalized || is_pointwise(node) || (joined && shared(out.projected)));
        return out;
      }
      if (!arranges(node) && !scales(node)) return out;
      normalized |= is_normalization(node) || node.op_type() == "BatchNormalization";
      x = input;
    }
    return out;
  }

  int back_through_layout(int x) const {
    while (!shared(x)) {
      const int n = flow_.producer(x);
      if (n < 0 || flow_.inputs(n).size() != 1 || !arranges(flow_.node(n))) break;
      const int input = flow_.inputs(n)[0];
      if (flow_.is_source(input)) break;
      x = input;
    }
    return x;
  }

  // What an activation or a sum of two made, or is read elsewhere: not the middle of a chain of
  // linear layers.
  bool is_feature(int x) const {
    const int n = flow_.producer(x);
    if (n < 0) return false;
    return shared(x) || !(projects(flow_.node(n)) || scales(flow_.node(n))) ||
           flow_.inputs(n).size() > 1;
  }

  static bool is_pointwise(const onnx::NodeProto& node) {
    const auto kernel = attribute_ints(node, "kernel_shape");
    return std::all_of(kernel.begin(), kernel.end(), [](auto size) { return size == 1; });
  }

  const DataFlow& flow_;
  const TensorSet& before_;
};

}  // namespace

TensorIds features_of(const DataFlow& flow, const TensorIds& tensors, const TensorSet& before) {
  std::vector<Level> levels;
  Walk walk(flow, before);
  for (const int tensor : tensors)
    for (const Level& level : walk.levels(tensor)) levels.push_back(level);
  // A decoder that takes one level as it is takes all of them so: the convolution before another
  // one is then the encoder's.
  const bool bare =
      std::any_of(levels.begin(), levels.end(), [](const Level& level) { return level.shared; });
  TensorIds out;
  for (const Level& level : levels) {
    // A projection with another kernel than 1 makes one more, coarser level of the last feature.
    const bool known = std::any_of(levels.begin(), levels.end(), [&](const Level& other) {
      return &other != &level && other.certain && other.projected == level.projected;
    });
    const bool deep = !bare && level.projected >= 0 && (level.certain || known);
    const int id = deep ? level.projected : level.arranged;
    if (std::find(out.begin(), out.end(), id) == out.end()) out.push_back(id);
  }
  return out;
}

}  // namespace tenonnx
