// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_inputs.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>

#include "base/half.h"
#include "base/parallel.h"
#include "base/status.h"
#include "metrics/elements.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

constexpr double kSmallScale = 0x1p-20;
constexpr double kWideScale = 16;

// 53 bits of the engine in [0,1); standard distributions differ between libraries.
double unit(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1p-53; }

// Near enough to a normal value, from one draw: the sum of four uniform values of 16 bits each,
// brought to mean 0 and deviation 1. No function of the C library, whose results differ.
double normal(std::mt19937_64& engine) {
  const std::uint64_t draw = engine();
  double sum = -2;
  for (int i = 0; i < 4; ++i)
    sum += (static_cast<double>((draw >> (16 * i)) & 0xFFFFu) + 0.5) * 0x1p-16;
  return sum * 1.7320508075688772;  // the deviation of the sum is sqrt(4 / 12)
}

struct Range {
  double low = 0, high = 0, mean = 0, deviation = 0;
  bool known = false;
};

Range range_of(const Tensor& tensor) {
  Range r;
  double sum = 0, squares = 0;
  std::int64_t count = 0;
  visit_elements(tensor, [&](const auto* p) {
    if constexpr (is_float_element<std::remove_cvref_t<decltype(*p)>>) {
      for (std::int64_t i = 0, n = tensor.size(); i < n; ++i) {
        const double v = to_double(p[i]);
        if (!std::isfinite(v)) continue;
        r.low = count == 0 ? v : std::min(r.low, v);
        r.high = count == 0 ? v : std::max(r.high, v);
        sum += v;
        squares += v * v;
        ++count;
      }
    }
  });
  r.known = count > 0;
  if (count > 0) {
    r.mean = sum / static_cast<double>(count);
    r.deviation = std::sqrt(std::max(0.0, squares / static_cast<double>(count) - r.mean * r.mean));
  }
  return r;
}

double made_value(MadeCase made, const Range& r, std::mt19937_64& engine) {
  switch (made) {
    case MadeCase::kNormal:
      return std::clamp(r.mean + r.deviation * normal(engine), r.low, r.high);
    case MadeCase::kEnds:
      return (engine() >> 63) != 0 ? r.high : r.low;
    case MadeCase::kSmall:
      return (r.low + (r.high - r.low) * unit(engine)) * kSmallScale;
    case MadeCase::kWide:
      return normal(engine) * kWideScale *
             std::max(1.0, std::max(std::fabs(r.low), std::fabs(r.high))) / 3;
    case MadeCase::kZeros:
      return std::clamp(0.0, r.low, r.high);
    case MadeCase::kNegativeZeros: {
      const double zero = std::clamp(0.0, r.low, r.high);
      return zero == 0 ? -0.0 : zero;
    }
  }
  return 0;
}

template <typename Element>
void store(Element* at, double value) {
  if constexpr (std::is_same_v<Element, float>) {
    *at = static_cast<float>(std::clamp(value,
                                        -static_cast<double>(std::numeric_limits<float>::max()),
                                        static_cast<double>(std::numeric_limits<float>::max())));
  } else if constexpr (std::is_same_v<Element, double>) {
    *at = value;
  } else if constexpr (std::is_same_v<Element, Float16Bits>) {
    at->bits = float_to_float16(static_cast<float>(std::clamp(value, -65504.0, 65504.0)));
  } else if constexpr (std::is_same_v<Element, BFloat16Bits>) {
    at->bits = float_to_bfloat16(static_cast<float>(std::clamp(value, -3e38, 3e38)));
  }
}

// The neighbours of a finite value; beyond the largest there is none.
template <typename Bits, typename Element>
void step(Element* at, int by, Bits exponent_mask) {
  Bits bits = std::bit_cast<Bits>(*at);
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  const Bits magnitude = static_cast<Bits>(bits & ~kSign);
  if (magnitude == 0 || (bits & exponent_mask) == exponent_mask) return;  // zero is exact
  const Bits next = static_cast<Bits>(magnitude + static_cast<Bits>(by));
  if ((next & exponent_mask) == exponent_mask) return;
  bits = static_cast<Bits>((bits & kSign) | next);
  *at = std::bit_cast<Element>(bits);
}

template <typename Element>
void disturb_element(Element* at, int by) {
  if constexpr (std::is_same_v<Element, float>)
    step<std::uint32_t>(at, by, std::uint32_t{0x7F800000});
  else if constexpr (std::is_same_v<Element, double>)
    step<std::uint64_t>(at, by, std::uint64_t{0x7FF0000000000000});
  else if constexpr (std::is_same_v<Element, Float16Bits>)
    step<std::uint16_t>(at, by, std::uint16_t{0x7C00});
  else if constexpr (std::is_same_v<Element, BFloat16Bits>)
    step<std::uint16_t>(at, by, std::uint16_t{0x7F80});
}

// bfloat16 has 8 bits of mantissa, the hidden one included.
bool is_short(double value) {
  const float f = static_cast<float>(value);
  return static_cast<double>(f) == value && (std::bit_cast<std::uint32_t>(f) & 0xFFFFu) == 0;
}

Tensor disturbed(const Tensor& tensor, std::uint64_t seed, bool keep_short) {
  Tensor out = tensor;
  visit_elements(tensor, [&](const auto* p) {
    using Element = std::remove_cvref_t<decltype(*p)>;
    if constexpr (is_float_element<Element>) {
      out = tensor.clone();
      auto* to = out.mutable_data<Element>();
      std::mt19937_64 engine(seed);
      // Digits to the base of 3: one number of the engine has 32 of them, and more time goes into
      // the engine than into everything else.
      std::uint64_t digits = 0;
      for (std::int64_t i = 0, n = out.size(); i < n; ++i, digits /= 3) {
        if (i % 32 == 0) digits = engine();
        const int by = static_cast<int>(digits % 3) - 1;
        if (!keep_short || !is_short(to_double(p[i]))) disturb_element(to + i, by);
      }
    }
  });
  return out;
}

}  // namespace

std::span<const MadeCase> all_made_cases() {
  static constexpr std::array kCases = {MadeCase::kNormal, MadeCase::kEnds,
                                        MadeCase::kSmall,  MadeCase::kWide,
                                        MadeCase::kZeros,  MadeCase::kNegativeZeros};
  return kCases;
}

std::string_view to_string(MadeCase made) {
  switch (made) {
    case MadeCase::kNormal:
      return "normal values";
    case MadeCase::kEnds:
      return "ends of the range";
    case MadeCase::kSmall:
      return "small values";
    case MadeCase::kWide:
      return "wide values";
    case MadeCase::kZeros:
      return "zeros";
    case MadeCase::kNegativeZeros:
      return "negative zeros";
  }
  return "unknown";
}

TensorMap make_inputs(MadeCase made, const TensorMap& captured, const std::set<std::string>& kept,
                      std::uint64_t seed) {
  TensorMap out;
  for (const auto& [name, tensor] : captured) {
    const Range range = range_of(tensor);
    if (kept.contains(name) || !range.known) {
      out.emplace(name, tensor);
      continue;
    }
    Tensor filled(tensor.dtype(), tensor.shape());
    // The name is in the seed, so that one tensor is filled alike whatever stands beside it.
    std::uint64_t hash = 1469598103934665603u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    std::mt19937_64 engine(seed * 1'000'003 + static_cast<std::uint64_t>(made) + hash);
    visit_elements(tensor, [&](const auto* p) {
      using Element = std::remove_cvref_t<decltype(*p)>;
      if constexpr (is_float_element<Element>) {
        auto* to = filled.mutable_data<Element>();
        for (std::int64_t i = 0, n = filled.size(); i < n; ++i)
          store(to + i, made_value(made, range, engine));
      }
    });
    out.emplace(name, std::move(filled));
  }
  return out;
}

Tensor disturb(const Tensor& tensor, std::uint64_t seed) { return disturbed(tensor, seed, false); }

TensorMap disturb(const TensorMap& tensors, std::uint64_t seed) {
  TensorMap out;
  std::vector<std::pair<const Tensor*, Tensor*>> all;
  for (const auto& [name, tensor] : tensors) all.emplace_back(&tensor, &out[name]);
  // No step has an error.
  static_cast<void>(parallel_for(all.size(), 0, [&](std::size_t i) {
    *all[i].second = disturb(*all[i].first, seed + i + 1);
    return Status();
  }));
  return out;
}

Status disturb_constants(Model& model, std::uint64_t seed) {
  for (auto& proto : *model.mutable_proto().mutable_graph()->mutable_initializer()) {
    const DType dtype = from_onnx_type(proto.data_type());
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kFloat16 &&
        dtype != DType::kBFloat16)
      continue;
    TENONNX_ASSIGN_OR_RETURN(const Tensor tensor, model.tensor(proto));
    const std::string name = proto.name();
    proto = to_tensor_proto(disturbed(tensor, ++seed, true), name);
  }
  return {};
}

}  // namespace tenonnx
