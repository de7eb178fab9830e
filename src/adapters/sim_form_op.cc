// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <string>
#include <vector>

#include "adapters/sim_ops.h"
#include "kernels/custom_op.h"
#include "passes/sim_common.h"
#include "passes/sim_forms.h"

namespace tenonnx {
namespace {

// Elements, or rows of a softmax, that a thread takes at a time: some 100 microseconds of tanh.
constexpr std::int64_t kPiece = 4096;

double element(Form form, double x) {
  switch (form) {
    case Form::kReciprocalDown:
      return reciprocal_down(x);
    case Form::kReciprocalNearest:
      return reciprocal_nearest(x);
    case Form::kSigmoidByTanh:
      return sigmoid_by_tanh(x);
    case Form::kGeluByTanh:
      return gelu_by_tanh(x);
    case Form::kByReciprocal:
    case Form::kSoftmaxSteps:
    case Form::kGridFractions:
      break;
  }
  return x;
}

struct FormKernel {
  explicit FormKernel(const Ort::ConstKernelInfo& info) {
    const auto name = kernels::attribute_or<std::string>(info, "form", "");
    if (!form_of(name, form) || form == Form::kByReciprocal)
      throw Ort::Exception("tenonnx.sim Form: no form '" + name + "' of one input",
                           ORT_INVALID_ARGUMENT);
    axis = kernels::attribute_or<std::int64_t>(info, "axis", -1);
    to_end = kernels::attribute_or<std::int64_t>(info, "to_end", 0) != 0;
    scale = kernels::attributes_or_none<float>(info, "scale");
    offset = kernels::attributes_or_none<float>(info, "offset");
    if (form == Form::kGridFractions && (scale.size() != 2 || offset.size() != 2))
      throw Ort::Exception("tenonnx.sim Form: grid_fractions needs two scales and offsets",
                           ORT_INVALID_ARGUMENT);
    for (const float c : kernels::attributes_or_none<float>(info, "reciprocal_error"))
      error.push_back(static_cast<double>(c));
  }

  void compute(const Ort::KernelContext& context) const {
    const auto x = context.GetInput(0);
    const auto info = x.GetTensorTypeAndShapeInfo();
    const std::vector<std::int64_t> shape = info.GetShape();
    auto y = context.GetOutput(0, shape);
    Job job{this, x.GetTensorData<float>(), y.GetTensorMutableData<float>(),
            static_cast<std::int64_t>(info.GetElementCount())};
    if (job.count == 0) return;
    std::int64_t per_piece = kPiece;
    if (form == Form::kSoftmaxSteps) {
      const auto rank = static_cast<std::int64_t>(shape.size());
      const std::int64_t at = axis < 0 ? axis + rank : axis;
      if (at < 0 || at >= rank)
        throw Ort::Exception(
            "tenonnx.sim Form: axis " + std::to_string(axis) + " of rank " + std::to_string(rank),
            ORT_INVALID_ARGUMENT);
      for (std::int64_t i = at; i < rank; ++i)
        (i == at || to_end ? job.length : job.stride) *= shape[static_cast<std::size_t>(i)];
      job.count /= job.length;  // rows
      per_piece = std::max<std::int64_t>(1, kPiece / job.length);
    }
    job.per_piece = per_piece;
    context.ParallelFor(&FormKernel::piece,
                        static_cast<std::size_t>((job.count + per_piece - 1) / per_piece), 0, &job);
  }

  Form form = Form::kSigmoidByTanh;
  std::int64_t axis = -1;
  bool to_end = false;  // a row is everything from the axis on: Softmax before opset 13
  std::vector<double> error;
  std::vector<float> scale, offset;  // of x and y, the last dimension

 private:
  struct Job {
    const FormKernel* kernel;
    const float* in;
    float* out;
    std::int64_t count, per_piece = kPiece, length = 1, stride = 1;
  };
  static void piece(void* data, std::size_t index) {
    const Job& job = *static_cast<const Job*>(data);
    const std::int64_t first = static_cast<std::int64_t>(index) * job.per_piece;
    const std::int64_t last = std::min(job.count, first + job.per_piece);
    for (std::int64_t i = first; i < last; ++i) {
      if (job.kernel->form == Form::kGridFractions) {
        const auto axis = static_cast<std::size_t>(i % 2);
        job.out[i] = static_cast<float>(grid_fraction(
            static_cast<double>(job.in[i]), static_cast<double>(job.kernel->scale[axis]),
            static_cast<double>(job.kernel->offset[axis])));
        continue;
      }
      if (job.kernel->form != Form::kSoftmaxSteps) {
        job.out[i] = static_cast<float>(element(job.kernel->form, static_cast<double>(job.in[i])));
        continue;
      }
      const std::int64_t at = i / job.stride * job.length * job.stride + i % job.stride;
      softmax_steps(job.in + at, job.out + at, job.length, job.stride, job.kernel->error);
    }
  }
};

struct FormOp : SimOp<FormOp, FormKernel> {
  const char* GetName() const { return kSimForm.data(); }
};

}  // namespace

void add_form_op(CustomOpSet& ops) { ops.add(std::make_unique<FormOp>()); }

}  // namespace tenonnx
