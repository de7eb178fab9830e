// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <charconv>
#include <cmath>
#include <random>

#include "base/npy.h"
#include "base/status.h"
#include "device/device.h"
#include "metrics/elements.h"
#include "metrics/tensor_error.h"
#include "numerics/inject.h"
#include "passes/sim_common.h"
#include "passes/sim_nodes.h"

namespace tenonnx {
namespace {

constexpr std::string_view kPossible =
    "possible are gauss:SIGMA (in units of the tensor's rms), scale:FACTOR, round:fp16, "
    "round:bf16, round:DEVICE (as sim:DEVICE stores), FILE.npz (added) and replace:FILE.npz";

Result<double> number_behind(std::string_view text, const std::string& all) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return InvalidArgument("--error '{}': '{}' is no finite number; {}", all, text, kPossible);
  return value;
}

// The array of a file that is meant for `tensor`.
Result<Tensor> read_array(const std::filesystem::path& file, const std::string& tensor) {
  TENONNX_ASSIGN_OR_RETURN(const TensorMap arrays, read_npz(file));
  if (const auto found = arrays.find(tensor); found != arrays.end()) return found->second;
  if (arrays.size() == 1) return arrays.begin()->second;
  return NotFound("'{}' holds {} arrays and none is named as the tensor '{}'", file.string(),
                  arrays.size(), tensor);
}

}  // namespace

Result<InjectedError> parse_error(const std::string& text) {
  InjectedError error;
  error.text = text;
  const auto starts = [&](std::string_view with) { return text.starts_with(with); };
  if (starts("gauss:") || starts("scale:")) {
    TENONNX_ASSIGN_OR_RETURN(error.amount, number_behind(std::string_view(text).substr(6), text));
    error.kind = starts("gauss:") ? InjectedError::Kind::kGauss : InjectedError::Kind::kScale;
    if (error.kind == InjectedError::Kind::kGauss && error.amount < 0)
      return InvalidArgument("--error '{}': a sigma is at least 0", text);
    return error;
  }
  if (starts("round:")) {
    const std::string to = text.substr(6);
    error.kind = InjectedError::Kind::kRound;
    if (to == "fp16" || to == "float16" || to == "bf16" || to == "bfloat16") {
      error.rounding.storage = to.starts_with('b') ? DType::kBFloat16 : DType::kFloat16;
      return error;
    }
    const Result<Device> device = find_device(to);
    if (!device.ok() || !device->arithmetic || device->arithmetic->storage == DType::kFloat32)
      return InvalidArgument(
          "--error '{}': there is no rounding to '{}'; {}; {}", text, to, kPossible,
          device.ok() ? "that device has no arithmetic that rounds" : device.status().message());
    error.device = to;
    return error;
  }
  const bool replace = starts("replace:");
  error.file = replace ? text.substr(8) : text;
  if (error.file.extension() != ".npz")
    return InvalidArgument("--error '{}' is none that is known; {}", text, kPossible);
  error.kind = replace ? InjectedError::Kind::kReplace : InjectedError::Kind::kAdd;
  return error;
}

Status read_error_file(InjectedError& error, const std::string& tensor) {
  if (error.file.empty()) return {};
  TENONNX_ASSIGN_OR_RETURN(const Tensor read, read_array(error.file, tensor));
  TENONNX_ASSIGN_OR_RETURN(error.array, to_float32(read));
  return {};
}

Status round_as_made_by(std::string_view op_type, InjectedError& error) {
  TENONNX_ASSIGN_OR_RETURN(const Device device, find_device(error.device));
  if (!device.arithmetic) return InvalidArgument("device '{}' has no arithmetic", error.device);
  error.rounding = stored_results(*device.arithmetic, own_arithmetic(*device.arithmetic, op_type),
                                  is_product(op_type));
  return {};
}

Result<Tensor> with_error(const Tensor& y, const InjectedError& error, const std::string& tensor,
                          double dose, std::uint64_t seed) {
  if (y.dtype() != DType::kFloat32)
    return InvalidArgument("'{}' is {}: errors are put into float32 tensors", tensor,
                           to_string(y.dtype()));
  const Tensor& given = error.array;
  if (given.dtype() != DType::kUndefined && given.shape() != y.shape())
    return InvalidArgument("'{}' in '{}' is {}, the tensor is {}", tensor, error.file.string(),
                           to_string(given.shape()), to_string(y.shape()));
  Tensor out(DType::kFloat32, y.shape());
  const float* from = y.data<float>();
  auto* to = static_cast<float*>(out.mutable_raw());
  double squares = 0;
  std::int64_t finite = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    if (!std::isfinite(from[i])) continue;
    squares += double{from[i]} * from[i];
    ++finite;
  }
  const double rms = finite == 0 ? 0 : std::sqrt(squares / static_cast<double>(finite));
  std::vector<float> rounded;
  if (error.kind == InjectedError::Kind::kRound) {
    rounded.resize(static_cast<std::size_t>(y.size()));
    round_values(error.rounding, from, rounded.data(), y.size());
  }
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const double value = from[i];
    double wrong = value;
    switch (error.kind) {
      case InjectedError::Kind::kGauss:
        wrong = value + error.amount * rms * normal(random);
        break;
      case InjectedError::Kind::kScale:
        wrong = value * error.amount;
        break;
      case InjectedError::Kind::kRound:
        wrong = rounded[static_cast<std::size_t>(i)];
        break;
      case InjectedError::Kind::kAdd:
        wrong = value + given.data<float>()[i];
        break;
      case InjectedError::Kind::kReplace:
        wrong = given.data<float>()[i];
        break;
    }
    // At dose 1 the erroneous value itself, not a sum that rounds to its neighbour.
    to[i] = !std::isfinite(value) ? from[i]
            : dose == 1           ? static_cast<float>(wrong)
                                  : static_cast<float>(value + dose * (wrong - value));
  }
  return out;
}

}  // namespace tenonnx
