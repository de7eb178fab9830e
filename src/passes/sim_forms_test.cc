// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/sim_forms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "device/read.h"

namespace tenonnx {
namespace {

// The bits of float16 as HTP's vector unit reads them: the last exponent is one like the others.
double extended(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, significand = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(significand, -24) : std::ldexp(1024 + significand, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Rounded to nearest, as the operator's result is stored.
double stored(double x) {
  const double unit = half_unit(x);
  return std::copysign(std::min(std::nearbyint(std::abs(x) / unit) * unit, 131008.0), x);
}

double steps(double device, double simulated) {
  const double unit = half_unit(std::max(std::abs(device), std::abs(simulated)));
  return std::abs(device - simulated) / unit;
}

struct Pair {
  std::uint16_t x, y;
};

// Values of x that no constant was fitted to, at random over the exponents, with what the emulator
// computed (onnxruntime-qnn 2.7.0, QNN 2.51, soc 43, arch 73, 2026-11-30).
constexpr Pair kSigmoid[] = {
    {0x1d52, 0x3803}, {0xb5ce, 0x3692}, {0xacbc, 0x37b4}, {0x27c4, 0x380f}, {0xa6ba, 0x37e6},
    {0xbdcf, 0x3214}, {0x442d, 0x3be1}, {0x9d3f, 0x37fa}, {0x3689, 0x38ce}, {0x23fd, 0x3807},
    {0x4760, 0x3bfe}, {0xc4c8, 0x2040}, {0xb598, 0x369e}, {0xbc1a, 0x343a}, {0xaf5c, 0x378a},
    {0x4006, 0x3b0e}, {0x2bf5, 0x381f}, {0xa5cd, 0x37ea}, {0xa29f, 0x37f2}, {0x201e, 0x3805},
    {0x300f, 0x3841}, {0xaac6, 0x37ca}, {0xb731, 0x363c}, {0x949c, 0x37fe}, {0x2be8, 0x381f},
    {0x2765, 0x380f}, {0x9e31, 0x37fa}, {0xb3ab, 0x370c}, {0x2b0e, 0x381d}, {0xa40f, 0x37ee},
    {0x1f0c, 0x3803}, {0xc24d, 0x2950}, {0x3e31, 0x3a99}, {0x3446, 0x3887}, {0x2626, 0x380d},
    {0x4621, 0x3bfb}, {0xb1bd, 0x374a}, {0x2ae4, 0x381b}, {0xc3ff, 0x24a0}, {0xa4d9, 0x37ec}};
constexpr Pair kGelu[] = {
    {0x30f6, 0x2d92}, {0x5941, 0x5942}, {0xc62d, 0x8002}, {0x9d68, 0x9961}, {0x9528, 0x9127},
    {0xd245, 0x800d}, {0x46a6, 0x46a8}, {0x51f3, 0x51f4}, {0xce18, 0x8006}, {0x701e, 0x701f},
    {0x72cb, 0x72cd}, {0x2775, 0x23a0}, {0x7532, 0x7533}, {0x653c, 0x653d}, {0xd5d7, 0x8017},
    {0x5838, 0x5839}, {0x4c6b, 0x4c6c}, {0x72a8, 0x72aa}, {0xac2d, 0xa7eb}, {0x51bc, 0x51bd},
    {0x6835, 0x6836}, {0xa1b9, 0x9dac}, {0xd3aa, 0x800f}, {0xbd70, 0xaf90}, {0x6319, 0x631b},
    {0x9ae3, 0x96de}, {0xd28f, 0x800d}, {0xec88, 0x8488}, {0xd4d3, 0x8013}, {0xb50e, 0xaf9a},
    {0x57e2, 0x57e4}, {0xb6d4, 0xb093}, {0x58f5, 0x58f6}, {0xa11a, 0x9d0f}, {0x30d2, 0x2d66},
    {0x975c, 0x935a}, {0x1c9a, 0x189d}, {0xcd2a, 0x8005}, {0xac0f, 0xa7b7}, {0x492a, 0x492b}};
constexpr Pair kReciprocal[] = {
    {0x3b8a, 0x3c3e}, {0x2ac1, 0x4cbc}, {0x8e6d, 0xe8fa}, {0x5c20, 0x1bc2}, {0x206e, 0x5739},
    {0x0031, 0x7bff}, {0xf634, 0x8000}, {0x8024, 0xfbff}, {0x014e, 0x7a21}, {0x2eb6, 0x48c4},
    {0x89b3, 0xed9d}, {0x1c31, 0x5ba2}, {0xbd3e, 0xba1a}, {0xf525, 0x8000}, {0xf208, 0x854e},
    {0x8069, 0xfbff}, {0xe627, 0x9133}, {0x0438, 0x7395}, {0x605a, 0x175a}, {0x9667, 0xe0ff},
    {0xd2d2, 0xa4b1}, {0xd2fc, 0xa494}, {0x65be, 0x1192}, {0x786b, 0x0000}, {0x93a1, 0xe431},
    {0xc5ea, 0xb169}, {0x55ce, 0x2183}, {0x0079, 0x7bff}, {0x4afd, 0x2c94}, {0x19fb, 0x5d59},
    {0x839b, 0xf470}, {0xbab0, 0xbcc9}, {0x2e16, 0x4942}, {0x3ea3, 0x38d2}, {0xc825, 0xafb8},
    {0xb395, 0xc438}, {0xed91, 0x89bf}, {0x056c, 0x71e7}, {0x954f, 0xe207}, {0x9f13, 0xd886}};
constexpr Pair kSoftmax[2][12] = {{{0x3600, 0x2a7f},
                                   {0x4181, 0x3860},
                                   {0x3f8a, 0x335d},
                                   {0xc077, 0x1ba2},
                                   {0xbc63, 0x21f8},
                                   {0xc19c, 0x1851},
                                   {0xc1dc, 0x179d},
                                   {0xbeca, 0x1e8b},
                                   {0xc1ec, 0x1762},
                                   {0xbe2b, 0x1fa6},
                                   {0x3d64, 0x304b},
                                   {0xc0bc, 0x1aaf}},
                                  {{0x3088, 0x0550},
                                   {0xbc15, 0x01ac},
                                   {0x4206, 0x15e3},
                                   {0xc376, 0x001d},
                                   {0x46d1, 0x2c19},
                                   {0x3e50, 0x0d98},
                                   {0xbc5b, 0x018c},
                                   {0x464b, 0x28e5},
                                   {0x47ff, 0x32ab},
                                   {0x47ec, 0x3237},
                                   {0xc6b1, 0x0001},
                                   {0x486d, 0x37e0}}};
struct Quotient {
  std::uint16_t a, b, y;
};
constexpr Quotient kDiv[] = {
    {0x443a, 0x42e5, 0x3ce7}, {0x6124, 0x6de0, 0x2f00}, {0x3826, 0x6abd, 0x08ec},
    {0x309f, 0x1e05, 0x4e23}, {0x70ea, 0x35d7, 0x76ba}, {0x3970, 0x448d, 0x30c7},
    {0x5de0, 0x131c, 0x7fff}, {0x411f, 0x1193, 0x6b59}, {0x14c5, 0x68e9, 0x0008},
    {0x1665, 0x674f, 0x000e}, {0x42a8, 0x3437, 0x4a51}, {0x5968, 0x594a, 0x3c16},
    {0x5d6c, 0x43c8, 0x5592}, {0x2e82, 0x5e04, 0x0c53}, {0x08dd, 0x2c51, 0x1881},
    {0x454c, 0x3e78, 0x428c}, {0x1d9a, 0x6ee0, 0x000d}, {0x2cc4, 0x65fa, 0x0330},
    {0x4922, 0x2bc7, 0x5947}, {0x3500, 0x6d7f, 0x03a3}, {0x3cca, 0x35bd, 0x42ac},
    {0x0d8c, 0x5685, 0x0036}, {0x1cea, 0x59d7, 0x01af}, {0x68f3, 0x3616, 0x6e81}};

// `within` of all are at most a step away, `equal` are the same.
template <typename Function>
void expect_close(const Pair* pairs, std::size_t count, std::size_t within, std::size_t equal,
                  const Function& function) {
  std::size_t near = 0, same = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double device = extended(pairs[i].y);
    const double simulated = stored(function(extended(pairs[i].x)));
    near += steps(device, simulated) <= 1 ? 1 : 0;
    same += device == simulated ? 1 : 0;
  }
  EXPECT_GE(near, within);
  EXPECT_GE(same, equal);
}

// The shares over all inputs are 99 % within a step and 98 % equal (sigmoid), 99 % and 98 % (GELU),
// 100 % and 97 % (reciprocal): of 40 one may be off.
TEST(SimForms, SigmoidIsTheDevices) {
  expect_close(kSigmoid, std::size(kSigmoid), 39, 38, sigmoid_by_tanh);
  EXPECT_EQ(sigmoid_by_tanh(0), 0.50048828125) << "0.5 is a multiple of four units";
  EXPECT_EQ(sigmoid_by_tanh(20), 1);
  EXPECT_EQ(sigmoid_by_tanh(-20), 0);
}

TEST(SimForms, GeluIsTheDevices) { expect_close(kGelu, std::size(kGelu), 39, 37, gelu_by_tanh); }

TEST(SimForms, ReciprocalIsTheDevices) {
  expect_close(kReciprocal, std::size(kReciprocal), 40, 37, reciprocal_down);
  EXPECT_EQ(reciprocal_down(0), 65504);
  EXPECT_EQ(reciprocal_down(-40000), 0) << "a subnormal result is zero";
}

TEST(SimForms, QuotientsAreProductsWithTheReciprocal) {
  int near = 0, same = 0, exact_same = 0;
  for (const Quotient& q : kDiv) {
    const double a = extended(q.a), b = extended(q.b), device = extended(q.y);
    near += steps(device, stored(by_reciprocal(a, b))) <= 1 ? 1 : 0;
    same += stored(by_reciprocal(a, b)) == device ? 1 : 0;
    exact_same += stored(a / b) == device ? 1 : 0;
  }
  EXPECT_EQ(near, 24);
  EXPECT_GE(same, 21);
  EXPECT_LT(exact_same, 18) << "the exact quotient would do as well";
}

TEST(SimForms, SoftmaxIsTheDevices) {
  const auto device = find_device("htp-v73");
  ASSERT_TRUE(device.ok()) << device.status().message();
  const auto& own = device->arithmetic->operators.at("Softmax");
  int near = 0, exact_near = 0;
  for (const auto& row : kSoftmax) {
    std::vector<float> x, y(24);
    for (const Pair& pair : row) {  // two rows beside each other: a stride of 2
      x.push_back(static_cast<float>(extended(pair.x)));
      x.push_back(0);
    }
    softmax_steps(x.data(), y.data(), 12, 2, own.reciprocal_error);
    double sum = 0;
    for (std::size_t i = 0; i < 12; ++i) sum += std::exp(double{x[2 * i]});
    for (std::size_t i = 0; i < 12; ++i) {
      near += steps(extended(row[i].y), stored(double{y[2 * i]})) <= 1 ? 1 : 0;
      exact_near += steps(extended(row[i].y), stored(std::exp(double{x[2 * i]}) / sum)) <= 1;
    }
  }
  EXPECT_EQ(near, 24);
  EXPECT_LT(exact_near, 16) << "the exact softmax would do as well";
}

// Distances to the maximum as exp shows them, in units of the larger operand.
TEST(SimForms, SumsInTheInternalFormat) {
  const auto distance = [](double max, double x, double unit) {
    return internal_sum(max, -x) / unit;
  };
  // Signs alike: 12 and 4 + k / 256, unit 2^-7.
  EXPECT_EQ(distance(12, 4, 0x1p-7), 1023);  // 1024 is a multiple of 4
  EXPECT_EQ(distance(12, 4 + 0x1p-7, 0x1p-7), 1023);
  EXPECT_EQ(distance(12, 4 + 3 * 0x1p-8, 0x1p-7), 1023);  // 1022.5
  EXPECT_EQ(distance(12, 4 + 0x1p-6, 0x1p-7), 1022);
  EXPECT_EQ(distance(12, 4 + 0x1p-5, 0x1p-7), 1019);
  // Signs differ, a larger exponent: 3 and -5 - k / 256, where the result has the unit 2^-7.
  EXPECT_EQ(distance(3, -5, 0x1p-7), 1025);
  EXPECT_EQ(distance(10, -1, 0x1p-7), 1409);  // the same exponent
  EXPECT_EQ(distance(10, -1 + 3 * 0x1p-9, 0x1p-7), 1407);
}

TEST(SimForms, NamesAreThoseOfDeviceFiles) {
  Form form = Form::kReciprocalDown;
  EXPECT_TRUE(form_of("softmax_steps", form));
  EXPECT_EQ(form, Form::kSoftmaxSteps);
  EXPECT_FALSE(form_of("softmax", form));
}

}  // namespace
}  // namespace tenonnx
