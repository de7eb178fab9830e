// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/static_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/tensor_proto.h"
#include "ort/ops_library.h"
#include "passes/fold_region.h"
#include "passes/fold_rules.h"
#include "passes/static_axis.h"

namespace tenonnx {
namespace {

constexpr std::int64_t kOpsVersion = 1;  // of domain tenonnx, kernels.inc

// Fills what only the grid knows. Returns why the grid does not belong to the site.
std::string complete(GridSampleNode& site, const Tensor& grid) {
  const Shape& s = grid.shape();
  if (grid.dtype() != DType::kFloat32 || s.size() != 4 || s[3] != 2)
    return fmt::format("its grid is {} {}, expected float32 [N,Ho,Wo,2]", to_string(grid.dtype()),
                       to_string(s));
  if (grid.size() == 0) return "its grid is empty: there is nothing to sample";
  if (site.batch < 0) site.batch = s[0];
  if (site.batch != s[0])
    return fmt::format("its grid has {} images, '{}' has {}", s[0], site.value, site.batch);
  site.out_height = s[1];
  site.out_width = s[2];
  if (site.height * site.width >= std::int64_t{1} << 31)
    return fmt::format("'{}' has {} x {} pixels, more than int32 counts", site.value, site.height,
                       site.width);
  return {};
}

}  // namespace

StaticGrids::Found StaticGrids::compute(const Rewriter& r, const GridSampleNode& site) const {
  Found found;
  if (const Tensor* constant = r.constant(site.grid)) {
    found.grid = constant->clone();
    return found;
  }
  // Everything that the grid is made of.
  std::set<std::string, std::less<>> seen = {site.grid};
  std::vector<std::string> open = {site.grid};
  std::set<int> nodes;
  Region region;
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    const Value* value = r.index().find(name);
    const int producer = value == nullptr ? -1 : value->producer;
    if (producer < 0) {
      if (value == nullptr || value->is_input || value->initializer == nullptr) {
        found.why = fmt::format(
            "its grid depends on '{}', which is no constant: only a grid that is independent of "
            "the inputs is folded (where it follows from a static shape: fold_constants first)",
            name);
        return found;
      }
      region.constants.push_back(value->initializer);
      continue;
    }
    if (!nodes.insert(producer).second) continue;
    if (never_folded(r.node(producer))) {
      found.why = fmt::format("its grid comes from {}, which is never computed in advance",
                              node_label(r.node(producer)));
      return found;
    }
    for (const std::string_view input : all_inputs(r.node(producer)))
      if (!input.empty() && seen.emplace(input).second) open.emplace_back(input);
  }
  for (const int i : nodes) region.nodes.push_back(&r.node(i));
  region.outputs.push_back({site.grid, DType::kUndefined, {}});
  auto values = evaluate(model_, region);
  if (!values.ok())
    found.why = fmt::format("its grid cannot be computed: {}", values.status().message());
  else
    found.grid = std::move(values->front());
  return found;
}

const Tensor* StaticGrids::find(const Rewriter& r, GridSampleNode& site, std::string& why) {
  auto it = found_.find(site.grid);
  if (it == found_.end()) it = found_.emplace(site.grid, compute(r, site)).first;
  const auto& [grid, unknown] = it->second;
  why = unknown.empty() ? complete(site, grid) : unknown;
  return why.empty() ? &grid : nullptr;
}

std::int64_t images_with_own_grid(const Tensor& grid) {
  const std::int64_t each = grid.size() / grid.shape()[0];
  const float* g = grid.data<float>();
  for (std::int64_t i = each; i < grid.size(); ++i) {
    const float a = g[i], b = g[i % each];
    if (!(a == b || (a != a && b != b))) return grid.shape()[0];
  }
  return 1;
}

StaticTaps static_taps(const GridSampleNode& site, const Tensor& grid) {
  StaticTaps made;
  made.images = images_with_own_grid(grid);
  made.points = grid.shape()[1] * grid.shape()[2];
  made.taps = site.linear() ? 4 : 1;
  const float* g = grid.data<float>();
  for (std::int64_t i = 0; i < made.images * made.points; ++i) {
    const AxisTapValues x = axis_tap_values(site, g[2 * i], site.width);
    const AxisTapValues y = axis_tap_values(site, g[2 * i + 1], site.height);
    for (std::int64_t t = 0; t < made.taps; ++t) {
      const auto right = static_cast<std::size_t>(t % 2), below = static_cast<std::size_t>(t / 2);
      const float weight = y.weight[below] * x.weight[right];
      const bool sampled = weight != 0;
      made.unsampled += !sampled;
      made.weight.push_back(sampled ? weight : 0);
      made.index.push_back(
          sampled ? static_cast<std::int32_t>(y.index[below] * site.width + x.index[right]) : -1);
    }
  }
  return made;
}

onnx::NodeProto static_sample_node(const GridSampleNode& site,
                                   const std::vector<std::string>& inputs, std::string_view form) {
  onnx::NodeProto node = make_node("StaticSample", inputs, {site.output});
  node.set_domain(kOpsDomain);
  set_attribute(node, "form", form);
  set_attribute(node, "input_size", std::vector<std::int64_t>{site.height, site.width});
  set_attribute(node, "output_size", std::vector<std::int64_t>{site.out_height, site.out_width});
  return node;
}

void declare_static_samples(Model& model, const std::vector<GridSampleNode>& sites) {
  if (sites.empty()) return;
  onnx::ModelProto& proto = model.mutable_proto();
  auto& imports = *proto.mutable_opset_import();
  if (std::none_of(imports.begin(), imports.end(),
                   [](const auto& import) { return import.domain() == kOpsDomain; })) {
    auto& import = *imports.Add();
    import.set_domain(kOpsDomain);
    import.set_version(kOpsVersion);
  }
  auto& infos = *proto.mutable_graph()->mutable_value_info();
  for (const GridSampleNode& site : sites) {
    const auto& outputs = proto.graph().output();
    if (std::any_of(outputs.begin(), outputs.end(),
                    [&](const auto& output) { return output.name() == site.output; }))
      continue;
    for (int i = infos.size() - 1; i >= 0; --i)
      if (infos.Get(i).name() == site.output) infos.DeleteSubrange(i, 1);
    *infos.Add() = to_value_info({site.output,
                                  DType::kFloat32,
                                  {site.batch, site.channels, site.out_height, site.out_width}});
  }
}

}  // namespace tenonnx
