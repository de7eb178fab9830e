// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare_tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status.h"
#include "base/wording.h"
#include "metrics/elements.h"
#include "metrics/named_gates.h"

namespace tenonnx {
namespace {

// Kinds are looked for in tensors of up to this many elements: outputs and heads, not feature maps.
constexpr std::int64_t kMostMixed = 1 << 22;

std::string spell(DType storage) { return std::string(to_string(storage)); }

Status add_slices(TensorComparison& tensor, const Tensor& reference, const Tensor& candidate) {
  if (tensor.inputs == 0 && reference.size() <= kMostMixed) {
    if (const auto mixed = find_mixed(reference))
      for (const SliceGroup& group : mixed->groups)
        tensor.slices.push_back({mixed->axis, group.begin, group.end, group.magnitude, {}, {}});
  }
  for (SliceFigures& slice : tensor.slices) {
    TENONNX_ASSIGN_OR_RETURN(const Tensor r,
                             slices_of(reference, slice.axis, slice.begin, slice.end));
    TENONNX_ASSIGN_OR_RETURN(const Tensor c,
                             slices_of(candidate, slice.axis, slice.begin, slice.end));
    TENONNX_ASSIGN_OR_RETURN(const TensorError error, compare_tensors(r, c));
    join_worst(slice.error, error);
  }
  return {};
}

// The gates of one input, each joined with those before: the nearer to failing stays.
Status add_gates(TensorComparison& tensor, const Tensor& reference, const Tensor& candidate,
                 const CompareSettings& settings) {
  const DeclaredRange range = settings.range.value_or(DeclaredRange{});
  std::vector<Check> checks;
  for (const std::string& gate : settings.gates) {
    TENONNX_ASSIGN_OR_RETURN(
        Check check, gate == "psnr"
                         ? psnr_gate(settings.name, reference, candidate, range.width, range.origin)
                         : allclose_gate(settings.name, reference, candidate));
    checks.push_back(std::move(check));
  }
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (i >= tensor.gates.size()) {
      tensor.gates.push_back(std::move(checks[i]));
      continue;
    }
    const bool upwards = checks[i].comparison == Comparison::kAtMost;
    const bool worse =
        upwards ? checks[i].value > tensor.gates[i].value : checks[i].value < tensor.gates[i].value;
    if (worse) tensor.gates[i] = std::move(checks[i]);
  }
  return {};
}

Status add_psnr(TensorComparison& tensor, const Tensor& reference, const Tensor& candidate,
                const DeclaredRange& range) {
  TENONNX_ASSIGN_OR_RETURN(const double db, psnr_db(reference, candidate, range.width));
  if (!tensor.psnr || db < tensor.psnr->db) tensor.psnr = Psnr{db, range.width, range.origin};
  return {};
}

// The part of `tensor` that rounding to the storage type changes, joined into `floor`.
Status add_storage(NoiseFloor& floor, const Tensor& reference, DType storage) {
  if (storage != DType::kFloat16 && storage != DType::kBFloat16) return {};
  TENONNX_ASSIGN_OR_RETURN(
      const NoiseFloor one,
      storage_noise_floor(reference, storage, fmt::format("storing it as {}", spell(storage))));
  floor = floor.origin.empty() ? one : join_worst(floor, one);
  return {};
}

struct Figure {
  FloorFigure kind = FloorFigure::kMaxAbs;
  double value = 0;
  double ratio = 0;
  const NoiseFloor* floor = nullptr;
};

double ratio_of(double value, double floor) {
  if (value == 0) return 0;
  return floor > 0 ? value / floor : std::numeric_limits<double>::infinity();
}

// Of the two figures the one that is nearer to its limit, each against the larger of both floors.
Figure worst_figure(const TensorError& error, const NoiseFloor& storage, const NoiseFloor& path) {
  Figure l2{FloorFigure::kRelativeL2, error.relative_l2.value_or(0), 0,
            storage.relative_l2 > path.relative_l2 ? &storage : &path};
  l2.ratio = ratio_of(l2.value, l2.floor->relative_l2);
  Figure abs{FloorFigure::kMaxAbs, error.max_abs, 0,
             storage.max_abs > path.max_abs ? &storage : &path};
  abs.ratio = ratio_of(abs.value, abs.floor->max_abs);
  // Relative to a reference of zero every error is infinite: its size alone counts.
  return std::isinf(l2.value) || abs.ratio >= l2.ratio ? abs : l2;
}

Check check_of(const std::string& name, const Figure& figure, double factor) {
  const bool relative = figure.kind == FloorFigure::kRelativeL2;
  return make_check(fmt::format("{}: {}", name, relative ? "relative L2" : "max abs"), figure.value,
                    Comparison::kAtMost, limit_from_floor(*figure.floor, figure.kind, factor));
}

void judge_integers(TensorComparison& tensor, const std::string& name,
                    const CompareSettings& settings) {
  const auto differing = static_cast<double>(tensor.error.differing);
  const auto floor = static_cast<double>(tensor.path_differing);
  tensor.ratio = ratio_of(differing, floor);
  tensor.check =
      make_check(fmt::format("{}: elements that differ", name), differing, Comparison::kAtMost,
                 {settings.factor * floor,
                  fmt::format("{:g} x the {} that {} turns over", settings.factor,
                              counted(tensor.path_differing, "element"),
                              tensor.path.origin.empty() ? "rounding" : tensor.path.origin)});
}

std::string notes_of(const TensorComparison& tensor) {
  std::string note;
  const auto add = [&](const std::string& text) { note += (note.empty() ? "" : "; ") + text; };
  if (tensor.saturation.saturated > 0)
    add(fmt::format("{} of {} saturated: the reference reaches {:.6g}", tensor.saturation.saturated,
                    counted(tensor.error.count, "element"), tensor.saturation.max_abs));
  else if (tensor.saturation.beyond > 0)
    add(fmt::format("{} beyond the storage type, up to {:.6g}",
                    counted(tensor.saturation.beyond, "element"), tensor.saturation.max_abs));
  if (tensor.non_finite.saturated > 0)
    add(fmt::format("the end of the storage type where the reference is Inf: {}",
                    counted(tensor.non_finite.saturated, "element")));
  return note;
}

// Both as float32 where they are floats of different types.
Status align(const Tensor& reference, const Tensor& candidate, Tensor& r, Tensor& c) {
  r = reference;
  c = candidate;
  if (r.dtype() == c.dtype() || !is_floating(r.dtype()) || !is_floating(c.dtype())) return {};
  TENONNX_ASSIGN_OR_RETURN(r, to_float32(reference));
  TENONNX_ASSIGN_OR_RETURN(c, to_float32(candidate));
  return {};
}

// Masks (a constant of 3.4e38, or what a sum left of it) that the candidate keeps as a number
// beyond its range or as infinity are masks still: the candidate with the reference's value there.
Tensor with_masks_kept(const Tensor& reference, const Tensor& candidate,
                       const CompareSettings& settings) {
  if (settings.masks.empty() || reference.dtype() != DType::kFloat32) return candidate;
  const double range = largest_of(settings.storage);
  const auto* r = reference.data<float>();
  Tensor kept = candidate;
  bool copied = false;
  for (std::int64_t i = 0; i < reference.size(); ++i) {
    const double magnitude = std::fabs(static_cast<double>(r[i]));
    if (!(magnitude > range) ||
        !std::binary_search(settings.masks.begin(), settings.masks.end(), magnitude))
      continue;
    const float value = candidate.data<float>()[i];
    if (!(std::fabs(static_cast<double>(value)) >= range) ||
        std::signbit(value) != std::signbit(r[i]))
      continue;
    if (!copied) kept = candidate.clone();
    copied = true;
    kept.mutable_data<float>()[i] = r[i];
  }
  return kept;
}

}  // namespace

Status add_candidate(TensorComparison& tensor, const Tensor& reference, const Tensor& candidate,
                     const CompareSettings& settings, const std::string& input) {
  Tensor r, c;
  TENONNX_RETURN_IF_ERROR(align(reference, candidate, r, c));
  if (r.dtype() == c.dtype() && r.shape() == c.shape()) c = with_masks_kept(r, c, settings);
  TENONNX_ASSIGN_OR_RETURN(const TensorError error, compare_tensors(r, c));
  const double before = tensor.error.relative_l2.value_or(-1);
  if (tensor.worst_input.empty() || error.relative_l2.value_or(0) > before ||
      (error.broken > 0 && tensor.error.broken == 0))
    tensor.worst_input = input;
  if (tensor.inputs == 0)
    tensor.error = error;
  else
    join_worst(tensor.error, error);
  if (is_floating(r.dtype())) {
    TENONNX_RETURN_IF_ERROR(add_storage(tensor.storage, r, settings.storage));
    // Equal tensors have no distance, and this loop is the dearest.
    std::optional<std::int64_t> ulp = error.compared > 0 ? 0 : -1;
    if (error.differing > 0) {
      const DType step = settings.storage == DType::kFloat32 ? r.dtype() : settings.storage;
      TENONNX_ASSIGN_OR_RETURN(ulp, max_ulp(r, c, step));
    }
    tensor.max_ulp = std::max(tensor.max_ulp.value_or(-1), ulp.value_or(-1));
    if (settings.storage != DType::kFloat32 && tensor.storage.overflowed > 0) {
      TENONNX_ASSIGN_OR_RETURN(
          const Saturation one,
          count_saturated(r, c, largest_of(settings.storage), settings.ceiling, settings.masks));
      if (tensor.saturation.first_index < 0) tensor.saturation.first_index = one.first_index;
      tensor.saturation.beyond += one.beyond;
      tensor.saturation.saturated += one.saturated;
      tensor.saturation.max_abs = std::max(tensor.saturation.max_abs, one.max_abs);
    }
    if (error.masked_changed > 0) {
      const double largest = settings.storage == DType::kFloat32
                                 ? std::numeric_limits<double>::infinity()
                                 : largest_of(settings.storage);
      TENONNX_ASSIGN_OR_RETURN(const NonFiniteChange one, changed_non_finite(r, c, largest));
      NonFiniteChange& all = tensor.non_finite;
      if (one.lost > 0 && all.lost == 0) {
        all.first_lost_index = one.first_lost_index;
        tensor.worst_input = input;
      }
      all.saturated += one.saturated;
      all.lost += one.lost;
    }
    if (settings.mixed) {
      TENONNX_RETURN_IF_ERROR(add_slices(tensor, r, c));
      for (SliceFigures& slice : tensor.slices) {
        TENONNX_ASSIGN_OR_RETURN(const Tensor part,
                                 slices_of(r, slice.axis, slice.begin, slice.end));
        TENONNX_RETURN_IF_ERROR(add_storage(slice.floor, part, settings.storage));
      }
    }
    if (settings.range) TENONNX_RETURN_IF_ERROR(add_psnr(tensor, r, c, *settings.range));
    TENONNX_RETURN_IF_ERROR(add_gates(tensor, r, c, settings));
    if (settings.softmax) {
      TENONNX_ASSIGN_OR_RETURN(const SoftmaxSum sum, softmax_sum(c, settings.softmax_axis));
      TENONNX_ASSIGN_OR_RETURN(const SoftmaxSum base,
                               softmax_sum_baseline(r, settings.softmax_axis, settings.storage));
      tensor.softmax_sum = std::max(tensor.softmax_sum.value_or(0), sum.max_error);
      tensor.softmax_baseline = std::max(tensor.softmax_baseline.value_or(0), base.max_error);
    }
  }
  ++tensor.inputs;
  return {};
}

Status add_floor(TensorComparison& tensor, const Tensor& reference, const Tensor& floor,
                 const std::string& origin) {
  Tensor r, f;
  TENONNX_RETURN_IF_ERROR(align(reference, floor, r, f));
  if (!is_floating(r.dtype())) {
    TENONNX_ASSIGN_OR_RETURN(const TensorError error, compare_tensors(r, f));
    tensor.path_differing += error.differing;
    tensor.path.origin = origin;
    return {};
  }
  TENONNX_ASSIGN_OR_RETURN(const NoiseFloor one, measured_noise_floor(r, f, origin));
  tensor.path = tensor.path.origin.empty() ? one : join_worst(tensor.path, one);
  for (SliceFigures& slice : tensor.slices) {
    TENONNX_ASSIGN_OR_RETURN(const Tensor a, slices_of(r, slice.axis, slice.begin, slice.end));
    TENONNX_ASSIGN_OR_RETURN(const Tensor b, slices_of(f, slice.axis, slice.begin, slice.end));
    TENONNX_ASSIGN_OR_RETURN(const NoiseFloor part, measured_noise_floor(a, b, origin));
    slice.floor = slice.floor.origin.empty() ? part : join_worst(slice.floor, part);
    if (part.max_abs >= slice.floor.max_abs) slice.floor.origin = origin;
  }
  return {};
}

double largest_of(DType storage) {
  if (storage == DType::kFloat16) return 65504;
  if (storage == DType::kBFloat16) return 0x1.FEp127;
  return std::numeric_limits<float>::max();
}

bool is_floor_itself(const TensorComparison& tensor) {
  return tensor.error.differing > 0 && tensor.error.broken == 0 && tensor.error.relative_l2 &&
         *tensor.error.relative_l2 == tensor.path.relative_l2 &&
         tensor.error.max_abs == tensor.path.max_abs;
}

void judge(TensorComparison& tensor, const std::string& name, const CompareSettings& settings) {
  if (tensor.error.broken > 0) {
    tensor.ratio = std::numeric_limits<double>::infinity();
    tensor.check = finite_check(name, tensor.error);
    return;
  }
  if (tensor.non_finite.lost > 0) {
    tensor.ratio = std::numeric_limits<double>::infinity();
    tensor.check =
        make_check(fmt::format("{}: another value where the reference is Inf or NaN", name),
                   static_cast<double>(tensor.non_finite.lost), Comparison::kAtMost,
                   {0, "Inf stays Inf, or saturates in a storage type that ends; NaN stays NaN"},
                   fmt::format("first at element {}", tensor.non_finite.first_lost_index));
    return;
  }
  // No figure is over Inf and NaN. Equal infinities are equal; NaN on both sides tells nothing.
  if (tensor.error.compared == 0 &&
      (tensor.error.differing > 0 || tensor.error.reference.nan > 0)) {
    tensor.ratio = std::numeric_limits<double>::quiet_NaN();
    tensor.check = inconclusive_check(
        name, fmt::format("no element is finite on both sides ({} Inf and {} NaN in the "
                          "reference): feed inputs that give numbers here",
                          tensor.error.reference.inf, tensor.error.reference.nan));
    return;
  }
  const bool integers = tensor.error.count > 0 && !tensor.error.cosine &&
                        tensor.error.reference.inf + tensor.error.reference.nan == 0;
  if (integers) {
    judge_integers(tensor, name, settings);
    return;
  }
  Figure worst = worst_figure(tensor.error, tensor.storage, tensor.path);
  std::string of = name;
  if (!tensor.slices.empty()) {
    worst.ratio = -1;
    for (const SliceFigures& slice : tensor.slices) {
      const Figure figure = worst_figure(slice.error, slice.floor, slice.floor);
      if (figure.ratio <= worst.ratio) continue;
      worst = figure;
      of = fmt::format("{}[{}:{} of axis {}]", name, slice.begin, slice.end, slice.axis);
    }
  }
  tensor.ratio = worst.ratio;
  tensor.check = check_of(of, worst, settings.factor);
  tensor.check.note = notes_of(tensor);
}

}  // namespace tenonnx
