// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/guarded_schemas.h"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace tenonnx {
namespace {

constexpr std::int64_t kMaxShapeLength = 65536;

// Operators that read an input other than their first (ConstantOfShape: the first) as a shape, as
// pads or as axes.
const std::set<std::string_view>& shape_readers() {
  static const std::set<std::string_view> kReaders = {
      "Reshape",   "Expand", "ConstantOfShape", "Tile",      "Resize",          "Upsample",
      "Pad",       "Slice",  "Squeeze",         "Unsqueeze", "CenterCropPad",   "AffineGrid",
      "MaxUnpool", "Split",  "RandomNormal",    "STFT",      "SplitToSequence", "Col2Im"};
  return kReaders;
}

template <typename Context>
bool has_long_vector(const Context& context, std::size_t first = 0) {
  for (std::size_t i = first; i < context.getNumInputs(); ++i) {
    const onnx::TypeProto* type = context.getInputType(i);
    if (type == nullptr || !type->has_tensor_type() || !type->tensor_type().has_shape()) continue;
    const auto& dims = type->tensor_type().shape().dim();
    if (dims.size() == 1 && dims[0].dim_value() > kMaxShapeLength) return true;
  }
  return false;
}

// The input that holds the kernel of a convolution, 0 for other operators.
std::size_t kernel_input(const std::string& op) {
  if (op == "Conv" || op == "ConvTranspose" || op == "ConvInteger" || op == "DeformConv") return 1;
  return op == "QLinearConv" ? 3 : 0;
}

// True where the ranks of the first input and of the kernel are known and differ.
bool has_odd_kernel(const onnx::InferenceContext& context, std::size_t kernel) {
  const auto rank = [&](std::size_t i) {
    if (i >= context.getNumInputs()) return -1;
    const onnx::TypeProto* type = context.getInputType(i);
    if (type == nullptr || !type->has_tensor_type() || !type->tensor_type().has_shape()) return -1;
    return type->tensor_type().shape().dim_size();
  };
  return rank(0) >= 0 && rank(kernel) >= 0 && rank(0) != rank(kernel);
}

class GuardedSchemas : public onnx::ISchemaRegistry {
 public:
  const onnx::OpSchema* GetSchema(const std::string& key, const int version,
                                  const std::string& domain) const override {
    const onnx::OpSchema* schema =
        onnx::OpSchemaRegistry::Instance()->GetSchema(key, version, domain);
    if (schema == nullptr) return nullptr;
    const bool guards_types = shape_readers().contains(key) || kernel_input(key) > 0;
    if (!schema->has_data_propagation_function() && !guards_types) return schema;
    const std::lock_guard lock(mutex_);
    auto& guarded = guarded_[schema];
    if (!guarded) guarded = guard(*schema, guards_types);
    return guarded.get();
  }

 private:
  static std::unique_ptr<onnx::OpSchema> guard(const onnx::OpSchema& schema, bool guards_types) {
    auto copy = std::make_unique<onnx::OpSchema>(schema);
    if (schema.has_data_propagation_function())
      copy->PartialDataPropagationFunction(
          [inner = schema.GetDataPropagationFunction()](onnx::DataPropagationContext& context) {
            if (!has_long_vector(context)) inner(context);
          });
    if (guards_types && schema.has_type_and_shape_inference_function())
      copy->TypeAndShapeInferenceFunction(
          [inner = schema.GetTypeAndShapeInferenceFunction(), kernel = kernel_input(schema.Name()),
           first = static_cast<std::size_t>(schema.Name() == "ConstantOfShape" ? 0 : 1)](
              onnx::InferenceContext& context) {
            const bool skip =
                kernel > 0 ? has_odd_kernel(context, kernel) : has_long_vector(context, first);
            if (!skip) inner(context);
          });
    return copy;
  }

  mutable std::mutex mutex_;
  mutable std::map<const onnx::OpSchema*, std::unique_ptr<onnx::OpSchema>> guarded_;
};

}  // namespace

const onnx::ISchemaRegistry& guarded_schemas() {
  // Never destroyed: inference may run while static objects go.
  static const GuardedSchemas* const schemas = new GuardedSchemas;
  return *schemas;
}

}  // namespace tenonnx
