// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/differing_op.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/custom_op.h"
#include "metrics/elements.h"
#include "metrics/tensor_error.h"
#include "ort/custom_ops.h"
#include "ort/values.h"

namespace tenonnx {
namespace {

// Bytes that a thread compares at once: well above the cost of handing them over.
constexpr std::size_t kPiece = std::size_t{256} << 10;

// Of memory that ONNX Runtime keeps.
Tensor view_of(const Ort::ConstValue& value) {
  const auto info = value.GetTensorTypeAndShapeInfo();
  return Tensor::view(dtype_from_ort(info.GetElementType()), info.GetShape(),
                      value.GetTensorRawData(), nullptr);
}

void give_count(const Ort::KernelContext& context, std::int64_t count) {
  const std::int64_t shape[] = {1};
  auto output = context.GetOutput(0, shape, 1);
  output.GetTensorMutableData<std::int64_t>()[0] = count;
}

struct Job {
  const char *a, *b;
  std::size_t bytes;
  std::atomic<bool> same = true;
};

void compare_piece(void* data, std::size_t index) {
  Job& job = *static_cast<Job*>(data);
  const std::size_t first = index * kPiece;
  if (std::memcmp(job.a + first, job.b + first, std::min(kPiece, job.bytes - first)) != 0)
    job.same.store(false, std::memory_order_relaxed);
}

bool same_bytes(const Ort::KernelContext& context, const Tensor& a, const Tensor& b) {
  if (a.bytes() == 0) return true;
  Job job{static_cast<const char*>(a.raw()), static_cast<const char*>(b.raw()), a.bytes()};
  const std::size_t pieces = (job.bytes + kPiece - 1) / kPiece;
  if (pieces == 1)
    compare_piece(&job, 0);
  else
    kernels::OrtParallel(context).run(pieces, &compare_piece, &job);
  return job.same;
}

// Whether all elements are within +-limit.
template <typename T>
bool all_within(const T* elements, std::size_t count, double limit) {
  int beyond = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      // Magnitudes of float32 are in the order of their bits, and NaN is above all: no branches.
      const auto bits = std::bit_cast<std::int32_t>(elements[i]) & 0x7fffffff;
      beyond |= bits > std::bit_cast<std::int32_t>(static_cast<float>(limit)) ? 1 : 0;
    } else {
      beyond |= std::fabs(to_double(elements[i])) <= limit ? 0 : 1;
    }
  }
  return beyond == 0;
}

bool is_within(const Ort::KernelContext& context, const Tensor& tensor) {
  bool within = true;
  visit_elements(tensor, [&]<typename T>(const T* elements) {
    if constexpr (is_float_element<T>) {
      struct Elements {
        const T* first;
        std::size_t count;
        std::atomic<bool> within = true;
      } all{elements, static_cast<std::size_t>(tensor.size())};
      static constexpr std::size_t kElements = kPiece / sizeof(T);
      const std::size_t pieces = (all.count + kElements - 1) / kElements;
      const auto look = [](void* data, std::size_t piece) {
        Elements& some = *static_cast<Elements*>(data);
        const std::size_t from = piece * kElements;
        if (!all_within(some.first + from, std::min(kElements, some.count - from),
                        std::is_same_v<T, Float16Bits> ? 64 : 1e6))
          some.within.store(false, std::memory_order_relaxed);
      };
      if (pieces == 1)
        look(&all, 0);
      else if (pieces > 1)
        kernels::OrtParallel(context).run(pieces, look, &all);
      within = all.within;
    }
  });
  return within;
}

struct BeyondKernel {
  explicit BeyondKernel(const Ort::ConstKernelInfo& /*info*/) {}
  void compute(const Ort::KernelContext& context) const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < context.GetInputCount(); ++i)
      count += is_within(context, view_of(context.GetInput(i))) ? 0 : 1;
    give_count(context, count);
  }
};

class DifferingKernel {
 public:
  explicit DifferingKernel(const Ort::ConstKernelInfo& info)
      : pairs_(static_cast<std::size_t>(info.GetAttribute<std::int64_t>("pairs"))),
        part_(kernels::attribute_or<std::int64_t>(info, "part", 0)) {}

  const DifferingListener* listener = nullptr;

  void compute(const Ort::KernelContext& context) const {
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < context.GetInputCount(); ++i)
      inputs.push_back(view_of(context.GetInput(i)));
    if (inputs.size() < 2 * pairs_)
      kernels::fail(kDiffering, std::to_string(pairs_) + " pairs of " +
                                    std::to_string(inputs.size()) + " tensors");
    std::int64_t count = 0;
    for (std::size_t i = 0; i < pairs_; ++i)
      count += differing(context, inputs[i], inputs[pairs_ + i]);
    if (count > 0 && listener != nullptr && *listener) (*listener)(part_, inputs);
    give_count(context, count);
  }

 private:
  static std::int64_t differing(const Ort::KernelContext& context, const Tensor& a,
                                const Tensor& b) {
    const bool comparable =
        a.dtype() == b.dtype() && a.dtype() != DType::kUndefined && a.shape() == b.shape();
    if (!comparable) return std::max<std::int64_t>({a.size(), b.size(), 1});
    if (same_bytes(context, a, b)) return 0;
    const auto identity = compare_identical(a, b);
    return identity.ok() ? identity->differing : a.size();
  }

  std::size_t pairs_;
  std::int64_t part_;
};

// Any tensors -> count.
template <typename Derived, typename Kernel, int kLeast>
struct CountingOp : kernels::OpBase<Derived, Kernel> {
  std::size_t GetInputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetInputType(std::size_t) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;  // any
  }
  OrtCustomOpInputOutputCharacteristic GetInputCharacteristic(std::size_t) const {
    return INPUT_OUTPUT_VARIADIC;
  }
  int GetVariadicInputMinArity() const { return kLeast; }
  bool GetVariadicInputHomogeneity() const { return false; }
  std::size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(std::size_t) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
  }
  static OrtStatusPtr infer_shapes(Ort::ShapeInferContext& context,
                                   ONNXTensorElementDataType /*type*/) {
    const Ort::ShapeInferContext::Shape one = {1};
    return context.SetOutputShape(0, one, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64).release();
  }
};

struct BeyondOp : CountingOp<BeyondOp, BeyondKernel, 1> {
  const char* GetName() const { return kBeyond; }
};

class DifferingOp : public CountingOp<DifferingOp, DifferingKernel, 2> {
 public:
  explicit DifferingOp(DifferingListener listener) : listener_(std::move(listener)) {}

  const char* GetName() const { return kDiffering; }
  OrtStatusPtr CreateKernelV2(const OrtApi& api, const OrtKernelInfo* info,
                              void** out) const noexcept {
    OrtStatusPtr status = OpBase::CreateKernelV2(api, info, out);
    if (status == nullptr)
      static_cast<kernels::KernelShell<DifferingKernel>*>(*out)->kernel.listener = &listener_;
    return status;
  }

 private:
  DifferingListener listener_;
};

}  // namespace

std::shared_ptr<const CustomOpSet> make_proof_ops(DifferingListener listener) {
  auto ops = std::make_shared<CustomOpSet>(kProofDomain);
  ops->add(std::make_unique<DifferingOp>(std::move(listener)));
  ops->add(std::make_unique<BeyondOp>());
  return ops;
}

}  // namespace tenonnx
