// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "adapters/sim_ops.h"
#include "kernels/custom_op.h"
#include "passes/sim_common.h"
#include "passes/sim_products.h"

namespace tenonnx {
namespace {

using kernels::attribute_or;
using kernels::attributes_or_none;

constexpr std::int64_t kPiece = 16384;  // as of Round

struct ProductKernel {
  explicit ProductKernel(const Ort::ConstKernelInfo& info) : spec(round_spec_of(info)) {
    const auto product = attribute_or<std::string>(info, "product", "MatMul");
    if (product == "Conv") shape.kind = ProductShape::Kind::kConv;
    if (product == "Add") shape.kind = ProductShape::Kind::kSum;
    shape.trans_a = attribute_or<std::int64_t>(info, "trans_a", 0) != 0;
    shape.trans_b = attribute_or<std::int64_t>(info, "trans_b", 0) != 0;
    shape.group = attribute_or<std::int64_t>(info, "group", 1);
    shape.strides = attributes_or_none<std::int64_t>(info, "strides");
    shape.pads = attributes_or_none<std::int64_t>(info, "pads");
    shape.dilations = attributes_or_none<std::int64_t>(info, "dilations");
  }

  void compute(const Ort::KernelContext& context) const {
    const auto y = context.GetInput(0);
    const auto info = y.GetTensorTypeAndShapeInfo();
    auto z = context.GetOutput(0, info.GetShape());
    ProductShape now = shape;
    now.y = info.GetShape();
    now.a = context.GetInput(1).GetTensorTypeAndShapeInfo().GetShape();
    now.b = context.GetInput(2).GetTensorTypeAndShapeInfo().GetShape();
    Job job{this,
            &now,
            y.GetTensorData<float>(),
            context.GetInput(1).GetTensorData<float>(),
            context.GetInput(2).GetTensorData<float>(),
            nullptr,
            z.GetTensorMutableData<float>(),
            static_cast<std::int64_t>(info.GetElementCount()),
            is_known(now)};
    if (context.GetInputCount() > 3) job.bias = context.GetInput(3).GetTensorData<float>();
    context.ParallelFor(&ProductKernel::piece,
                        static_cast<std::size_t>((job.count + kPiece - 1) / kPiece), 0, &job);
  }

  RoundSpec spec;
  ProductShape shape;

 private:
  struct Job {
    const ProductKernel* kernel;
    const ProductShape* shape;
    const float *y, *a, *b, *bias;
    float* z;
    std::int64_t count;
    bool known;

    float bias_of(std::int64_t index) const {
      if (bias == nullptr) return 0;
      const Shape& s = shape->y;
      return shape->kind == ProductShape::Kind::kConv ? bias[index / (s[2] * s[3]) % s[1]]
                                                      : bias[index % s.back()];
    }
  };
  static void piece(void* data, std::size_t index) {
    const Job& job = *static_cast<const Job*>(data);
    const RoundSpec& spec = job.kernel->spec;
    const std::int64_t first = static_cast<std::int64_t>(index) * kPiece;
    const std::int64_t last = std::min(job.count, first + kPiece);
    round_values(spec, job.y + first, job.z + first, last - first, first);
    for (std::int64_t i = first; i < last; ++i) {
      if (!std::isnan(job.y[i])) continue;
      if (!job.known) {
        job.z[i] = std::abs(job.z[i]);  // of the NaN that the kernel repeats
        continue;
      }
      const double value = product_value(*job.shape, job.a, job.b, i);
      // What is beyond is a pattern already.
      float stored = static_cast<float>(value);
      if (std::abs(stored) < 65520) {
        stored += job.bias_of(i);
        round_values(spec, &stored, &stored, 1, i);
      }
      job.z[i] = stored;
    }
  }
};

struct ProductOp : SimOp<ProductOp, ProductKernel> {
  const char* GetName() const { return kSimRoundProduct.data(); }
  std::size_t GetInputTypeCount() const { return 4; }
  OrtCustomOpInputOutputCharacteristic GetInputCharacteristic(std::size_t i) const {
    return i < 3 ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
  }
};

}  // namespace

void add_product_op(CustomOpSet& ops) { ops.add(std::make_unique<ProductOp>()); }

}  // namespace tenonnx
