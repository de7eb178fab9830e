// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/inputs.h"

#include "base/status.h"

namespace tenonnx {
namespace {

std::string list(std::span<const TensorInfo> infos) {
  std::string text;
  for (const TensorInfo& info : infos) {
    if (!text.empty()) text += "; ";
    text += to_string(info);
  }
  return text.empty() ? "none" : text;
}

bool is_integer(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

std::string dtype_hint(DType allowed, DType given) {
  if (is_integer(allowed) && is_integer(given)) {
    return fmt::format(
        " Convert the values to {}: the two are not interchangeable, a buffer of one "
        "read as the other gives wrong numbers.",
        to_string(allowed));
  }
  if (allowed == DType::kFloat32 && given == DType::kUInt8)
    return " Convert pixels to float32 and scale them as the model's contract says.";
  return fmt::format(" Convert the tensor to {} first.", to_string(allowed));
}

Status check_input(const TensorInfo& allowed, const Tensor& given) {
  if (!given.defined())
    return InvalidArgument("input '{}' is not set; the model takes {} {}", allowed.name,
                           to_string(allowed.dtype), to_string(allowed.shape));
  if (given.dtype() != allowed.dtype) {
    return InvalidArgument("input '{}' is {}, the model takes {}.{}", allowed.name,
                           to_string(given.dtype()), to_string(allowed.dtype),
                           dtype_hint(allowed.dtype, given.dtype()));
  }
  const Shape& shape = given.shape();
  if (!allowed.has_rank) return {};
  bool fits = shape.size() == allowed.shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i)
    fits = allowed.shape[i] < 0 || allowed.shape[i] == shape[i];
  if (!fits) {
    return InvalidArgument("input '{}' has shape {}, the model takes {}", allowed.name,
                           to_string(shape), to_string(allowed.shape));
  }
  return {};
}

}  // namespace

std::string to_string(const TensorInfo& info) {
  return fmt::format("{} {} {}", info.name, to_string(info.dtype),
                     info.has_rank ? to_string(info.shape) : "of any shape");
}

Status check_inputs(std::span<const TensorInfo> allowed, std::span<const Tensor> given) {
  if (allowed.size() != given.size()) {
    return InvalidArgument("{} inputs given, the model takes {}: {}", given.size(), allowed.size(),
                           list(allowed));
  }
  for (std::size_t i = 0; i < allowed.size(); ++i)
    TENONNX_RETURN_IF_ERROR(check_input(allowed[i], given[i]));
  return {};
}

Result<std::vector<Tensor>> order_by_name(std::span<const TensorInfo> allowed,
                                          const TensorMap& given) {
  std::vector<Tensor> ordered;
  std::string missing;
  for (const TensorInfo& info : allowed) {
    const auto it = given.find(info.name);
    if (it == given.end()) {
      missing += fmt::format("{}'{}'", missing.empty() ? "" : ", ", info.name);
      continue;
    }
    ordered.push_back(it->second);
  }
  std::string unknown;
  for (const auto& [name, tensor] : given) {
    bool known = false;
    for (const TensorInfo& info : allowed) known |= info.name == name;
    if (!known) unknown += fmt::format("{}'{}'", unknown.empty() ? "" : ", ", name);
  }
  if (missing.empty() && unknown.empty()) return ordered;
  std::string problem;
  if (!missing.empty()) problem = "missing input " + missing;
  if (!unknown.empty()) {
    if (!problem.empty()) problem += ", ";
    problem += "unknown input " + unknown;
  }
  return InvalidArgument("{}; the model's inputs are: {}", problem, list(allowed));
}

}  // namespace tenonnx
