// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Multi-scale deformable attention as exporters write it, in the forms that they write, with random
// names: for the tests of replace_ms_deform_attn.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/tensor_proto.h"
#include "passes/constants.h"
#include "passes/edit.h"
#include "passes/test_support.h"

namespace tenonnx {

struct AttentionForm {
  struct Level {
    std::int64_t height, width, points;
  };
  enum class Value {
    kSequence,      // [B,S,C], cut along S, then transposed (RT-DETR)
    kTransposed,    // [B,S,C] transposed to [B,M,D,S] first, then cut (D-FINE)
    kChannelFirst,  // [B,C,S]; the graph has its transpose too (DEIM after simplification)
    kImages,        // [B,C,H,W] of each level
  };
  enum class Sum { kMul, kMatMul };
  std::int64_t batch = 1, queries = 5, heads = 2, channels = 3;
  std::vector<Level> levels = {{4, 6, 3}, {3, 2, 3}};
  Value value = Value::kSequence;
  Sum sum = Sum::kMul;
  bool stacked = false;       // Unsqueeze, Concat, Reshape; else Concat of the last axis
  bool levels_apart = true;   // locations [B,Q,M,L,P,2], one Gather a level; else Split
  bool grid_given = false;    // the grid is an input, not 2 x - 1 of one
  bool samples_used = false;  // the samples are an output too
  std::string mode = "bilinear", padding = "zeros";
  std::int64_t align_corners = 0;
  Shape weights_shape;  // of the input; empty: one weight for each point
  int opset = 17;
  DType dtype = DType::kFloat32;
  unsigned seed = 1;  // of the names

  std::int64_t pixels() const {
    std::int64_t n = 0;
    for (const Level& l : levels) n += l.height * l.width;
    return n;
  }
  std::int64_t points() const {
    std::int64_t n = 0;
    for (const Level& l : levels) n += l.points;
    return n;
  }
};

class AttentionGraph {
 public:
  explicit AttentionGraph(AttentionForm form) : f_(std::move(form)), random_(f_.seed) { build(); }

  Model model() const {
    auto model = Model::from_proto(proto_);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? std::move(model).value() : Model();
  }
  // Values in -1..1, weights in 0..1; locations inside, on borders and corners, at half pixels and
  // outside by less and by more than a pixel.
  TensorMap inputs() const {
    TensorMap inputs;
    std::mt19937 random(f_.seed + 1);
    std::uniform_real_distribution<float> any(-0.4F, 1.4F);
    const std::vector<float> special = {0, 1, 0.5F, 0.125F, -0.01F, 1.02F, -7, 30};
    for (const auto& info : proto_.graph().input()) {
      Shape shape;
      for (const auto& dim : info.type().tensor_type().shape().dim())
        shape.push_back(dim.dim_value());
      Tensor tensor = ramp(shape);
      float* data = tensor.mutable_data<float>();
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        if (info.name() == weights_) data[i] = (data[i] + 1) / 4;
        if (info.name() != locations_) continue;
        data[i] = random() % 3 == 0 ? special[random() % special.size()] : any(random);
        if (f_.grid_given) data[i] = 2 * data[i] - 1;
      }
      inputs.emplace(info.name(), std::move(tensor));
    }
    return inputs;
  }
  const std::vector<std::string>& grid_samples() const { return grid_samples_; }

 private:
  using Names = std::vector<std::string>;

  std::string name() {
    std::string s = "t";
    for (int i = 0; i < 8; ++i) s += static_cast<char>('a' + random_() % 26);
    return s;
  }
  onnx::NodeProto& add(const char* type, const Names& in, const Names& out) {
    onnx::NodeProto& node = *proto_.mutable_graph()->add_node();
    node = make_node(type, in, out);
    node.set_name(name());
    return node;
  }
  std::string constant(const Tensor& value) {
    const std::string n = name();
    *proto_.mutable_graph()->add_initializer() = to_tensor_proto(value, n);
    return n;
  }
  std::string ints(const std::vector<std::int64_t>& v) { return constant(int64_vector(v)); }
  std::string op(const char* type, const Names& in) {
    const std::string y = name();
    add(type, in, {y});
    return y;
  }
  std::string reshape(const std::string& x, const Shape& s) { return op("Reshape", {x, ints(s)}); }
  std::string transpose(const std::string& x, const std::vector<std::int64_t>& perm) {
    const std::string y = name();
    set_attribute(add("Transpose", {x}, {y}), "perm", perm);
    return y;
  }
  std::string concat(const Names& x, std::int64_t axis) {
    const std::string y = name();
    set_attribute(add("Concat", x, {y}), "axis", axis);
    return y;
  }
  std::string slice(const std::string& x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
    return op("Slice", {x, ints({begin}), ints({end}), ints({axis})});
  }
  std::string scalar(double v) { return constant(from_doubles(f_.dtype, {}, {v})); }
  std::string input(const Shape& shape) {
    const std::string n = name();
    declare(*proto_.mutable_graph()->add_input(), n, shape);
    return n;
  }
  void output(const std::string& n, const Shape& shape) {
    declare(*proto_.mutable_graph()->add_output(), n, shape);
  }
  void declare(onnx::ValueInfoProto& info, const std::string& n, const Shape& shape) const {
    info.set_name(n);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(to_onnx_type(f_.dtype));
    for (const std::int64_t d : shape) type.mutable_shape()->add_dim()->set_dim_value(d);
  }

  // [N, D, H, W] of each level.
  Names values() {
    const std::int64_t n = f_.batch * f_.heads, d = f_.channels, c = f_.heads * d;
    Names levels;
    std::string v;
    if (f_.value == AttentionForm::Value::kSequence ||
        f_.value == AttentionForm::Value::kTransposed)
      v = input({f_.batch, f_.pixels(), c});
    if (f_.value == AttentionForm::Value::kChannelFirst) {
      v = input({f_.batch, c, f_.pixels()});
      output(op("Neg", {transpose(v, {0, 2, 1})}), {f_.batch, f_.pixels(), c});
    }
    if (f_.value == AttentionForm::Value::kTransposed)
      v = transpose(reshape(v, {f_.batch, f_.pixels(), f_.heads, d}), {0, 2, 3, 1});
    std::int64_t at = 0;
    for (const auto& l : f_.levels) {
      const std::int64_t hw = l.height * l.width;
      std::string x;
      switch (f_.value) {
        case AttentionForm::Value::kSequence:
          x = transpose(slice(v, 1, at, at + hw), {0, 2, 1});
          break;
        case AttentionForm::Value::kTransposed:
          x = slice(v, 3, at, at + hw);
          break;
        case AttentionForm::Value::kChannelFirst:
          x = slice(v, -1, at, at + hw);
          break;
        case AttentionForm::Value::kImages:
          x = input({f_.batch, c, l.height, l.width});
          break;
      }
      levels.push_back(reshape(x, {n, d, l.height, l.width}));
      at += hw;
    }
    return levels;
  }

  // [N, Q, P, 2] of each level.
  Names grids() {
    const std::int64_t b = f_.batch, q = f_.queries, m = f_.heads;
    const auto l = static_cast<std::int64_t>(f_.levels.size()), p = f_.levels.front().points;
    locations_ = f_.levels_apart ? input({b, q, m, l, p, 2}) : input({b, q, m, f_.points(), 2});
    std::string g = locations_;
    if (!f_.grid_given) g = op("Sub", {op("Mul", {scalar(2), g}), scalar(1)});
    Names levels;
    if (f_.levels_apart) {
      for (std::int64_t i = 0; i < l; ++i) {
        const std::string x = name();
        set_attribute(
            add("Gather", {g, constant(Tensor::from<std::int64_t>(DType::kInt64, {}, {i}))}, {x}),
            "axis", std::int64_t{3});
        levels.push_back(reshape(transpose(x, {0, 2, 1, 3, 4}), {b * m, q, p, 2}));
      }
      return levels;
    }
    g = reshape(transpose(g, {0, 2, 1, 3, 4}), {b * m, q, f_.points(), 2});
    std::vector<std::int64_t> sizes;
    for (const auto& level : f_.levels) {
      sizes.push_back(level.points);
      levels.push_back(name());
    }
    set_attribute(add("Split", {g, ints(sizes)}, levels), "axis", std::int64_t{-2});
    return levels;
  }

  std::string samples() {
    const Names v = values(), g = grids();
    Names s;
    for (std::size_t l = 0; l < v.size(); ++l) {
      const std::string y = name();
      onnx::NodeProto& node = add("GridSample", {v[l], g[l]}, {y});
      set_attribute(node, "mode", std::string_view(f_.mode));
      set_attribute(node, "padding_mode", std::string_view(f_.padding));
      set_attribute(node, "align_corners", f_.align_corners);
      grid_samples_.push_back(node.name());
      s.push_back(f_.stacked ? op("Unsqueeze", {y, ints({-2})}) : y);
    }
    if (f_.samples_used)
      output(op("Neg", {s.front()}),
             {f_.batch * f_.heads, f_.channels, f_.queries, f_.levels.front().points});
    if (!f_.stacked) return s.size() == 1 ? s.front() : concat(s, -1);
    return reshape(concat(s, -2), {f_.batch * f_.heads, f_.channels, f_.queries, f_.points()});
  }

  void build() {
    proto_.set_ir_version(9);
    auto& opset = *proto_.add_opset_import();
    opset.set_version(f_.opset);
    proto_.mutable_graph()->set_name("attention");
    const std::int64_t b = f_.batch, q = f_.queries, m = f_.heads, n = b * m, d = f_.channels;
    const std::int64_t p = f_.points();
    const std::string s = samples();
    const bool plain = f_.weights_shape.empty();
    weights_ = input(plain ? Shape{b, q, m, p} : f_.weights_shape);
    std::string w = weights_;
    if (plain) w = reshape(transpose(w, {0, 2, 1, 3}), {n, 1, q, p});
    std::string y;
    if (f_.sum == AttentionForm::Sum::kMul) {
      y = name();
      set_attribute(add("ReduceSum", {op("Mul", {s, w}), ints({-1})}, {y}), "keepdims",
                    std::int64_t{0});
    } else {
      y = op("MatMul", {transpose(s, {0, 2, 1, 3}), transpose(w, {0, 2, 3, 1})});
      y = transpose(op("Squeeze", {y, ints({-1})}), {0, 2, 1});
    }
    y = transpose(reshape(y, {b, m * d, q}), {0, 2, 1});
    output(op("Tanh", {y}), {b, q, m * d});
  }

  const AttentionForm f_;
  std::mt19937 random_;
  onnx::ModelProto proto_;
  std::string locations_, weights_;
  std::vector<std::string> grid_samples_;
};

}  // namespace tenonnx
