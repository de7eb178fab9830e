// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/grid_sample_modes.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>

#include "model/graph.h"

namespace tenonnx {
namespace {

struct Spelling {
  std::string_view before, after;  // kGridSampleModesRenamed
};
constexpr Spelling kSpellings[] = {
    {"bilinear", "linear"}, {"bicubic", "cubic"}, {"nearest", "nearest"}};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

// "" where it is no GridSample, or its mode is left to its default.
std::string mode_of(const onnx::NodeProto& node) {
  return node.op_type() == "GridSample" && normalized_domain(node.domain()).empty()
             ? attribute_or(node, "mode", "")
             : std::string();
}

}  // namespace

std::string_view spelled_for_opset(std::string_view mode, std::int64_t opset) {
  const std::string wanted = lower(mode);
  for (const Spelling& spelling : kSpellings)
    if (wanted == spelling.before || wanted == spelling.after)
      return opset >= kGridSampleModesRenamed ? spelling.after : spelling.before;
  return {};
}

std::optional<MisspelledMode> misspelled_mode(const Model& model) {
  std::optional<MisspelledMode> found;
  for_each_graph(model.proto().graph(), [&](const onnx::GraphProto& graph) {
    for (const onnx::NodeProto& node : graph.node()) {
      const std::string mode = mode_of(node);
      const std::string_view right = spelled_for_opset(mode, model.opset());
      if (mode.empty() || mode == right) continue;
      if (found) {
        ++found->others;
        continue;
      }
      found.emplace();
      found->is_a_mode = !right.empty();
      found->what = right.empty() ? fmt::format("{} has the mode '{}', which no opset has",
                                                node_label(node), mode)
                                  : fmt::format("{} has the mode '{}', which opset {} spells '{}'",
                                                node_label(node), mode, model.opset(), right);
    }
  });
  if (found && found->others > 0) found->what += fmt::format(" ({} more)", found->others);
  return found;
}

int spell_modes(Model& model) {
  int mended = 0;
  const std::int64_t opset = model.opset();
  for_each_graph(*model.mutable_proto().mutable_graph(), [&](onnx::GraphProto& graph) {
    for (onnx::NodeProto& node : *graph.mutable_node()) {
      const std::string mode = mode_of(node);
      const std::string_view right = spelled_for_opset(mode, opset);
      if (mode.empty() || right.empty() || mode == right) continue;
      for (onnx::AttributeProto& attribute : *node.mutable_attribute())
        if (attribute.name() == "mode") attribute.set_s(std::string(right));
      ++mended;
    }
  });
  return mended;
}

}  // namespace tenonnx
