// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/prepare.h"

namespace tenonnx {

Result<std::vector<PassReport>> prepare_graph(Model& model, const Preparation& preparation) {
  std::vector<std::string> names;
  PassOptions options;
  if (!preparation.input_shapes.empty()) names.push_back("fix_input_shapes");
  for (const auto& [input, shape] : preparation.input_shapes) options[input] = shape;
  if (preparation.fold_constants) names.push_back("fold_constants");
  if (names.empty()) return std::vector<PassReport>{};
  return run_passes(model, names, options);
}

}  // namespace tenonnx
