// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/sim_forms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace tenonnx {
namespace {

constexpr double kSmallestNormal = 0x1p-14;
constexpr double kLargest = 65504;

double rounded(double x) {
  const double unit = half_unit(x);
  return std::nearbyint(x / unit) * unit;
}

// The nearest number of the internal format, of a magnitude in units of the last place.
enum class Ties {
  kDown,  // 0, 1, 1.5 -> 1; 2, 2.5 -> 2; 3 -> 3
  kUp,    // its mirror image: 1 -> 1; 1.5, 2 -> 2; 2.5, 3, 4 -> 3
};
double of_four(double n, Ties ties) {
  const double base = 4 * std::floor(n / 4), f = n - base;
  if (ties == Ties::kDown) return base + (f <= 1.5 ? 1 : f <= 2.5 ? 2 : 3);
  return base + (f == 0 ? -1 : f < 1.5 ? 1 : f < 2.5 ? 2 : 3);
}
double odd(double n) {
  const double base = 4 * std::floor(n / 4);
  return base + (n - base <= 2 ? 1 : 3);
}

// tanh of x >= 0 as the forms below have it inside: float16, and below 0.25 a number of the
// internal format. Within a step everywhere, equal for 98 % of inputs.
double inner_tanh(double x) {
  const double exact = std::tanh(x);
  if (x >= 0.25 || x == 0) return rounded(exact);
  const double unit = half_unit(x);
  return std::max(0.0, of_four(exact / unit, Ties::kUp) * unit);
}

// A significand that is a multiple of 4 is one larger in the internal format.
double internal(double magnitude) {
  const double unit = half_unit(magnitude), n = std::nearbyint(magnitude / unit);
  return n != 0 && std::fmod(n, 4) == 0 ? (n + 1) * unit : magnitude;
}

constexpr double kHalfUnit = 0x1p-11;  // of float16 from 0.5 to 1

// 0.5 + t / 2 for t >= 0 and 0.5 - t / 2, below 1.
double half_plus(double t) { return of_four((0.5 + t / 2) / kHalfUnit, Ties::kDown) * kHalfUnit; }
double half_minus(double t) { return of_four((0.5 - t / 2) / kHalfUnit, Ties::kDown) * kHalfUnit; }

// max - x as the argument of exp.
double distance(double x, double max) {
  const double t = max - x;
  if (t == 0) return 0;
  return std::abs(internal_sum(x, -max));
}

}  // namespace

double half_unit(double x) {
  const double magnitude = std::abs(x);
  if (!(magnitude >= kSmallestNormal)) return 0x1p-24;
  return std::ldexp(1.0, std::ilogb(magnitude) - 10);
}

double internal_sum(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double of_operands = std::max(half_unit(a), half_unit(b));
  const double unit = std::max(of_operands, half_unit(sum));
  const double n = std::abs(sum) / unit;
  if (unit > of_operands) return std::copysign(odd(n) * unit, sum);
  const bool cancel = (a > 0 && b < 0) || (a < 0 && b > 0);
  return std::copysign(of_four(n, cancel ? Ties::kUp : Ties::kDown) * unit, sum);
}

bool form_of(std::string_view name, Form& form) {
  static constexpr std::array<std::pair<std::string_view, Form>, 7> kNames = {{
      {"reciprocal_down", Form::kReciprocalDown},
      {"reciprocal_nearest", Form::kReciprocalNearest},
      {"by_reciprocal", Form::kByReciprocal},
      {"softmax_steps", Form::kSoftmaxSteps},
      {"sigmoid_by_tanh", Form::kSigmoidByTanh},
      {"gelu_by_tanh", Form::kGeluByTanh},
      {"grid_fractions", Form::kGridFractions},
  }};
  for (const auto& [known, value] : kNames)
    if (known == name) {
      form = value;
      return true;
    }
  return false;
}

double reciprocal_down(double x) {
  if (std::isnan(x)) return x;
  const double exact = 1 / std::abs(x);
  if (!(exact < kLargest)) return std::copysign(kLargest, x);
  // The device's approximation is 0.03 to 0.16 of a step above 1/x, over all 1,024 significands;
  // then it drops the rest.
  constexpr double kAbove = 0.09;
  const double unit = half_unit(exact);
  const double down = std::floor(exact / unit + kAbove) * unit;
  return std::copysign(down < kSmallestNormal ? 0 : std::min(down, kLargest), x);
}

double reciprocal_nearest(double x) {
  return std::isnan(x) ? x : std::copysign(std::min(rounded(1 / std::abs(x)), kLargest), x);
}

double by_reciprocal(double a, double b) { return a * reciprocal_down(b); }

double sigmoid_by_tanh(double x) {
  const double t = inner_tanh(internal(std::abs(x)) / 2);
  if (t >= 1) return std::signbit(x) ? 0 : 1;
  return std::signbit(x) ? half_minus(t) : half_plus(t);
}

double gelu_by_tanh(double x) {
  const double magnitude = std::abs(x);
  // sqrt(2/pi), rounded once with the polynomial.
  const double argument =
      rounded(0.79788456080286536 * (magnitude + 0.044715 * magnitude * magnitude * magnitude));
  const double t = inner_tanh(argument);
  // 1 is a multiple of 4 units, the next number is taken; of 0 the format has no more than its last
  // place, 2^-26.
  if (t >= 1) return x * (std::signbit(x) ? 0x1p-26 : 1 + 0x1p-10);
  return x * (std::signbit(x) ? half_minus(t) : half_plus(t));
}

double grid_fraction(double x, double scale, double offset) {
  const double place = x * scale + offset;
  if (!std::isfinite(place)) return x;
  const double pixel = std::floor(place);
  return (pixel + rounded(place - pixel) - offset) / scale;
}

void softmax_steps(const float* x, float* y, std::int64_t count, std::int64_t stride,
                   std::span<const double> reciprocal_error) {
  double max = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < count; ++i) max = std::max(max, double{x[i * stride]});
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double e = std::exp(-distance(x[i * stride], max));
    y[i * stride] = static_cast<float>(e);
    sum += e;
  }
  int exponent = 0;
  const double significand = 2 * std::frexp(sum, &exponent);
  double error = 0;
  for (std::size_t i = reciprocal_error.size(); i-- > 0;)
    error = error * (significand - 1.5) + reciprocal_error[i];
  const double reciprocal = (1 + error) / sum;
  for (std::int64_t i = 0; i < count; ++i)
    y[i * stride] = static_cast<float>(y[i * stride] * reciprocal);
}

}  // namespace tenonnx
