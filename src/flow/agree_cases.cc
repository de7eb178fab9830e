// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The operators of the example detector and of the exports of DEIM, DEIMv2, D-FINE, RT-DETR and
// Deformable DETR after folding, each alone.
#include <fmt/format.h>

#include "flow/agree.h"

namespace tenonnx {
namespace {

using Values = AgreeCase::Values;

std::string graph(std::string_view inputs, std::string_view output, std::string_view body) {
  return fmt::format("<ir_version: 8, opset_import: [\"\" : 17]>\nagree ({}) => ({}) {{ {} }}",
                     inputs, output, body);
}

// What only moves values.
void add_moves(std::vector<AgreeCase>& out) {
  const std::string x = "float[1,8,16,16] x", y = "float[1,8,16,16] y";
  const auto add = [&](const char* type, const std::string& output, const std::string& body) {
    out.push_back({type, type, graph(x, output, body), Values::kSigned, true});
  };
  add("Identity", y, "y = Identity (x)");
  add("Reshape", "float[1,128,16] y",
      "s = Constant <value = int64[3] {1, 128, 16}> () y = Reshape (x, s)");
  add("Flatten", "float[8,256] y", "y = Flatten <axis = 2> (x)");
  add("Squeeze", "float[8,16,16] y", "a = Constant <value = int64[1] {0}> () y = Squeeze (x, a)");
  add("Unsqueeze", "float[1,1,8,16,16] y",
      "a = Constant <value = int64[1] {0}> () y = Unsqueeze (x, a)");
  add("Slice", "float[1,8,8,16] y",
      "b = Constant <value = int64[1] {1}> () e = Constant <value = int64[1] {16}> () "
      "a = Constant <value = int64[1] {2}> () t = Constant <value = int64[1] {2}> () "
      "y = Slice (x, b, e, a, t)");
  add("Split", "float[1,5,16,16] y",
      "s = Constant <value = int64[2] {3, 5}> () z, y = Split <axis = 1> (x, s)");
  add("Expand", "float[3,8,16,16] y",
      "s = Constant <value = int64[4] {3, 8, 16, 16}> () y = Expand (x, s)");
  add("Tile", "float[1,16,16,16] y",
      "r = Constant <value = int64[4] {1, 2, 1, 1}> () y = Tile (x, r)");
  add("Pad", "float[1,8,18,18] y",
      "p = Constant <value = int64[8] {0, 0, 1, 1, 0, 0, 1, 1}> () y = Pad (x, p)");
  add("GatherElements", "float[1,2,1,2] y",
      "i = Constant <value = int64[1,2,1,2] {1, 7, 0, 3}> () y = GatherElements <axis = 1> (x, i)");
  add("ScatterND", y,
      "i = Constant <value = int64[1,2] {0, 3}> () z = Constant <value = int64[3] {1, 16, 16}> () "
      "u = ConstantOfShape (z) y = ScatterND (x, i, u)");
}

// Comparisons as a mask, and operators that compute and stand in few exports.
void add_rest(std::vector<AgreeCase>& out) {
  const std::string x = "float[1,8,16,16] x", y = "float[1,8,16,16] y";
  const auto add = [&](const char* type, const std::string& inputs, const std::string& output,
                       const std::string& body) {
    out.push_back({type, type, graph(inputs, output, body), Values::kSigned, true});
  };
  const std::string two = x + ", float[1,8,16,16] b";
  for (const char* type : {"Greater", "Less", "Equal"})
    add(type, two, y, fmt::format("c = {} (x, b) y = Where (c, x, b)", type));
  add("Not", two, y, "d = Greater (x, b) c = Not (d) y = Where (c, x, b)");
  add("And", two, y,
      "z = Constant <value = float {0}> () d = Greater (x, b) e = Less (x, z) c = And (d, e) "
      "y = Where (c, x, b)");
  add("Where", two, y,
      "z = Constant <value = float {0}> () c = Greater (x, z) y = Where (c, b, z)");
  // A sum in between keeps a compiler from taking both away, as HTP's does of the second one.
  add("Cast", x, y,
      "o = Constant <value = int32 {1}> () i = Cast <to = 6> (x) j = Add (i, o) "
      "y = Cast <to = 1> (j)");
  out.back().name = "Cast to int32, a sum, and back";
  add("Cast", x, y, "i = Cast <to = 6> (x) y = Cast <to = 1> (i)");
  out.back().name = "Cast to int32 and back";
  add("Einsum", "float[1,4,32,64] x, float[1,4,64,32] b", "float[1,4,32,32] y",
      "y = Einsum <equation = \"bhik,bhkj->bhij\"> (x, b)");
  add("InstanceNormalization", x + ", float[8] w_scale, float[8] w_bias", y,
      "y = InstanceNormalization <epsilon = 0.00001> (x, w_scale, w_bias)");
  add("CumSum", x, y, "a = Constant <value = int64 {2}> () y = CumSum (x, a)");
  add("Erf", x, y, "y = Erf (x)");
}

std::vector<AgreeCase> make() {
  std::vector<AgreeCase> out;
  const auto add = [&](std::string type, std::string name, std::string text,
                       Values values = Values::kSigned, bool beyond = true) {
    out.push_back({std::move(type), std::move(name), std::move(text), values, beyond});
  };
  const std::string x = "float[1,8,16,16] x", y = "float[1,8,16,16] y";
  for (const char* type : {"Add", "Sub", "Mul"})
    add(type, type, graph(x + ", float[1,8,16,16] b", y, fmt::format("y = {} (x, b)", type)));
  for (const char* type : {"Max", "Min"})
    add(type, type, graph(x + ", float[1,8,16,16] b", y, fmt::format("y = {} (x, b)", type)));
  add("Div", "Div", graph(x + ", float[1,8,16,16] b", y, "y = Div (x, b)"), Values::kPositive);
  for (const char* type : {"Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Sin", "Cos", "HardSigmoid"})
    add(type, type, graph(x, y, fmt::format("y = {} (x)", type)));
  add("Exp", "Exp", graph(x, y, "y = Exp (x)"), Values::kSigned, false);
  for (const char* type : {"Sqrt", "Log", "Reciprocal"})
    add(type, type, graph(x, y, fmt::format("y = {} (x)", type)), Values::kPositive, false);
  add("Clip", "Clip to [0, 1]",
      graph(x, y,
            "lo = Constant <value = float {0}> () hi = Constant <value = float {1}> () "
            "y = Clip (x, lo, hi)"));
  add("Pow", "Pow, exponent 2",
      graph(x, y, "two = Constant <value = float {2}> () y = Pow (x, two)"));
  add("Softmax", "Softmax over 16", graph(x, y, "y = Softmax <axis = -1> (x)"));
  add("Softmax", "Softmax over 400",
      graph("float[1,8,4,400] x", "float[1,8,4,400] y", "y = Softmax <axis = -1> (x)"));
  add("LayerNormalization", "LayerNormalization over 64",
      graph("float[1,100,64] x, float[64] w_scale, float[64] w_bias", "float[1,100,64] y",
            "y = LayerNormalization <axis = -1, epsilon = 0.00001> (x, w_scale, w_bias)"));
  for (const char* type : {"ReduceMean", "ReduceMax"})
    add(type, std::string(type) + " over 256",
        graph("float[1,32,256] x", "float[1,32,1] y",
              fmt::format("y = {} <axes = [2], keepdims = 1> (x)", type)));
  add("ReduceSum", "ReduceSum over 256",
      graph("float[1,32,256] x", "float[1,32,1] y",
            "axes = Constant <value = int64[1] {2}> () y = ReduceSum <keepdims = 1> (x, axes)"));
  for (const int k : {16, 64, 256, 1024, 4096})
    add("MatMul", fmt::format("MatMul, K = {}", k),
        graph(fmt::format("float[1,16,{0}] x, float[{0},16] w", k), "float[1,16,16] y",
              "y = MatMul (x, w)"));
  add("MatMul", "MatMul of two activations, K = 64",
      graph("float[1,4,32,64] x, float[1,4,64,32] b", "float[1,4,32,32] y", "y = MatMul (x, b)"));
  add("Gemm", "Gemm, K = 64",
      graph("float[16,64] x, float[64,32] w, float[32] w_bias", "float[16,32] y",
            "y = Gemm (x, w, w_bias)"));
  add("Conv", "Conv 1x1, K = 64",
      graph("float[1,64,16,16] x, float[32,64,1,1] w, float[32] w_bias", "float[1,32,16,16] y",
            "y = Conv (x, w, w_bias)"));
  add("Conv", "Conv 3x3, K = 576",
      graph("float[1,64,16,16] x, float[32,64,3,3] w, float[32] w_bias", "float[1,32,16,16] y",
            "y = Conv <pads = [1,1,1,1]> (x, w, w_bias)"));
  add("Conv", "Conv 3x3, K = 4096 channels / 9",
      graph("float[1,456,4,4] x, float[8,456,3,3] w", "float[1,8,4,4] y",
            "y = Conv <pads = [1,1,1,1]> (x, w)"));
  add("Conv", "Conv 3x3, depthwise",
      graph("float[1,32,16,16] x, float[32,1,3,3] w", "float[1,32,16,16] y",
            "y = Conv <pads = [1,1,1,1], group = 32> (x, w)"));
  add("MaxPool", "MaxPool 3x3",
      graph(x, y, "y = MaxPool <kernel_shape = [3,3], pads = [1,1,1,1]> (x)"));
  add("AveragePool", "AveragePool 2x2",
      graph(x, "float[1,8,8,8] y", "y = AveragePool <kernel_shape = [2,2], strides = [2,2]> (x)"));
  for (const char* mode : {"nearest", "linear"})
    add("Resize", fmt::format("Resize x2, {}", mode),
        graph(x, "float[1,8,32,32] y",
              fmt::format(
                  "s = Constant <value = float[4] {{1, 1, 2, 2}}> () y = Resize <mode = "
                  "\"{}\", coordinate_transformation_mode = \"{}\", nearest_mode = \"floor\"> "
                  "(x, , s)",
                  mode, std::string_view(mode) == "nearest" ? "asymmetric" : "half_pixel")));
  for (const char* mode : {"bilinear", "nearest"})
    for (const int size : {16, 80})
      add("GridSample", fmt::format("GridSample {}, {}x{}", mode, size, size),
          graph(fmt::format("float[1,8,{0},{0}] x, float[1,20,20,2] grid", size),
                "float[1,8,20,20] y",
                fmt::format(
                    "y = GridSample <mode = \"{}\", padding_mode = \"zeros\", align_corners = "
                    "0> (x, grid)",
                    mode)),
          Values::kUnit, false);
  add("Gelu", "GELU by Erf",
      graph(x, y,
            "r = Constant <value = float {1.4142135}> () one = Constant <value = float {1}> () "
            "half = "
            "Constant <value = float {0.5}> () d = Div (x, r) e = Erf (d) a = Add (e, one) m = Mul "
            "(x, a) "
            "y = Mul (m, half)"));
  add("Transpose", "Transpose",
      graph(x, "float[1,16,16,8] y", "y = Transpose <perm = [0,2,3,1]> (x)"));
  add("Concat", "Concat",
      graph(x + ", float[1,8,16,16] b", "float[1,16,16,16] y", "y = Concat <axis = 1> (x, b)"));
  add("Gather", "Gather, constant indices",
      graph(x, "float[1,3,16,16] y",
            "i = Constant <value = int64[3] {0, 5, 7}> () y = Gather <axis = 1> (x, i)"));
  add("TopK", "TopK, 10 of 400",
      graph("float[1,400] x", "float[1,10] y",
            "k = Constant <value = int64[1] {10}> () y, i = TopK (x, k)"));
  add_moves(out);
  add_rest(out);
  return out;
}

}  // namespace

const std::vector<AgreeCase>& agree_cases() {
  static const std::vector<AgreeCase> cases = make();
  return cases;
}

}  // namespace tenonnx
