// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/sim_round_op.h"

#include <algorithm>
#include <string>

#include "adapters/sim_ops.h"
#include "kernels/custom_op.h"
#include "passes/sim_common.h"
#include "passes/sim_round.h"

namespace tenonnx {
namespace {

// One piece of a tensor that a thread rounds: 64 KiB of float32, well above the cost of handing it
// over (some microseconds) and within the second-level cache.
constexpr std::int64_t kPiece = 16384;

using kernels::attribute_or;

template <typename T>
struct RoundKernel {
  explicit RoundKernel(const Ort::ConstKernelInfo& info) : spec(round_spec_of(info)) {}

  void compute(const Ort::KernelContext& context) const {
    const auto x = context.GetInput(0);
    const auto info = x.GetTensorTypeAndShapeInfo();
    auto y = context.GetOutput(0, info.GetShape());
    Job job{this, x.GetTensorData<T>(), y.GetTensorMutableData<T>(),
            static_cast<std::int64_t>(info.GetElementCount())};
    if (job.count <= 2 * kPiece) {
      round_values(spec, job.in, job.out, job.count);
    } else {
      context.ParallelFor(&RoundKernel::piece,
                          static_cast<std::size_t>((job.count + kPiece - 1) / kPiece), 0, &job);
    }
  }

 private:
  struct Job {
    const RoundKernel* kernel;
    const T* in;
    T* out;
    std::int64_t count;
  };
  static void piece(void* data, std::size_t index) {
    const Job& job = *static_cast<const Job*>(data);
    const std::int64_t first = static_cast<std::int64_t>(index) * kPiece;
    round_values(job.kernel->spec, job.in + first, job.out + first,
                 std::min(kPiece, job.count - first), first);
  }
  RoundSpec spec;
};

template <typename T>
struct RoundOp : SimOp<RoundOp<T>, RoundKernel<T>, T> {
  RoundOp() {
    // The input's memory is written over where nothing else reads it.
    OrtCustomOp::GetMayInplace = [](int** input, int** output) -> std::size_t {
      *input = new int[1]{0};
      *output = new int[1]{0};
      return 1;
    };
    OrtCustomOp::ReleaseMayInplace = [](int* input, int* output) {
      delete[] input;
      delete[] output;
    };
  }
  const char* GetName() const { return sizeof(T) == 4 ? kSimRound.data() : kSimRoundDouble.data(); }
};

}  // namespace

RoundSpec round_spec_of(const Ort::ConstKernelInfo& info) {
  RoundSpec spec;
  const auto storage = dtype_from_string(attribute_or<std::string>(info, "storage", "float32"));
  if (!storage.ok() ||
      (*storage != DType::kFloat32 && *storage != DType::kFloat16 && *storage != DType::kBFloat16))
    throw Ort::Exception("tenonnx.sim Round: storage is float32, float16 or bfloat16",
                         ORT_INVALID_ARGUMENT);
  spec.storage = *storage;
  const float saturate = attribute_or(info, "saturate", 0.0F);
  if (saturate > 0) {
    spec.overflow.kind = Overflow::Kind::kSaturate;
    spec.overflow.max = saturate;
    spec.overflow.infinite = attribute_or(info, "infinite", 0.0F);
    const float nan = attribute_or(info, "nan", std::numeric_limits<float>::quiet_NaN());
    if (nan == nan) spec.overflow.nan = nan;
  }
  if (attribute_or<std::int64_t>(info, "pattern", 0) != 0)
    spec.overflow.kind = Overflow::Kind::kPattern;
  spec.keep_subnormals = attribute_or<std::int64_t>(info, "flush", 0) == 0;
  spec.round = attribute_or<std::int64_t>(info, "range_only", 0) == 0;
  spec.relative_error = attribute_or(info, "relative_error", 0.0F);
  spec.seed = static_cast<std::uint64_t>(attribute_or<std::int64_t>(info, "seed", 0));
  return spec;
}

std::shared_ptr<const CustomOpSet> make_sim_ops() {
  auto ops = std::make_shared<CustomOpSet>(std::string(kSimDomain));
  ops->add(std::make_unique<RoundOp<float>>());
  ops->add(std::make_unique<RoundOp<double>>());
  add_form_op(*ops);
  add_product_op(*ops);
  return ops;
}

}  // namespace tenonnx
