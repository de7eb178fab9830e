// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/tensor_error.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/half.h"
#include "base/status.h"
#include "metrics/elements.h"

namespace tenonnx {
namespace {

Status check_comparable(const Tensor& reference, const Tensor& candidate) {
  if (!reference.defined() || !candidate.defined()) {
    return InvalidArgument("cannot compare: the {} tensor is undefined (no data was produced)",
                           reference.defined() ? "candidate" : "reference");
  }
  if (reference.dtype() != candidate.dtype() || reference.shape() != candidate.shape()) {
    return InvalidArgument(
        "cannot compare: the reference is {} {}, the candidate {} {}; convert or reshape one first",
        to_string(reference.dtype()), to_string(reference.shape()), to_string(candidate.dtype()),
        to_string(candidate.shape()));
  }
  return {};
}

// Sums over pairs that are finite on both sides. Scaling by a power of two keeps the squares of
// float64 values beyond 1e154 finite and those below 1e-154 from vanishing; those of all other
// types fit as they are. Four of each, for a vector of elements at once.
struct PairSums {
  static constexpr int kLanes = 4;
  double scale = 1;
  double rr[kLanes] = {}, cc[kLanes] = {}, rc[kLanes] = {}, dd[kLanes] = {}, abs[kLanes] = {};
  void add(int lane, double r, double c) {
    abs[lane] += std::fabs(c - r);
    r *= scale;
    c *= scale;
    rr[lane] += r * r;
    cc[lane] += c * c;
    rc[lane] += r * c;
    dd[lane] += (c - r) * (c - r);
  }
  static double total(const double (&sums)[kLanes]) {
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  double cosine() const {
    const double r = total(rr), c = total(cc);
    if (r == 0 && c == 0) return 1;
    if (r == 0 || c == 0) return 0;
    // One root of the product, not a product of roots: exactly 1 where rc = rr = cc.
    return std::clamp(total(rc) / std::sqrt(r * c), -1.0, 1.0);
  }
  double relative_l2() const {
    const double d = total(dd), r = total(rr);
    if (d == 0) return 0;
    return r == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(d) / std::sqrt(r);
  }
};

double scale_for(double largest) {
  if (largest == 0) return 1;
  // 2^-1022 and 2^1023 bound what ldexp can give as a normal number.
  return std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1022, 1022));
}

void count(double value, NonFiniteCount* counts) {
  counts->inf += std::isinf(value) ? 1 : 0;
  counts->nan += std::isnan(value) ? 1 : 0;
}

// A block of elements, which are all finite in nearly all blocks: then nothing branches.
constexpr std::int64_t kBlock = 256;

template <typename T>
bool all_finite(const T* elements, std::int64_t n) {
  int others = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, float>)
      others |= (std::bit_cast<std::uint32_t>(elements[i]) & 0x7f800000U) == 0x7f800000U ? 1 : 0;
    else
      others |= std::isfinite(to_double(elements[i])) ? 0 : 1;
  }
  return others == 0;
}

void take_max(double difference, std::int64_t index, TensorError* error) {
  if (error->max_abs_index >= 0 && difference <= error->max_abs) return;
  error->max_abs = difference;
  error->max_abs_index = index;
}

// Sums are added up where `sums` is given, else the largest magnitude is found for their scale.
template <typename T>
void add_finite(const T* r, const T* c, std::int64_t begin, std::int64_t n, TensorError* error,
                PairSums* sums, double* largest) {
  constexpr int kLanes = PairSums::kLanes;
  double most[kLanes] = {}, magnitude[kLanes] = {};
  std::int64_t differing[kLanes] = {};
  PairSums added = sums != nullptr ? *sums : PairSums();
  const auto add = [&](int lane, const T& a, const T& b) {
    const double x = to_double(a), y = to_double(b);
    differing[lane] += x == y ? 0 : 1;
    most[lane] = std::max(most[lane], std::fabs(y - x));
    if constexpr (std::is_same_v<T, double>)
      magnitude[lane] = std::max({magnitude[lane], std::fabs(x), std::fabs(y)});
    else
      added.add(lane, x, y);
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) add(lane, r[i + lane], c[i + lane]);
  for (; i < n; ++i) add(0, r[i], c[i]);
  if (sums != nullptr) *sums = added;
  for (int lane = 0; lane < kLanes; ++lane) {
    error->differing += differing[lane];
    *largest = std::max(*largest, magnitude[lane]);
  }
  error->compared += n;
  const double top = *std::max_element(most, most + kLanes);
  if (error->max_abs_index >= 0 && top <= error->max_abs) return;
  for (std::int64_t k = 0; k < n; ++k)
    if (const double d = std::fabs(to_double(c[k]) - to_double(r[k])); d == top)
      return take_max(d, begin + k, error);
}

template <typename T>
void add_any(const T* r, const T* c, std::int64_t begin, std::int64_t n, TensorError* error,
             PairSums* sums, double* largest) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = to_double(r[i]), y = to_double(c[i]);
    const bool fx = std::isfinite(x), fy = std::isfinite(y);
    const bool same = x == y || (std::isnan(x) && std::isnan(y));
    if (!same) ++error->differing;
    if (fx && fy) {
      ++error->compared;
      *largest = std::max({*largest, std::fabs(x), std::fabs(y)});
      take_max(std::fabs(y - x), begin + i, error);
      if (sums != nullptr) sums->add(0, x, y);
      continue;
    }
    count(x, &error->reference);
    count(y, &error->candidate);
    if (fx) {
      if (error->broken++ == 0) error->first_broken_index = begin + i;
    } else if (!same) {
      ++error->masked_changed;
    }
  }
}

template <typename T>
TensorError compare_floats(const T* r, const T* c, std::int64_t n) {
  constexpr bool kScaled = std::is_same_v<T, double>;
  TensorError error;
  error.count = n;
  double largest = 0;
  PairSums sums;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t here = std::min(kBlock, n - begin);
    const auto add =
        all_finite(r + begin, here) && all_finite(c + begin, here) ? &add_finite<T> : &add_any<T>;
    add(r + begin, c + begin, begin, here, &error, kScaled ? nullptr : &sums, &largest);
  }
  if (error.compared == 0) return error;
  if constexpr (kScaled) {
    sums.scale = scale_for(largest);
    for (std::int64_t i = 0; i < n; ++i)
      if (std::isfinite(r[i]) && std::isfinite(c[i])) sums.add(0, r[i], c[i]);
  }
  error.cosine = sums.cosine();
  error.relative_l2 = sums.relative_l2();
  error.mean_abs = PairSums::total(sums.abs) / static_cast<double>(error.compared);
  return error;
}

template <typename T>
TensorError compare_integers(const T* r, const T* c, std::int64_t n) {
  TensorError error;
  error.count = error.compared = n;
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    // The unsigned difference is exact where int64 would overflow and double would round.
    const auto low = static_cast<std::uint64_t>(static_cast<std::int64_t>(std::min(r[i], c[i])));
    const auto high = static_cast<std::uint64_t>(static_cast<std::int64_t>(std::max(r[i], c[i])));
    const double d = static_cast<double>(high - low);
    if (r[i] != c[i]) ++error.differing;
    sum += d;
    if (error.max_abs_index < 0 || d > error.max_abs) {
      error.max_abs = d;
      error.max_abs_index = i;
    }
  }
  if (n > 0) error.mean_abs = sum / static_cast<double>(n);
  return error;
}

template <typename T>
void add_identity(const T* r, const T* c, std::int64_t n, Identity* identity) {
  for (std::int64_t i = 0; i < n; ++i) {
    bool same;
    bool zero_sign = false;
    if constexpr (is_float_element<T>) {
      const double x = to_double(r[i]), y = to_double(c[i]);
      same = (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
      zero_sign = !same && x == y;
    } else {
      same = r[i] == c[i];
    }
    if (same) continue;
    if (identity->differing++ == 0) identity->first_index = i;
    identity->zero_signs += zero_sign ? 1 : 0;
  }
  identity->identical = identity->differing == 0;
}

}  // namespace

Result<TensorError> compare_tensors(const Tensor& reference, const Tensor& candidate) {
  TENONNX_RETURN_IF_ERROR(check_comparable(reference, candidate));
  TensorError error;
  visit_elements(reference, [&](const auto* r) {
    using T = std::remove_cvref_t<decltype(*r)>;
    const T* c = candidate.data<T>();
    if constexpr (is_float_element<T>) {
      error = compare_floats(r, c, reference.size());
    } else {
      error = compare_integers(r, c, reference.size());
    }
  });
  return error;
}

void join_worst(TensorError& total, const TensorError& next) {
  if (total.count == 0) {
    total = next;
    return;
  }
  if (next.count == 0) return;
  const double abs_sum = total.mean_abs * static_cast<double>(total.compared) +
                         next.mean_abs * static_cast<double>(next.compared);
  if (next.compared > 0 && (total.compared == 0 || next.max_abs > total.max_abs)) {
    total.max_abs = next.max_abs;
    total.max_abs_index = next.max_abs_index;
  }
  if (total.first_broken_index < 0) total.first_broken_index = next.first_broken_index;
  if (next.cosine) total.cosine = std::min(total.cosine.value_or(*next.cosine), *next.cosine);
  if (next.relative_l2) {
    total.relative_l2 = std::max(total.relative_l2.value_or(*next.relative_l2), *next.relative_l2);
  }
  total.count += next.count;
  total.compared += next.compared;
  total.differing += next.differing;
  if (total.compared > 0) total.mean_abs = abs_sum / static_cast<double>(total.compared);
  total.reference.inf += next.reference.inf;
  total.reference.nan += next.reference.nan;
  total.candidate.inf += next.candidate.inf;
  total.candidate.nan += next.candidate.nan;
  total.broken += next.broken;
  total.masked_changed += next.masked_changed;
}

Result<RowError> compare_rows(const Tensor& reference, const Tensor& candidate) {
  TENONNX_RETURN_IF_ERROR(check_comparable(reference, candidate));
  RowError rows;
  bool floating = false;
  visit_elements(reference, [&](const auto* r) {
    using T = std::remove_cvref_t<decltype(*r)>;
    if constexpr (is_float_element<T>) {
      floating = true;
      const T* c = candidate.data<T>();
      const std::int64_t width = reference.shape().empty() ? 1 : reference.shape().back();
      const std::int64_t n = width == 0 ? 0 : reference.size() / width;
      for (std::int64_t row = 0; row < n; ++row) {
        const TensorError e = compare_floats(r + row * width, c + row * width, width);
        if (!e.cosine) continue;
        ++rows.rows;
        if (rows.min_cosine_row < 0 || *e.cosine < rows.min_cosine) {
          rows.min_cosine = *e.cosine;
          rows.min_cosine_row = row;
        }
        if (rows.max_relative_l2_row < 0 || *e.relative_l2 > rows.max_relative_l2) {
          rows.max_relative_l2 = *e.relative_l2;
          rows.max_relative_l2_row = row;
        }
      }
    }
  });
  if (!floating) {
    return InvalidArgument("row figures need a floating dtype, got {}: rows of labels have none",
                           to_string(reference.dtype()));
  }
  return rows;
}

Result<Identity> compare_identical(const Tensor& reference, const Tensor& candidate) {
  TENONNX_RETURN_IF_ERROR(check_comparable(reference, candidate));
  Identity identity;
  visit_elements(reference, [&](const auto* r) {
    using T = std::remove_cvref_t<decltype(*r)>;
    add_identity(r, candidate.data<T>(), reference.size(), &identity);
  });
  return identity;
}

Result<Tensor> to_float32(const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat32) return tensor;
  Result<Tensor> out = InvalidArgument("cannot read {} {} as float32: not a floating dtype",
                                       to_string(tensor.dtype()), to_string(tensor.shape()));
  if (!tensor.defined()) return out;
  visit_elements(tensor, [&](const auto* p) {
    using T = std::remove_cvref_t<decltype(*p)>;
    if constexpr (is_float_element<T>) {
      Tensor converted(DType::kFloat32, tensor.shape());
      float* q = converted.mutable_data<float>();
      for (std::int64_t i = 0; i < tensor.size(); ++i) q[i] = static_cast<float>(to_double(p[i]));
      out = std::move(converted);
    }
  });
  return out;
}

Check finite_check(std::string_view tensor, const TensorError& error) {
  std::string note;
  if (error.broken > 0) {
    note = fmt::format(
        "first at element {} of '{}'; the candidate has {} Inf and {} NaN, the "
        "reference {} and {}",
        error.first_broken_index, tensor, error.candidate.inf, error.candidate.nan,
        error.reference.inf, error.reference.nan);
  }
  return make_check(fmt::format("{}: Inf or NaN where the reference is finite", tensor),
                    static_cast<double>(error.broken), Comparison::kAtMost,
                    {0, "none is acceptable"}, std::move(note));
}

Json to_json(const TensorError& error) {
  Json json;
  json["count"] = error.count;
  json["compared"] = error.compared;
  json["differing"] = error.differing;
  if (error.cosine) json["cosine"] = json_number(*error.cosine);
  if (error.relative_l2) json["relative_l2"] = json_number(*error.relative_l2);
  json["max_abs"] = json_number(error.max_abs);
  json["max_abs_index"] = error.max_abs_index;
  json["mean_abs"] = json_number(error.mean_abs);
  json["reference_nonfinite"] = {{"inf", error.reference.inf}, {"nan", error.reference.nan}};
  json["candidate_nonfinite"] = {{"inf", error.candidate.inf}, {"nan", error.candidate.nan}};
  json["broken"] = error.broken;
  json["first_broken_index"] = error.first_broken_index;
  json["masked_changed"] = error.masked_changed;
  return json;
}

}  // namespace tenonnx
