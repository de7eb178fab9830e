// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// replace_grid_sample_int8_lut: samples int8 values in fixed point, as integer devices compute it.
//
// before: y = GridSample(value, grid), linear, padding zeros or border
// after:  q = QuantizeLinear(value, scale, 0), int8, scale = range / 127
//         y = tenonnx.Int8LutGridSample(q, grid)     weights from two 8-bit tables, sum in int32
//   output=int8: that gives int8 in the same scale, and DequantizeLinear makes y of it
// A value that a DequantizeLinear with one int8 scale and zero point makes is taken as the int8
// that it is, with those.
//
// Options: range=MAX: the largest magnitude of the values, of every site; range.TENSOR=MAX: of the
//   site that samples TENSOR, before `range`. Take it from calibration: what exceeds it saturates.
//   output: float (default), which is not rounded to int8 again, or int8.
// Class bounded, in units of scale, while values are within their range (real values beyond it fail
// the proof):
//   1/2            rounding a value to int8; none where it is int8
//   2              the fixed point (int8_lut_grid_sample.h): 1/512 pixel and 1/510 of a weight on
//                  each axis, times a step of 255 between neighbours
//   1/2            rounding the result, with output=int8
// and the rounding of float32 coordinates, 2^-22 (W + H + 2) pixels. The bound of the graph is the
// largest of its sites. Source: kernels/int8_lut_grid_sample/int8_lut_grid_sample.h.
// Refuses: nearest, cubic, reflection; a value without a range; H or W beyond 2^22;
// anything but float32 images (rank 4) of known height and width.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/int8_lut_grid_sample/int8_lut_grid_sample.h"
#include "model/graph.h"
#include "passes/fusion.h"
#include "passes/grid_sample_form.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {
namespace {

constexpr const char* kPass = "replace_grid_sample_int8_lut";
constexpr std::string_view kRangeOf = "range.";

struct Options {
  std::map<std::string, double> ranges;  // by tensor; "" for every other
  bool int8_output = false;

  std::optional<double> range_of(const std::string& tensor) const {
    for (const std::string& name : {tensor, std::string()})
      if (const auto found = ranges.find(name); found != ranges.end()) return found->second;
    return std::nullopt;
  }
};

Result<Options> read_options(const PassOptions& given) {
  Options read;
  PassOptions others;
  for (const auto& [name, text] : given) {
    const bool of_tensor = name.starts_with(kRangeOf);
    if (name != "range" && !of_tensor) {
      others[name] = text;
      continue;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    // Above it scale or its product with 255 is no float32.
    if (error != std::errc() || end != text.data() + text.size() || !(value > 1e-30) ||
        !(value < 1e30))
      return InvalidArgument("{}: {} must be a number above 0, got '{}'", kPass, name, text);
    read.ranges[of_tensor ? name.substr(kRangeOf.size()) : std::string()] = value;
  }
  TENONNX_RETURN_IF_ERROR(only_options(kPass, others, {"output", "range", "range.TENSOR"}));
  if (const auto output = others.find("output"); output != others.end()) {
    if (output->second != "float" && output->second != "int8")
      return InvalidArgument("{}: output must be float or int8, got '{}'", kPass, output->second);
    read.int8_output = output->second == "int8";
  }
  return read;
}

// The values as int8.
struct Int8Value {
  std::string tensor;  // empty: `site.value` has to be quantised
  float scale = 0;
  std::int8_t zero_point = 0;
};

// What a DequantizeLinear with one scale makes the value of.
std::optional<Int8Value> dequantized(const Rewriter& r, const std::string& value) {
  const int made = r.producer(value, "DequantizeLinear");
  if (made < 0) return std::nullopt;
  const onnx::NodeProto& node = r.node(made);
  if (r.dtype(node.input(0)) != DType::kInt8) return std::nullopt;
  const auto scale = r.scalar(node.input(1));
  if (!scale || !(*scale > 0)) return std::nullopt;
  Int8Value found{node.input(0), static_cast<float>(*scale), 0};
  if (node.input_size() > 2 && !node.input(2).empty()) {
    const Tensor* zero = r.constant(node.input(2));
    if (zero == nullptr || zero->dtype() != DType::kInt8 || zero->size() != 1) return std::nullopt;
    found.zero_point = *zero->data<std::int8_t>();
  }
  return found;
}

std::string reason_against(const GridSampleNode& site) {
  if (!site.linear())
    return fmt::format("its mode is {}, not linear", to_string(site.options.mode));
  if (site.options.padding == GridSamplePadding::kReflection)
    return "its padding is reflection: the fixed point has zeros and border";
  Int8LutGridSample call;
  call.channels = 1;
  call.height = site.height;
  call.width = site.width;
  return call.check();
}

double bound_of(const GridSampleNode& site, const Int8Value& value, bool int8_output) {
  constexpr double kStep = 255;
  const double pixels = static_cast<double>(site.width + site.height + 2) * 0x1p-22;
  double units = 2 * kStep * kInt8LutAxisError + kStep * pixels;
  units += 128 * 0x1p-20;  // float32 products and sums, on both sides
  if (value.tensor.empty()) units += 0.5;
  if (int8_output) units += 0.5;
  return units * static_cast<double>(value.scale);
}

class Replacer {
 public:
  Replacer(Model& model, const Options& options) : model_(model), r_(model), options_(options) {}

  Result<PassOutcome> run() {
    TENONNX_RETURN_IF_ERROR(
        for_each_grid_sample(r_, [this](const GridSampleNode& site) { return rule(site); }));
    PassOutcome outcome = r_.finish();
    if (outcome.applied == 0) return outcome;
    outcome.bound = Limit{bound_, bound_origin_};
    outcome.holds_within = std::move(holds_within_);
    outcome.recomputed = std::move(recomputed_);
    onnx::ModelProto& proto = model_.mutable_proto();
    TENONNX_RETURN_IF_ERROR(import_opset(proto, "tenonnx", 1));
    // ONNX infers nothing through an operator that it does not know.
    for (onnx::ValueInfoProto& info : types_) {
      const auto& known = proto.graph().value_info();
      const auto& outputs = proto.graph().output();
      const auto same = [&](const onnx::ValueInfoProto& v) { return v.name() == info.name(); };
      if (std::none_of(known.begin(), known.end(), same) &&
          std::none_of(outputs.begin(), outputs.end(), same))
        *proto.mutable_graph()->add_value_info() = std::move(info);
    }
    return outcome;
  }

 private:
  // Why the node stays.
  std::string rule(const GridSampleNode& site) {
    if (std::string why = reason_against(site); !why.empty()) return why;
    Int8Value value;
    if (const auto found = dequantized(r_, site.value)) {
      value = *found;
    } else if (const auto range = options_.range_of(site.value)) {
      value.scale = static_cast<float>(*range / 127);
    } else {
      return fmt::format(
          "no range of '{0}' is known: give range=MAX or range.{0}=MAX, its largest magnitude in "
          "calibration",
          site.value);
    }
    if (!r_.begin({site.node})) return {};
    SiteWriter w(r_, site.node);
    const std::string scale = w.scalar(static_cast<double>(value.scale));
    const Tensor zero = Tensor::from<std::int8_t>(DType::kInt8, {}, {value.zero_point});
    std::string zero_name;
    if (value.tensor.empty() || options_.int8_output) zero_name = w.constant("zero_point", zero);
    const std::string q = value.tensor.empty()
                              ? w.add("QuantizeLinear", {site.value, scale, zero_name})
                              : value.tensor;
    const std::string sampled = options_.int8_output ? w.fresh("int8") : site.output;
    onnx::NodeProto node = make_node("Int8LutGridSample", {q, site.grid}, {});
    node.set_domain("tenonnx");
    if (!options_.int8_output) node.add_output("");
    node.add_output(sampled);
    set_attribute(node, "value_scale", value.scale);
    set_attribute(node, "value_zero_point", std::int64_t{value.zero_point});
    set_attribute(node, "padding_mode", to_string(site.options.padding));
    set_attribute(node, "align_corners", std::int64_t{site.options.align_corners ? 1 : 0});
    if (options_.int8_output) {
      w.insert(std::move(node));
      w.finish("DequantizeLinear", {sampled, scale, zero_name});
    } else {
      r_.replace(site.node, std::move(node));
    }
    add_type(sampled, site);
    const double bound = bound_of(site, value, options_.int8_output);
    recomputed_.emplace(site.output, bound);
    if (value.tensor.empty())
      holds_within_.emplace(site.value, 127.5 * static_cast<double>(value.scale));  // rounds to 127
    if (bound > bound_) {
      bound_ = bound;
      bound_origin_ =
          fmt::format("{:.3f} units of the scale {:.3g} of '{}'",
                      bound / static_cast<double>(value.scale), value.scale, site.value);
    }
    r_.apply(site.node, fmt::format("int8 of scale {:.3g}{}, within {:.3g}", value.scale,
                                    value.tensor.empty() ? "" : " as they are", bound));
    return {};
  }

  void add_type(const std::string& name, const GridSampleNode& site) {
    onnx::ValueInfoProto info;
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(options_.int8_output ? onnx::TensorProto::INT8 : onnx::TensorProto::FLOAT);
    for (const std::int64_t dim : {site.batch, site.channels, site.out_height, site.out_width}) {
      auto& to = *tensor.mutable_shape()->add_dim();
      if (dim >= 0) to.set_dim_value(dim);
    }
    types_.push_back(std::move(info));
  }

  Model& model_;
  Rewriter r_;
  const Options& options_;
  std::vector<onnx::ValueInfoProto> types_;
  double bound_ = 0;
  std::string bound_origin_;
  std::map<std::string, double> holds_within_, recomputed_;  // PassOutcome
};

}  // namespace

namespace passes {

Result<PassOutcome> replace_grid_sample_int8_lut(Model& model, const PassOptions& given) {
  TENONNX_ASSIGN_OR_RETURN(const Options options, read_options(given));
  return Replacer(model, options).run();
}

}  // namespace passes
}  // namespace tenonnx
