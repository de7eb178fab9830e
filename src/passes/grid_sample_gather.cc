// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/grid_sample_gather.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "device/arithmetic_hint.h"
#include "device/device.h"

namespace tenonnx {
namespace {

constexpr GatherForm kForms[] = {GatherForm::kRows, GatherForm::kElements, GatherForm::kTwoAxis};

// The largest index that a form computes.
std::int64_t largest_index(GatherForm form, std::int64_t batch, const GatherPlan& plan) {
  if (form == GatherForm::kTwoAxis) return std::max(plan.height, plan.width) - 1;
  const std::int64_t pixels = plan.height * plan.width;
  return (form == GatherForm::kRows ? batch * pixels : pixels) - 1;
}

// Why the form cannot be written whatever the arithmetic.
std::string missing(GatherForm form, const GridSampleNode& site) {
  if (form == GatherForm::kRows && site.batch < 0)
    return fmt::format("the number of images of '{}' is not known", site.value);
  if (form == GatherForm::kElements && site.channels < 0)
    return fmt::format("the number of channels of '{}' is not known", site.value);
  return {};
}

// The device's compiler has rules for Gather, and each wants its indices constant.
bool gathers_constant_indices_only(const Device& device) {
  constexpr std::int64_t kIndices = 1;  // of Gather's inputs
  bool any = false, all = true;
  for (const SupportRule& rule : device.supported) {
    if (std::find(rule.operators.begin(), rule.operators.end(), "Gather") == rule.operators.end())
      continue;
    any = true;
    all = all && std::find(rule.constant_inputs.begin(), rule.constant_inputs.end(), kIndices) !=
                     rule.constant_inputs.end();
  }
  return any && all;
}

bool is_float(DType dtype) { return dtype != DType::kInt32; }

}  // namespace

std::string_view to_string(GatherForm form) {
  constexpr std::string_view kNames[] = {"rows", "elements", "two_axis"};
  return kNames[static_cast<int>(form)];
}

Result<GatherOptions> gather_options(std::string_view pass, const PassOptions& options) {
  GatherOptions read;
  read.origin = "index_arithmetic=int32";
  const auto arithmetic = options.find("index_arithmetic"), device = options.find("device");
  if (arithmetic != options.end() && device != options.end())
    return InvalidArgument("{}: give index_arithmetic or device, not both", pass);
  if (arithmetic != options.end()) {
    const std::string& text = arithmetic->second;
    if (text != "int32" && text != "float32" && text != "float16" && text != "bfloat16")
      return InvalidArgument(
          "{}: index_arithmetic must be int32, float32, float16 or bfloat16, got '{}'", pass, text);
    TENONNX_ASSIGN_OR_RETURN(read.indices, dtype_from_string(text));
    read.origin = "index_arithmetic=" + text;
    if (is_float(read.indices)) read.coordinates = read.indices;
  }
  if (device != options.end()) {
    TENONNX_ASSIGN_OR_RETURN(const Device found, find_device(device->second));
    if (!found.arithmetic)
      return InvalidArgument("{}: {}; or give index_arithmetic", pass, no_arithmetic(found));
    if (gathers_constant_indices_only(found))
      read.refusal = fmt::format(
          "device '{}' takes Gather with constant indices alone ({}, supported), and these are "
          "computed: leave the node on the CPU, or take another form "
          "(replace_grid_sample_deform_conv; fold_static_grid of a constant grid)",
          found.name, found.file.filename().string());
    read.indices = found.arithmetic->index_type();
    read.coordinates = found.arithmetic->storage;
    read.origin = fmt::format("device '{}', {}", found.name,
                              found.arithmetic->indices ? "its index arithmetic"
                                                        : "its storage type, as the file says "
                                                          "nothing of indices");
  }
  if (const auto form = options.find("form"); form != options.end() && form->second != "auto") {
    for (const GatherForm known : kForms)
      if (form->second == to_string(known)) read.form = known;
    if (!read.form)
      return InvalidArgument("{}: form must be auto, rows, elements or two_axis, got '{}'", pass,
                             form->second);
  }
  return read;
}

std::string plan_gather(const GridSampleNode& site, const GatherOptions& options, std::int64_t pad,
                        GatherPlan& plan) {
  plan = {};
  if (!options.refusal.empty()) return options.refusal;
  plan.indices = options.indices;
  plan.height = site.height + 2 * pad;
  plan.width = site.width + 2 * pad;
  if (site.batch == 0 || site.points() == 0 || site.channels == 0)
    return "it is empty: there is nothing to sample";
  if (site.out_height < 0 && site.out_width < 0)
    return fmt::format("neither height nor width of '{}' is known", site.grid);
  // The first pixel outside, `size`, is told apart too.
  const std::int64_t side = std::max(plan.height, plan.width);
  if (const std::int64_t most = largest_exact_index(options.coordinates); side > most)
    return fmt::format(
        "no form is exact: coordinate {} is beyond {}, to which {} counts exactly ({})", side, most,
        to_string(options.coordinates), options.origin);
  const std::int64_t bound = largest_exact_index(options.indices);
  std::string why;
  for (const GatherForm form : kForms) {
    if (options.form && form != *options.form) continue;
    std::string reason = missing(form, site);
    if (reason.empty()) {
      const std::int64_t largest = largest_index(form, site.batch, plan);
      if (largest <= bound) {
        plan.form = form;
        return {};
      }
      reason = fmt::format("index {} is beyond {}, to which {} counts exactly ({})", largest, bound,
                           to_string(options.indices), options.origin);
    }
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", to_string(form), reason);
  }
  return "no form is exact: " + why;
}

PixelReader::PixelReader(SiteWriter& w, const GridSampleNode& site, const GatherPlan& plan,
                         const std::string& value)
    : w_(w), plan_(plan), batch_(site.batch) {
  const std::int64_t pixels = plan.height * plan.width;
  switch (plan.form) {
    case GatherForm::kRows:
      source_ = w.reshape(w.transpose(value, {0, 2, 3, 1}), {batch_ * pixels, -1});
      break;
    case GatherForm::kElements:
      source_ = w.reshape(value, {0, 0, pixels});
      channels_ = w.integers({1, site.channels, 1});
      break;
    case GatherForm::kTwoAxis:
      source_ = w.transpose(value, {0, 2, 3, 1});
      break;
  }
}

std::string PixelReader::row(const std::string& y) {
  if (plan_.form == GatherForm::kTwoAxis) return w_.cast(y, DType::kInt64);
  const bool floats = is_float(plan_.indices);
  std::string row =
      floats ? w_.add("Mul", {y, w_.scalar(static_cast<double>(plan_.width))})
             : w_.add("Mul", {w_.cast(y, DType::kInt32), w_.integer(DType::kInt32, plan_.width)});
  if (plan_.form == GatherForm::kElements || batch_ == 1) return row;
  // Where each image begins.
  Tensor first(floats ? DType::kFloat32 : DType::kInt32, {batch_, 1, 1});
  for (std::int64_t n = 0; n < batch_; ++n) {
    const std::int64_t at = n * plan_.height * plan_.width;
    if (floats)
      first.mutable_data<float>()[n] = static_cast<float>(at);
    else
      first.mutable_data<std::int32_t>()[n] = static_cast<std::int32_t>(at);
  }
  if (first_.empty()) first_ = w_.constant("first_pixel", first);
  return w_.add("Add", {row, first_});
}

std::string PixelReader::column(const std::string& x) {
  if (plan_.form == GatherForm::kTwoAxis) return w_.cast(x, DType::kInt64);
  return is_float(plan_.indices) ? x : w_.cast(x, DType::kInt32);
}

std::string PixelReader::read(const std::string& row, const std::string& column) {
  if (plan_.form == GatherForm::kTwoAxis)
    return w_.add("GatherND", {source_, w_.add("Concat", {row, column}, {{"axis", 2}})},
                  {{"batch_dims", 1}});
  std::string index = w_.add("Add", {row, column});
  if (is_float(plan_.indices)) index = w_.cast(index, DType::kInt32);
  if (plan_.form == GatherForm::kRows)
    return w_.add("Gather", {source_, w_.reshape(index, {0, -1})}, {{"axis", 0}});
  return w_.add("GatherElements", {source_, w_.add("Expand", {index, channels_})}, {{"axis", 2}});
}

void PixelReader::finish(const std::string& points, const GridSampleNode& site) {
  const bool last = plan_.form != GatherForm::kElements;
  w_.finish_images(last ? w_.transpose(points, {0, 2, 1}) : points, site);
}

}  // namespace tenonnx
