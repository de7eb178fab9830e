// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/agree.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <set>

#include "adapters/address.h"
#include "adapters/sim.h"
#include "base/nearest.h"
#include "base/status.h"
#include "device/agreement.h"
#include "flow/agree_sides.h"
#include "model/text.h"

namespace tenonnx {
namespace {

// The emulator's float32 outputs are off their float16 value by one float32 step, 2^-13 of a
// float16's.
constexpr double kOneStep = 1.001;

struct Range {
  const char* name;
  double low, high;  // of magnitudes
};
// float16: subnormal below 6.1e-5, largest 65504.
constexpr Range kNormal{"normal", 0.05, 4}, kSubnormal{"subnormal", 1e-6, 6e-5},
    kBeyond{"beyond 65504", 1e3, 1.2e5};

class Values {
 public:
  explicit Values(std::uint64_t seed) : engine_(seed) {}
  // Magnitudes uniform in the logarithm beyond the normal range, so that all of it is met.
  float signed_value(const Range& range) {
    return (uniform() < 0.5 ? -1.0F : 1.0F) * positive(range);
  }
  float positive(const Range& range) {
    const double at = uniform();
    if (&range == &kNormal || range.name == kNormal.name)
      return static_cast<float>(range.low + at * (range.high - range.low));
    return static_cast<float>(range.low * std::pow(range.high / range.low, at));
  }
  float unit(double most) { return static_cast<float>((2 * uniform() - 1) * most); }

 private:
  // Not std::uniform_real_distribution, whose numbers are each library's own.
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  std::mt19937_64 engine_;
};

bool is_weight(const std::string& name) { return name.starts_with("w"); }

Tensor filled(const TensorInfo& info, const std::function<float()>& next) {
  std::vector<float> values(static_cast<std::size_t>(element_count(info.shape)));
  std::generate(values.begin(), values.end(), next);
  return Tensor::from(DType::kFloat32, info.shape, values);
}

// Weights as a network has them: sums of K products stay of the size of the inputs.
Tensor weight(const TensorInfo& info, Values& values) {
  if (info.name == "w_scale") return filled(info, [&] { return 1 + values.unit(0.5); });
  if (info.name == "w_bias") return filled(info, [&] { return values.unit(0.5); });
  const bool conv = info.shape.size() == 4;
  const double k = conv ? static_cast<double>(info.shape[1] * info.shape[2] * info.shape[3])
                        : static_cast<double>(info.shape[0]);
  return filled(info, [&, k] { return values.unit(std::sqrt(3 / k)); });
}

Result<Model> model_of(const AgreeCase& one, std::uint64_t seed) {
  TENONNX_ASSIGN_OR_RETURN(Model model, model_from_text(one.text));
  Values values(seed);
  onnx::ModelProto proto = model.proto();
  auto& inputs = *proto.mutable_graph()->mutable_input();
  for (const TensorInfo& info : model.inputs()) {
    if (!is_weight(info.name)) continue;
    const Tensor tensor = weight(info, values);
    onnx::TensorProto& initializer = *proto.mutable_graph()->add_initializer();
    initializer.set_name(info.name);
    initializer.set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t dim : info.shape) initializer.add_dims(dim);
    initializer.set_raw_data(tensor.raw(), static_cast<std::size_t>(tensor.bytes()));
    for (int i = 0; i < inputs.size(); ++i)
      if (inputs[i].name() == info.name) inputs.DeleteSubrange(i, 1), i = inputs.size();
  }
  return Model::from_proto(std::move(proto));
}

TensorMap inputs_of(const AgreeCase& one, const Model& model, const Range& range,
                    std::uint64_t seed) {
  Values values(seed);
  TensorMap out;
  for (const TensorInfo& info : model.inputs()) {
    const auto next = [&]() -> float {
      if (info.name == "grid") return values.unit(1.2);
      switch (one.values) {
        case AgreeCase::Values::kPositive:
          return values.positive(range);
        case AgreeCase::Values::kUnit:
        case AgreeCase::Values::kSigned:
          break;
      }
      return values.signed_value(range);
    };
    out.emplace(info.name, filled(info, next));
  }
  return out;
}

// What one graph comes to at each of its ranges; the status of the side that does not take it.
Status run_case(const AgreeCase& one, const AgreeSides& sides, const AgreeOptions& options,
                AgreeResult& result) {
  TENONNX_ASSIGN_OR_RETURN(const Model model, model_of(one, options.seed));
  TENONNX_ASSIGN_OR_RETURN(const auto device, sides.device->load(model, sides.on_device));
  TENONNX_ASSIGN_OR_RETURN(const auto simulation,
                           sides.simulation->load(model, sides.on_simulation));
  std::vector<const Range*> ranges = {&kNormal};
  if (one.values != AgreeCase::Values::kUnit) ranges.push_back(&kSubnormal);
  if (one.beyond) ranges.push_back(&kBeyond);
  for (const Range* range : ranges) {
    const TensorMap inputs = inputs_of(one, model, *range, options.seed);
    TENONNX_ASSIGN_OR_RETURN(const TensorMap a, device->run(inputs));
    TENONNX_ASSIGN_OR_RETURN(const TensorMap b, simulation->run(inputs));
    Agreement made{one.op_type, one.name, range->name};
    add_elements(a.at("y"), b.at("y"), made);
    result.cases.push_back(std::move(made));
  }
  return {};
}

Status check_options(const AgreeOptions& options) {
  if (!options.write.empty() && (!options.only.empty() || options.budget_seconds > 0))
    return InvalidArgument(
        "--write puts the figures of the whole pack into '{}': leave out --only and --budget",
        options.write.string());
  std::vector<std::string> known;
  for (const AgreeCase& one : agree_cases())
    if (known.empty() || known.back() != one.op_type) known.push_back(one.op_type);
  for (const std::string& type : options.only)
    if (std::find(known.begin(), known.end(), type) == known.end())
      return InvalidArgument("--only '{}': the pack has no graph of that operator; it has {}", type,
                             nearest_names(type, known));
  return {};
}

}  // namespace

double half_steps(double a, double b) {
  const double largest = std::max(std::abs(a), std::abs(b));
  if (largest == 0) return 0;
  const int exponent = std::max(std::ilogb(largest), -14);  // 2^-14: the least normal number
  return std::abs(a - b) / std::ldexp(1.0, exponent - 10);
}

void add_elements(const Tensor& device, const Tensor& simulated, Agreement& out) {
  const float* a = device.data<float>();
  const float* b = simulated.data<float>();
  double sum = out.bias * static_cast<double>(out.finite);
  const std::int64_t count = element_count(device.shape());
  out.elements += count;
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = a[i], y = b[i];
    if (!std::isfinite(x) || !std::isfinite(y)) {
      const bool same = (std::isnan(x) && std::isnan(y)) || x == y;
      out.within += same ? 1 : 0;
      out.not_finite += std::isfinite(x) != std::isfinite(y) ? 1 : 0;
      continue;
    }
    const double steps = half_steps(x, y);
    ++out.finite;
    sum += x < y ? -steps : steps;
    out.within += steps <= kOneStep ? 1 : 0;
    if (steps <= out.worst) continue;
    out.worst = steps;
    out.worst_device = x;
    out.worst_simulated = y;
  }
  out.bias = out.finite > 0 ? sum / static_cast<double>(out.finite) : 0;
}

double Agreement::share() const {
  return elements > 0 ? static_cast<double>(within) / static_cast<double>(elements) : 0;
}

Result<AgreeSides> open_sides(const AgreeOptions& options, AgreeResult& result) {
  AgreeSides sides;
  TENONNX_ASSIGN_OR_RETURN(sides.device, make_executor(options.on));
  TENONNX_ASSIGN_OR_RETURN(sides.simulation, make_executor(options.against));
  sides.on_device = sides.on_simulation = options.load;
  sides.on_device.disable_fallback = sides.on_device.reuse_results = true;
  TENONNX_ASSIGN_OR_RETURN(const auto simulated, simulated_device(options.against));
  if (simulated && simulated->arithmetic) sides.reasons = simulated->arithmetic->cannot_agree;
  result.on = options.on;
  result.against = options.against;
  result.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  std::set<std::string> seen;
  for (const Executor* side : {sides.device.get(), sides.simulation.get()})
    for (const auto& [name, version] : side->versions())
      if (seen.insert(name).second) result.versions.emplace_back(name, version);
  return sides;
}

void AgreeSides::set_reason(Agreement& one) const {
  if (one.share() >= kGoodShare) return;
  for (const CannotAgree& known : reasons) {
    if (known.op_type != one.op_type || (!known.name.empty() && known.name != one.name) ||
        (!known.range.empty() && known.range != one.range))
      continue;
    one.reason = known.reason;
    return;
  }
}

Result<AgreeResult> agree(const AgreeOptions& options) {
  TENONNX_RETURN_IF_ERROR(check_options(options));
  AgreeResult result;
  TENONNX_ASSIGN_OR_RETURN(const AgreeSides sides, open_sides(options, result));
  std::vector<const AgreeCase*> chosen;
  for (const AgreeCase& one : agree_cases())
    if (options.only.empty() ||
        std::find(options.only.begin(), options.only.end(), one.op_type) != options.only.end())
      chosen.push_back(&one);
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (options.progress)
      options.progress("operators", static_cast<std::int64_t>(i),
                       static_cast<std::int64_t>(chosen.size()));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    if (options.budget_seconds > 0 && spent.count() > options.budget_seconds) {
      result.not_run.emplace_back(chosen[i]->name, "the budget was used up");
      continue;
    }
    const Status status = run_case(*chosen[i], sides, options, result);
    if (!status.ok()) result.not_run.emplace_back(chosen[i]->name, status.message());
  }
  if (options.progress)
    options.progress("operators", static_cast<std::int64_t>(chosen.size()),
                     static_cast<std::int64_t>(chosen.size()));
  for (Agreement& one : result.cases) sides.set_reason(one);
  if (!options.write.empty())
    TENONNX_RETURN_IF_ERROR(write_agreement(options.write, measured_agreement(result)));
  return result;
}

MeasuredAgreement measured_agreement(const AgreeResult& result) {
  MeasuredAgreement out;
  out.on = result.on;
  out.checked = result.date;
  // The device file's hash is of the file before this was written into it.
  for (const auto& version : result.versions)
    if (version.first != "device file") out.versions.push_back(version);
  for (const Agreement& one : result.cases) {
    auto found = std::find_if(out.operators.begin(), out.operators.end(),
                              [&](const auto& known) { return known.op_type == one.op_type; });
    if (found == out.operators.end())
      found = out.operators.insert(out.operators.end(), OperatorAgreement{one.op_type});
    // `bias` is a sum until all cases are in.
    ++found->cases;
    found->good += one.share() >= kGoodShare ? 1 : 0;
    found->elements += one.elements;
    found->within += one.within;
    found->bias += one.bias * static_cast<double>(one.elements);
    found->worst = std::max(found->worst, one.worst);
  }
  for (OperatorAgreement& one : out.operators) one.bias /= static_cast<double>(one.elements);
  return out;
}

}  // namespace tenonnx
