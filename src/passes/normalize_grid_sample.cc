// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// normalize_grid_sample: spells the mode of GridSample as the model's opset does.
//
// opset 16 to 19: mode = "bilinear", "nearest", "bicubic"
// opset 20 on:    mode = "linear",   "nearest", "cubic"
//
// The modes are the same, and so is what they compute. Not changed: a mode that is left to its
// default, which has one meaning at each opset. Reported, as a skipped node: a mode that the opset
// spells rightly and back ends are known to misread (kMisreads below); the advice is another opset,
// whose spelling they know. Refuses: a mode that no opset has. A node with the wrong spelling does
// not load in ONNX Runtime, so that its proof has nothing to compare with: run it with
// --proof=none, before the passes that are to be proved.
// Class bitwise: only an attribute's text changes. Source: ONNX GridSample-16, -20.
#include <algorithm>
#include <string>

#include "base/status.h"
#include "model/graph.h"
#include "passes/grid_sample_form.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {
namespace {

constexpr int kRenamed = 20;  // the opset from which on modes have their new names

struct Spelling {
  std::string_view before, after;  // opset 20
};
constexpr Spelling kSpellings[] = {{"bilinear", "linear"}, {"bicubic", "cubic"}};

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
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_grid_sample(node)) return;
    const std::string mode = attribute_or(node, "mode", "");
    if (mode.empty() || mode == "nearest") return;
    const auto* spelling =
        std::find_if(std::begin(kSpellings), std::end(kSpellings),
                     [&](const Spelling& s) { return mode == s.before || mode == s.after; });
    if (spelling == std::end(kSpellings))
      return r.refuse(i, fmt::format("no opset has the mode '{}': linear, nearest, cubic are "
                                     "possible (bilinear and bicubic before opset {})",
                                     mode, kRenamed));
    const bool new_name = mode == spelling->after, wants_new = r.opset() >= kRenamed;
    const std::string who = misreaders(new_name, new_name == wants_new);
    if (new_name == wants_new) {
      if (!who.empty())
        r.refuse(i, fmt::format("'{}' is right for opset {}, but {}: for these run convert_opset "
                                "with target={}",
                                mode, r.opset(), who, kRenamed - 1));
      return;
    }
    if (!r.begin({i})) return;
    const std::string right(wants_new ? spelling->after : spelling->before);
    onnx::NodeProto changed = node;
    set_attribute(changed, "mode", std::string_view(right));
    r.replace(i, std::move(changed));
    r.apply(i, fmt::format("mode '{}' becomes '{}', as opset {} spells it: {}", mode, right,
                           r.opset(), who));
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
