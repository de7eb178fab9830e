// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/status.h"
#include "base/wording.h"
#include "flow/split.h"
#include "model/shapes.h"
#include "passes/runner.h"

namespace tenonnx {
namespace {

Json ranges_json(const std::vector<ConstantRange>& ranges) {
  Json json = Json::array();
  for (const ConstantRange& range : ranges)
    json.push_back({{"name", range.name},
                    {"elements", range.count},
                    {"min", json_number(range.min)},
                    {"max", json_number(range.max)}});
  return json;
}

std::string shape_of(const TensorInfo& info) {
  return info.dtype == DType::kUndefined ? "unknown shape" : to_string(info.shape);
}

void describe_io(std::string_view title, const std::vector<TensorInfo>& infos, std::string& text) {
  text += fmt::format("{}\n", title);
  for (const TensorInfo& info : infos)
    text += fmt::format("  {}: {} {}\n", info.name, to_string(info.dtype), to_string(info.shape));
}

// More of one kind than a screen holds are counted, not listed; --json has them all.
constexpr std::size_t kListed = 12;

template <typename Item, typename Line>
void describe_list(std::string_view title, const std::vector<Item>& items, Line line,
                   std::string& text) {
  if (items.empty()) return;
  text += fmt::format("{}: {}\n", title, items.size());
  for (std::size_t i = 0; i < std::min(items.size(), kListed); ++i)
    text += fmt::format("  {}\n", line(items[i]));
  if (items.size() > kListed)
    text += fmt::format("  ... and {} more (--json lists them)\n", items.size() - kListed);
}

std::string describe_range(const ConstantRange& range) {
  return fmt::format("{}: {}, range {:.6g} to {:.6g}", range.name, counted(range.count, "element"),
                     range.min, range.max);
}

std::string describe_operators(const Inspection& found) {
  std::vector<std::pair<std::string, std::int64_t>> counts(found.op_counts.begin(),
                                                           found.op_counts.end());
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string line;
  for (std::size_t i = 0; i < std::min(counts.size(), kListed); ++i)
    line += fmt::format("{}{} {}", i ? ", " : "", counts[i].first, counts[i].second);
  if (counts.size() > kListed)
    line += fmt::format(", {}", counted(counts.size() - kListed, "more type"));
  return line;
}

}  // namespace

Result<InspectReport> inspect_file(const std::filesystem::path& path) {
  TENONNX_ASSIGN_OR_RETURN(Model model, Model::load(path));
  TENONNX_ASSIGN_OR_RETURN(Inspection found, inspect(model));
  InspectReport report{path.filename().string(), model.sha256(), std::move(found), {}};
  // A raw export computes its shapes in the graph; what is static shows only once they are folded.
  // Where folding is not possible (no ONNX Runtime on this machine) the raw view stays.
  Model folded = model.clone();
  const std::vector<std::string> passes = {"fold_constants"};
  if (!run_passes(folded, passes, {}).ok()) return report;
  Result<Inspection> after = inspect(folded);
  if (!after.ok()) return report;
  report.nodes_after_folding = after->nodes;
  report.found.grid_samples = std::move(after->grid_samples);
  report.found.selections = std::move(after->selections);
  std::vector<std::string> names;
  for (const TensorInfo& output : report.found.outputs) names.push_back(output.name);
  const TensorInfos inferred = infer_shapes(folded, names);
  for (TensorInfo& output : report.found.outputs)
    if (const auto it = inferred.find(output.name); it != inferred.end()) output = it->second;
  return report;
}

Json to_json(const InspectReport& report) {
  const Inspection& f = report.found;
  Json json = {{"schema_version", 1},
               {"model", report.model},
               {"sha256", report.sha256},
               {"ir_version", f.ir_version},
               {"opsets", f.opsets},
               {"producer", f.producer},
               {"inputs", to_json(f.inputs)},
               {"outputs", to_json(f.outputs)},
               {"dynamic_dims", f.dynamic_dims},
               {"nodes", f.nodes},
               {"nodes_after_folding",
                report.nodes_after_folding ? Json(*report.nodes_after_folding) : Json(nullptr)},
               {"operators", f.op_counts},
               {"custom_domains", f.custom_domains},
               {"parameters", f.parameters},
               {"file_bytes", f.file_bytes},
               {"initializer_bytes", f.initializer_bytes},
               {"external_bytes", f.external_bytes},
               {"external_files", f.external_files},
               {"has_metadata", f.has_metadata},
               {"functions", f.functions},
               {"subgraphs", f.subgraphs}};
  json["grid_samples"] = Json::array();
  for (const GridSampleSite& site : f.grid_samples)
    json["grid_samples"].push_back({{"node", site.node},
                                    {"mode", site.mode},
                                    {"padding_mode", site.padding_mode},
                                    {"align_corners", site.align_corners},
                                    {"input", site.input.shape},
                                    {"grid", site.grid.shape},
                                    {"output", site.output.shape}});
  json["selections"] = Json::array();
  for (const SelectionPoint& point : f.selections)
    json["selections"].push_back({{"node", point.node},
                                  {"op_type", point.op_type},
                                  {"k", point.k},
                                  {"input", point.input.shape}});
  json["constants_beyond_float16"] = ranges_json(f.beyond_float16);
  json["constants_subnormal_in_float16"] = ranges_json(f.subnormal_float16);
  json["constants_infinite"] = ranges_json(f.infinite);
  json["constants_nan"] = ranges_json(f.nan);
  json["baked_shapes"] = Json::array();
  for (const BakedShape& baked : f.baked_shapes)
    json["baked_shapes"].push_back(
        {{"node", baked.node}, {"first_dim", baked.first_dim}, {"target", baked.target}});
  return json;
}

std::string describe(const InspectReport& report) {
  const Inspection& f = report.found;
  std::string opsets;
  for (const auto& [domain, opset] : f.opsets)
    opsets += fmt::format("{}{} {}", opsets.empty() ? "" : ", ", domain, opset);
  std::string text = fmt::format("{}  {}\n  IR {}, opset {}; {}, {}, made by {}\n", report.model,
                                 spell_bytes(f.file_bytes + f.external_bytes), f.ir_version, opsets,
                                 counted(f.nodes, "node"), counted(f.parameters, "parameter"),
                                 f.producer.empty() ? "unknown" : f.producer);
  text += fmt::format("  operators: {}\n", describe_operators(f));
  if (report.nodes_after_folding && *report.nodes_after_folding < f.nodes)
    text += fmt::format("  {} left when constants and shapes are folded, as deploy does\n",
                        counted(*report.nodes_after_folding, "node is", "nodes are"));
  if (!f.external_files.empty())
    text += fmt::format("  external data: {} in {}\n", spell_bytes(f.external_bytes),
                        counted(f.external_files.size(), "file"));
  if (f.has_metadata)
    text += "  the exporter left doc strings or metadata; what tenonnx writes drops them\n";
  describe_io("inputs", f.inputs, text);
  describe_io("outputs", f.outputs, text);
  const auto as_is = [](const std::string& s) { return s; };
  describe_list("dynamic dimensions (make them static: deploy --input-shape)", f.dynamic_dims,
                as_is, text);
  describe_list("operators of custom domains", f.custom_domains, as_is, text);
  describe_list(
      "GridSample sites", f.grid_samples,
      [](const GridSampleSite& s) {
        return fmt::format("{}: {}, {}, align_corners {}; {} by {}", s.node, s.mode, s.padding_mode,
                           s.align_corners ? 1 : 0, shape_of(s.input), shape_of(s.grid));
      },
      text);
  describe_list(
      "selections (a small error before them becomes a permutation)", f.selections,
      [](const SelectionPoint& s) {
        return fmt::format("{}: {}{} of {}", s.node, s.op_type, s.k.empty() ? "" : " k=" + s.k,
                           shape_of(s.input));
      },
      text);
  describe_list("constants beyond float16 (|x| > 65504)", f.beyond_float16, describe_range, text);
  describe_list("constants with subnormal float16 values", f.subnormal_float16, describe_range,
                text);
  describe_list("constants with Inf", f.infinite, describe_range, text);
  describe_list("constants with NaN", f.nan, describe_range, text);
  describe_list(
      "shapes with a baked batch", f.baked_shapes,
      [](const BakedShape& b) { return fmt::format("{}: target {}", b.node, b.target); }, text);
  return text;
}

}  // namespace tenonnx
