// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <string>
#include <utility>

#include "base/status.h"
#include "contract/contract.h"
#include "contract/list.h"

namespace tenonnx {
namespace {

Result<TensorInfo> find(std::span<const TensorInfo> infos, const std::string& name,
                        std::string_view kind, std::string_view field) {
  const auto found = std::find_if(infos.begin(), infos.end(),
                                  [&](const TensorInfo& info) { return info.name == name; });
  if (found != infos.end()) return *found;
  return InvalidArgument("the contract's {} names '{}', which is no {} of the graph; it has {}",
                         field, name, kind, list(infos));
}

// A dimension of -1 on either side fits everything.
bool fits(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] >= 0 && b[i] >= 0 && a[i] != b[i]) return false;
  return true;
}

Status check_image(const ImageInput& image, const TensorInfo& info) {
  if (info.dtype != image.dtype)
    return InvalidArgument("the contract says that input '{}' is {}, the graph takes {}{}",
                           image.name, to_string(image.dtype), to_string(info.dtype),
                           info.dtype == DType::kUInt8
                               ? ": pixels as they are, so scale is 1 and the model normalizes"
                               : "");
  const bool planar = image.layout == Layout::kNchw;
  if (!info.has_rank || fits(info.shape, image.shape)) return {};
  const Shape& s = image.shape;
  const Shape other = planar ? Shape{s[0], s[2], s[3], s[1]} : Shape{s[0], s[3], s[1], s[2]};
  return InvalidArgument("the contract says that input '{}' is {} ({}), the graph takes {}{}",
                         image.name, to_string(s), planar ? "NCHW" : "NHWC", to_string(info.shape),
                         fits(info.shape, other)
                             ? fmt::format(": the graph's layout is {}", planar ? "NHWC" : "NCHW")
                             : "");
}

Status check_size(const SizeInput& size, const TensorInfo& info) {
  if (info.dtype != size.dtype) {
    std::string advice;
    if (info.dtype == DType::kInt32)
      advice = ". Set \"dtype\": \"int32\" in the contract's size to have sizes converted";
    return InvalidArgument("the contract says that input '{}' is {}, the graph takes {}{}",
                           size.name, to_string(size.dtype), to_string(info.dtype), advice);
  }
  if (info.has_rank && !fits(info.shape, {1, 2}))
    return InvalidArgument("input '{}' has shape {}; a size is [1,2]: one row of two numbers",
                           size.name, to_string(info.shape));
  return {};
}

struct Expected {
  std::string_view field;
  std::string name;
  Shape shape;  // -1: any
  bool integer;
};

Status check_output(const Expected& expected, const TensorInfo& info) {
  const bool right = expected.integer
                         ? info.dtype == DType::kInt64 || info.dtype == DType::kInt32
                         : info.dtype == DType::kFloat32 || info.dtype == DType::kFloat16;
  if (!right)
    return InvalidArgument("output '{}' (the contract's {}) is {} in the graph; {} is expected",
                           expected.name, expected.field, to_string(info.dtype),
                           expected.integer ? "int64 or int32" : "float32 or float16");
  if (info.has_rank && !fits(info.shape, expected.shape))
    return InvalidArgument("output '{}' (the contract's {}) is {} in the graph; {} is expected",
                           expected.name, expected.field, to_string(info.shape),
                           to_string(expected.shape));
  return {};
}

Status check_outputs(const Contract& contract, std::span<const TensorInfo> graph,
                     std::vector<std::string>& notes) {
  const Outputs& names = contract.outputs;
  std::vector<Expected> all;
  if (names.kind == OutputKind::kDetections)
    all = {{"labels", names.labels, {1, -1}, true},
           {"boxes", names.boxes, {1, -1, 4}, false},
           {"scores", names.scores, {1, -1}, false}};
  else
    all = {{"logits", names.logits, {1, -1, -1}, false},
           {"pred_boxes", names.pred_boxes, {1, -1, 4}, false}};
  std::int64_t rows = -1;
  std::string_view rows_of;
  std::string unknown;
  for (const Expected& expected : all) {
    TENONNX_ASSIGN_OR_RETURN(const TensorInfo info,
                             find(graph, expected.name, "output", expected.field));
    TENONNX_RETURN_IF_ERROR(check_output(expected, info));
    const std::int64_t own = info.shape.size() > 1 ? info.shape[1] : -1;
    if (own < 0) {
      unknown += fmt::format("{}'{}'", unknown.empty() ? "" : ", ", expected.name);
      continue;
    }
    if (rows >= 0 && own != rows)
      return InvalidArgument("output '{}' has {} rows, but '{}' has {}", expected.name, own,
                             rows_of, rows);
    rows = own;
    rows_of = expected.name;
    const auto classes = static_cast<std::int64_t>(contract.classes.size());
    if (expected.field == "logits" && classes > 0 && info.shape[2] >= 0 && info.shape[2] != classes)
      return InvalidArgument("output '{}' has {} classes, but the contract names {}", expected.name,
                             info.shape[2], classes);
  }
  if (!unknown.empty())
    notes.push_back(fmt::format("how many rows {} have is not known before a run", unknown));
  for (const TensorInfo& stated : names.tensors) {
    TENONNX_ASSIGN_OR_RETURN(const TensorInfo info,
                             find(graph, stated.name, "output", "outputs/tensors"));
    if (stated.dtype != info.dtype || (info.has_rank && !fits(stated.shape, info.shape)))
      return InvalidArgument("the contract says that output '{}' is {} {}, the graph gives {} {}",
                             stated.name, to_string(stated.dtype), to_string(stated.shape),
                             to_string(info.dtype), to_string(info.shape));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> check_contract(const Contract& contract,
                                                std::span<const TensorInfo> inputs,
                                                std::span<const TensorInfo> outputs) {
  std::vector<std::string> notes;
  TENONNX_ASSIGN_OR_RETURN(const TensorInfo image,
                           find(inputs, contract.image.name, "input", "image"));
  TENONNX_RETURN_IF_ERROR(check_image(contract.image, image));
  if (contract.size) {
    TENONNX_ASSIGN_OR_RETURN(const TensorInfo size,
                             find(inputs, contract.size->name, "input", "size"));
    TENONNX_RETURN_IF_ERROR(check_size(*contract.size, size));
  }
  for (const TensorInfo& info : inputs)
    if (info.name != contract.image.name && !(contract.size && info.name == contract.size->name))
      return InvalidArgument("the graph's input '{}' {} {} is not in the contract", info.name,
                             to_string(info.dtype), to_string(info.shape));
  TENONNX_RETURN_IF_ERROR(check_outputs(contract, outputs, notes));
  return notes;
}

Result<std::vector<std::string>> check_contract(const Contract& contract, const Model& model) {
  const auto inputs = model.inputs();
  const auto outputs = model.outputs();
  return check_contract(contract, inputs, outputs);
}

}  // namespace tenonnx
