// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A bilinear GridSample with zero padding written out by hand with Floor and Gather, right and with
// one fault each, as text for the onnx parser: what a rewrite can get wrong.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace tenonnx {

enum class GatherFault {
  kNone,
  kSwappedAxes,  // (y, x) for (x, y)
  kHalfPixelShift,
  kAlignCorners,   // the formula of the other align_corners
  kClampPoint,     // the point moves into the image, as padding "border" has it
  kReplicateEdge,  // each neighbour moves into the image and keeps its weight
  kNoHalfPixel,    // (g + 1) * 0.5 * W
  kSizesSwapped,   // H for W and W for H
  kRowStride,      // y * H + x
  kUnbounded       // neighbours outside are gathered at whatever index comes out
};

struct GatherForm {
  std::string prefix;            // of all tensors that it makes
  std::string value, x, y, out;  // value [1,C,H,W]; x, y: [1,Ho,Wo] of the grid; out [1,C,Ho,Wo]
  std::int64_t channels = 1, height = 1, width = 1, out_height = 1, out_width = 1;
  bool align_corners = false;
  bool nearest = false;
  GatherFault fault = GatherFault::kNone;
};

// Declarations for "<...>" and nodes for "{...}".
struct FormText {
  std::string constants, nodes;
};

inline FormText gather_form(const GatherForm& f) {
  const std::string p = f.prefix;
  const bool swap_sizes = f.fault == GatherFault::kSizesSwapped;
  const std::int64_t w = swap_sizes ? f.height : f.width, h = swap_sizes ? f.width : f.height;
  const bool swap_axes = f.fault == GatherFault::kSwappedAxes;
  FormText t;
  t.constants = fmt::format(
      "float {0}one = {{1}}, float {0}half = {{0.5}}, float {0}two = {{2}}, float {0}zero = {{0}}, "
      "float {0}w = {{{1}}}, float {0}h = {{{2}}}, float {0}wl = {{{3}}}, float {0}hl = {{{4}}}, "
      "float {0}stride = {{{5}}}, int64[3] {0}flat = {{1,{6},{7}}}, int64[1] {0}points = {{{8}}}, "
      "int64[4] {0}image = {{1,{6},{9},{10}}}",
      p, w, h, w - 1, h - 1, f.fault == GatherFault::kRowStride ? f.height : f.width, f.channels,
      f.height * f.width, f.out_height * f.out_width, f.out_height, f.out_width);
  const bool other = f.fault == GatherFault::kAlignCorners;
  const auto pixel = [&](const std::string& axis, const std::string& g, const std::string& n) {
    const std::string last = p + n + "l";
    t.nodes += fmt::format("{0}{1}a = Add ({2}, {0}one) ", p, axis, g);
    if (f.align_corners != other)
      t.nodes += fmt::format("{0}{1}b = Div ({0}{1}a, {0}two) {0}{1}p = Mul ({0}{1}b, {2}) ", p,
                             axis, last);
    else if (f.fault == GatherFault::kNoHalfPixel)
      t.nodes += fmt::format("{0}{1}b = Mul ({0}{1}a, {0}half) {0}{1}p = Mul ({0}{1}b, {0}{2}) ", p,
                             axis, n);
    else
      t.nodes += fmt::format(
          "{0}{1}b = Mul ({0}{1}a, {0}{2}) {0}{1}c = Sub ({0}{1}b, {0}one) "
          "{0}{1}p = Div ({0}{1}c, {0}two) ",
          p, axis, n);
    std::string at = p + axis + "p";
    if (f.fault == GatherFault::kHalfPixelShift) {
      t.nodes += fmt::format("{0}{1}s = Add ({2}, {0}half) ", p, axis, at);
      at = p + axis + "s";
    }
    if (f.fault == GatherFault::kClampPoint) {
      t.nodes += fmt::format("{0}{1}s = Clip ({2}, {0}zero, {3}) ", p, axis, at, last);
      at = p + axis + "s";
    }
    if (f.nearest) {
      t.nodes += fmt::format("{0}{1}0 = Round ({2}) {0}{1}k0 = Identity ({0}one) ", p, axis, at);
    } else {
      t.nodes += fmt::format(
          "{0}{1}0 = Floor ({2}) {0}{1}1 = Add ({0}{1}0, {0}one) "
          "{0}{1}k1 = Sub ({2}, {0}{1}0) {0}{1}k0 = Sub ({0}one, {0}{1}k1) ",
          p, axis, at);
    }
    for (int k = 0; k < (f.nearest ? 1 : 2); ++k) {
      // Inside: clipped it is what it was.
      t.nodes += fmt::format(
          "{0}{1}c{2} = Clip ({0}{1}{2}, {0}zero, {3}) "
          "{0}{1}e{2} = Equal ({0}{1}c{2}, {0}{1}{2}) {0}{1}m{2} = Cast <to = 1> ({0}{1}e{2}) ",
          p, axis, k, last);
    }
  };
  pixel("x", swap_axes ? f.y : f.x, "w");
  pixel("y", swap_axes ? f.x : f.y, "h");
  t.nodes += fmt::format("{0}v = Reshape ({1}, {0}flat) ", p, f.value);
  const bool bounded = f.fault != GatherFault::kUnbounded;
  const bool masked = f.fault != GatherFault::kReplicateEdge && f.fault != GatherFault::kClampPoint;
  std::string sum;
  for (int k = 0; k < (f.nearest ? 1 : 4); ++k) {
    const int i = k % 2, j = k / 2;
    t.nodes += fmt::format(
        "{0}r{1} = Mul ({0}y{2}{4}, {0}stride) {0}i{1} = Add ({0}r{1}, {0}x{2}{3}) "
        "{0}n{1} = Cast <to = 7> ({0}i{1}) {0}o{1} = Reshape ({0}n{1}, {0}points) "
        "{0}t{1} = Gather <axis = 2> ({0}v, {0}o{1}) {0}u{1} = Reshape ({0}t{1}, {0}image) "
        "{0}q{1} = Mul ({0}yk{4}, {0}xk{3}) ",
        p, k, bounded ? "c" : "", i, j);
    std::string weight = fmt::format("{}q{}", p, k);
    if (masked) {
      t.nodes += fmt::format("{0}d{1} = Mul ({0}xm{2}, {0}ym{3}) {0}z{1} = Mul ({0}q{1}, {0}d{1}) ",
                             p, k, i, j);
      weight = fmt::format("{}z{}", p, k);
    }
    t.nodes += fmt::format("{0}w{1} = Unsqueeze ({2}, {0}axis) {0}f{1} = Mul ({0}w{1}, {0}u{1}) ",
                           p, k, weight);
    const std::string term = fmt::format("{}f{}", p, k);
    if (k == 0) {
      sum = term;
    } else {
      t.nodes += fmt::format("{0}a{1} = Add ({2}, {3}) ", p, k, sum, term);
      sum = fmt::format("{}a{}", p, k);
    }
  }
  t.constants += fmt::format(", int64[1] {}axis = {{1}}", p);
  t.nodes += fmt::format("{} = Identity ({}) ", f.out, sum);
  return t;
}

}  // namespace tenonnx
