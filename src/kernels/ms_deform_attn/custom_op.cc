// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// tenonnx::MSDeformAttn, version 1
//   value                [B, S, M, D] or [B, S, M * D]: T
//   sampling_locations   [B, Q, M, P, 2] or [B, Q, M, levels, points, 2], (x, y) in 0..1; offsets
//                        where reference_points are given: C
//   attention_weights    as many as there are locations, in the same order: C
//   reference_points     optional, [B, Q, 1 or levels, 2 or 4]: C
//   spatial_shapes       optional, [levels, 2] (height, width): int64; else the attribute
//   output               [B, Q, M * D]: T
//   attributes           points: of each level; spatial_shapes: height, width of each level;
//                        mode: bilinear (default), nearest, discrete
// T: float32, float16, bfloat16; C: float32 or T.
#include "kernels/custom_op.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "kernels/library.h"
#include "kernels/ms_deform_attn/ms_deform_attn.h"

namespace tenonnx::kernels {
namespace {

constexpr const char* kName = "MSDeformAttn";

MSDeformMode mode_of(const Ort::ConstKernelInfo& info) {
  const std::string mode = attribute_or<std::string>(info, "mode", "bilinear");
  if (mode == "bilinear") return MSDeformMode::kBilinear;
  if (mode == "nearest") return MSDeformMode::kNearest;
  if (mode == "discrete") return MSDeformMode::kDiscrete;
  fail(kName, "mode '" + mode + "' is none of bilinear, nearest, discrete");
}

bool same(const MSDeformPlan& plan, const MSDeformSizes& sizes,
          std::span<const std::int64_t> shapes) {
  const MSDeformSizes& s = plan.sizes();
  if (s.batch != sizes.batch || s.queries != sizes.queries || s.heads != sizes.heads ||
      s.channels != sizes.channels || plan.levels().size() * 2 != shapes.size())
    return false;
  for (std::size_t l = 0; l < plan.levels().size(); ++l)
    if (plan.levels()[l].height != shapes[2 * l] || plan.levels()[l].width != shapes[2 * l + 1])
      return false;
  return true;
}

template <typename T, typename C>
class MSDeformAttnKernel {
 public:
  explicit MSDeformAttnKernel(const Ort::ConstKernelInfo& info)
      : mode_(mode_of(info)),
        points_(attributes_or_none<std::int64_t>(info, "points")),
        shapes_(attributes_or_none<std::int64_t>(info, "spatial_shapes")) {
    if (points_.empty()) fail(kName, "the attribute 'points' (of each level) is missing");
    if (!shapes_.empty() && shapes_.size() != 2 * points_.size())
      fail(kName, "spatial_shapes has " + std::to_string(shapes_.size()) + " numbers, points " +
                      std::to_string(points_.size()) + " levels: two numbers a level are needed");
  }

  void compute(const Ort::KernelContext& context) {
    const auto value = context.GetInput(0), locations = context.GetInput(1),
               weights = context.GetInput(2);
    const Dims value_dims(kName, "value", value);
    const Dims dims(kName, "sampling_locations", locations);
    if ((value_dims.rank() != 3 && value_dims.rank() != 4) ||
        (dims.rank() != 5 && dims.rank() != 6) || dims[dims.rank() - 1] != 2)
      fail(kName, "value " + value_dims.text() + " and sampling_locations " + dims.text() +
                      " are not [B,S,M,D] and [B,Q,M,P,2]");
    MSDeformSizes sizes;
    sizes.batch = dims[0];
    sizes.queries = dims[1];
    sizes.heads = dims[2];
    const std::int64_t row = value_dims[2] * (value_dims.rank() == 4 ? value_dims[3] : 1);
    if (value_dims[0] != dims[0] || sizes.heads < 1 || row % sizes.heads != 0 ||
        (value_dims.rank() == 4 && value_dims[2] != sizes.heads))
      fail(kName, "value " + value_dims.text() + " does not go with " +
                      std::to_string(sizes.batch) + " images and " + std::to_string(sizes.heads) +
                      " heads of sampling_locations " + dims.text());
    sizes.channels = row / sizes.heads;
    const std::shared_ptr<const MSDeformPlan> plan = plan_for(sizes, context);
    const std::int64_t points = dims.rank() == 5 ? dims[3] : dims[3] * dims[4];
    if (points != plan->points())
      fail(kName, "sampling_locations " + dims.text() + " has " + std::to_string(points) +
                      " points of each head, the attribute 'points' " +
                      std::to_string(plan->points()));
    if (value_dims[1] != plan->keys())
      fail(kName, "value " + value_dims.text() + " has " + std::to_string(value_dims[1]) +
                      " pixels, spatial_shapes " + std::to_string(plan->keys()));
    const Dims weight_dims(kName, "attention_weights", weights);
    if (weight_dims.count() * 2 != dims.count())
      fail(kName, "attention_weights " + weight_dims.text() +
                      " are not one for each of the sampling_locations " + dims.text());
    const std::array<std::int64_t, 3> out_dims = {sizes.batch, sizes.queries, row};
    auto out = context.GetOutput(0, out_dims.data(), out_dims.size());
    MSDeformTensors<T, C> tensors;
    tensors.value = static_cast<const T*>(value.GetTensorRawData());
    tensors.locations = static_cast<const C*>(locations.GetTensorRawData());
    tensors.weights = static_cast<const C*>(weights.GetTensorRawData());
    tensors.out = static_cast<T*>(out.GetTensorMutableRawData());
    if (context.GetInputCount() > 3) {
      if (const auto reference = context.GetInput(3)) {
        const Dims r(kName, "reference_points", reference);
        const auto levels = static_cast<std::int64_t>(points_.size());
        if (r.rank() != 4 || r[0] != sizes.batch || r[1] != sizes.queries ||
            (r[2] != 1 && r[2] != levels) || (r[3] != 2 && r[3] != 4))
          fail(kName, "reference_points " + r.text() + " are not [" + std::to_string(sizes.batch) +
                          "," + std::to_string(sizes.queries) + ", 1 or " + std::to_string(levels) +
                          ", 2 or 4]");
        tensors.reference = static_cast<const C*>(reference.GetTensorRawData());
        tensors.reference_kind = {r[2], r[3]};
      }
    }
    ms_deform_attn(*plan, tensors, OrtParallel(context));
  }

 private:
  std::shared_ptr<const MSDeformPlan> plan_for(const MSDeformSizes& sizes,
                                               const Ort::KernelContext& context) {
    std::span<const std::int64_t> shapes = shapes_;
    if (context.GetInputCount() > 4) {
      if (const auto given = context.GetInput(4)) {
        const Dims d(kName, "spatial_shapes", given);
        if (d.count() != static_cast<std::int64_t>(2 * points_.size()))
          fail(kName,
               "spatial_shapes " + d.text() + " is not [" + std::to_string(points_.size()) + ",2]");
        shapes = {given.GetTensorData<std::int64_t>(), 2 * points_.size()};
      }
    }
    if (shapes.empty()) fail(kName, "spatial_shapes is neither an attribute nor an input");
    const std::lock_guard lock(mutex_);
    if (plan_ != nullptr && same(*plan_, sizes, shapes)) return plan_;
    std::vector<MSDeformLevel> levels;
    for (std::size_t l = 0; l < points_.size(); ++l)
      levels.push_back({shapes[2 * l], shapes[2 * l + 1], points_[l]});
    if (const std::string wrong = MSDeformPlan::check(levels, sizes); !wrong.empty())
      fail(kName, wrong);
    plan_ = std::make_shared<const MSDeformPlan>(std::move(levels), sizes, mode_);
    return plan_;
  }

  const MSDeformMode mode_;
  const std::vector<std::int64_t> points_, shapes_;
  std::mutex mutex_;
  std::shared_ptr<const MSDeformPlan> plan_;
};

template <typename T, typename C>
struct MSDeformAttnOp : OpBase<MSDeformAttnOp<T, C>, MSDeformAttnKernel<T, C>> {
  const char* GetName() const { return kName; }
  std::size_t GetInputTypeCount() const { return 5; }
  ONNXTensorElementDataType GetInputType(std::size_t i) const {
    if (i == 4) return element_type<std::int64_t>();
    return i == 0 ? element_type<T>() : element_type<C>();
  }
  OrtCustomOpInputOutputCharacteristic GetInputCharacteristic(std::size_t i) const {
    return i < 3 ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
  }
  std::size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(std::size_t) const { return element_type<T>(); }

  static OrtStatusPtr infer_shapes(Ort::ShapeInferContext& context,
                                   ONNXTensorElementDataType value_type) {
    const auto& value = context.GetInputShape(0);
    const auto& locations = context.GetInputShape(1);
    if (value.size() < 3 || locations.size() < 5) return nullptr;
    Ort::ShapeInferContext::Shape out = {locations[0], locations[1], value[2]};
    if (value.size() == 4) {
      if (!value[2].IsInt() || !value[3].IsInt()) return nullptr;
      out[2] = Ort::ShapeInferContext::SymbolicInteger(value[2].AsInt() * value[3].AsInt());
    }
    return context.SetOutputShape(0, out, value_type).release();
  }
};

}  // namespace

void add_ms_deform_attn(CustomOps& ops) {
  add_op<MSDeformAttnOp<float, float>>(ops);
  add_op<MSDeformAttnOp<Half, float>>(ops);
  add_op<MSDeformAttnOp<Half, Half>>(ops);
  add_op<MSDeformAttnOp<BHalf, float>>(ops);
  add_op<MSDeformAttnOp<BHalf, BHalf>>(ops);
}

}  // namespace tenonnx::kernels
