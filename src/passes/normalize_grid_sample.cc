// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// normalize_grid_sample: spells the mode of GridSample as the model's opset does.
//
// opset 16 to 19: mode = "bilinear", "nearest", "bicubic"
// opset 20 on:    mode = "linear",   "nearest", "cubic"
//
// The modes are the same, and so is what they compute. Not changed: a mode that is left to its
// default, which has one meaning at each opset. Capitals count as small letters. Reported, as a
// skipped node: a mode that the opset spells rightly and back ends are known to misread; the advice
// is another opset, whose spelling they know. These are:
//
//   "linear", "cubic"       TensorRT up to 11.1 samples the nearest pixel without a word, OpenVINO
//                           up to 2026.1 rejects the model
//   that of another opset   ONNX Runtime rejects the model
//
// It has no options. Refuses: a mode that no opset has.
// A node with the wrong spelling does not load in ONNX Runtime, so that the graph before cannot
// run: the proof is INCONCLUSIVE with that reason, and the whole graph is compared with the model
// in which the spelling alone is mended. Name it before the passes that are to be proved.
// Class bitwise: only an attribute's text changes. Source: ONNX GridSample-16, -20.
#include <set>
#include <string>

#include "base/status.h"
#include "model/graph.h"
#include "model/grid_sample_modes.h"
#include "passes/grid_sample_form.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {
namespace {

// What readers of ONNX files do with a spelling, whatever the opset. Sources: pull request 1060 of
// onnx-tensorrt and issue 4646 of TensorRT (July 2026); issue 33531 of OpenVINO and pull request
// 36070, which corrects it (May 2026); ONNX Runtime 1.29's own check.
struct Misreading {
  std::string_view reader, does;
  bool new_names;  // it is "linear" and "cubic" that are misread
  bool wrong_opset_only;
};
constexpr Misreading kMisreads[] = {
    {"TensorRT up to 11.1", "samples the nearest pixel without a word", true, false},
    {"OpenVINO up to 2026.1", "rejects the model", true, false},
    {"ONNX Runtime", "rejects the model", true, true},
    {"ONNX Runtime", "rejects the model", false, true},
};

std::string misreaders(bool new_name, bool right_for_opset) {
  std::string text;
  for (const Misreading& m : kMisreads)
    if (m.new_names == new_name && !(m.wrong_opset_only && right_for_opset))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", m.reader, m.does);
  return text;
}

}  // namespace

namespace passes {

Result<PassOutcome> normalize_grid_sample(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("normalize_grid_sample", options, {}));
  Rewriter r(model);
  std::set<std::string> spelled;  // outputs of the nodes that this run has changed
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_grid_sample(node)) return;
    const std::string mode = attribute_or(node, "mode", "");
    if (mode.empty() || mode == "nearest") return;
    const std::string right(spelled_for_opset(mode, r.opset()));
    if (right.empty())
      return r.refuse(i, fmt::format("no opset has the mode '{}': linear, nearest, cubic are "
                                     "possible (bilinear and bicubic before opset {})",
                                     mode, kGridSampleModesRenamed));
    const bool new_name = mode == spelled_for_opset(mode, kGridSampleModesRenamed);
    const std::string who = misreaders(new_name, mode == right);
    if (mode == right) {
      // What was just spelled right is no site that was left.
      if (!who.empty() && !spelled.contains(node.output(0)))
        r.refuse(i, fmt::format("'{}' is right for opset {}, but {}: for these run convert_opset "
                                "with target={}",
                                mode, r.opset(), who, kGridSampleModesRenamed - 1));
      return;
    }
    if (!r.begin({i})) return;
    onnx::NodeProto changed = node;
    set_attribute(changed, "mode", std::string_view(right));
    spelled.insert(changed.output(0));
    r.replace(i, std::move(changed));
    r.apply(i, fmt::format("mode '{}' becomes '{}', as opset {} spells it: {}", mode, right,
                           r.opset(), who));
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
