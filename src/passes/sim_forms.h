// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Functions as a device with a float16 vector unit computes them, where that differs from the exact
// result rounded once: OperatorArithmetic::form. Inputs are stored values; results are not rounded
// where the comment says so, which the caller does.
//
// Sums inside of such a function are made in the device's internal format. Its numbers between two
// multiples of 4 u are 1 u, 2 u and 3 u, where u is the unit in the last place (of float16) of the
// largest operand: a multiple of 4 u does not exist, its neighbours do. Where the result has a
// larger exponent than the operands, only the odd multiples of its own unit are numbers.
//
// Source: all 63,488 finite float16 inputs of each function, and Softmax of chosen rows, on
// onnxruntime-qnn 2.7.0 (QNN 2.51), HTP emulator on x86-64. sigmoid_by_tanh is exact in every one
// of them where tanh is; sim_forms_test.cc has pairs of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tenonnx {

enum class Form {
  kReciprocalDown,     // 1/x towards zero, at most 65504; a subnormal result is zero
  kReciprocalNearest,  // 1/x rounded to nearest: of a constant divisor
  kByReciprocal,       // a / b = a * (1/b as above); not rounded
  kSoftmaxSteps,       // exp(x - max) / sum; not rounded
  kSigmoidByTanh,      // 0.5 + 0.5 tanh(x / 2), the sum in the internal format
  kGridFractions,      // a sampling grid whose places have float16 fractions between two pixels
  kGeluByTanh,         // x (0.5 + 0.5 tanh(sqrt(2/pi) (x + 0.044715 x^3))); not rounded
};

// "softmax_steps"; false where no form has that name.
bool form_of(std::string_view name, Form& form);

double reciprocal_down(double x);
double reciprocal_nearest(double x);
double by_reciprocal(double a, double b);
double sigmoid_by_tanh(double x);
double gelu_by_tanh(double x);
// A coordinate of the grid of GridSample, in [-1, 1], at the place x * scale + offset in pixels:
// the place's distance to the pixel below it becomes a value of float16.
double grid_fraction(double x, double scale, double offset);

// One row: `count` values, `stride` apart. reciprocal_error: coefficients, from the constant on, of
// the polynomial in (significand - 1.5) by which the device's 1/sum is off, relatively; the
// significand is in [1, 2).
void softmax_steps(const float* x, float* y, std::int64_t count, std::int64_t stride,
                   std::span<const double> reciprocal_error);

// The unit in the last place of float16 at x, exponents beyond 15 included: 2^-24 below 2^-13.
double half_unit(double x);
// a + b in the internal format, for one whose magnitudes are added and one whose cancel.
double internal_sum(double a, double b);

}  // namespace tenonnx
