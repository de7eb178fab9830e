// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/graph_facts.h"

#include <memory>
#include <utility>

namespace tenonnx {

GraphFacts take_facts(Model& model) {
  const std::shared_ptr<void> held = std::exchange(model.derived(), nullptr);
  return held ? std::move(*static_cast<GraphFacts*>(held.get())) : GraphFacts();
}

void keep_facts(Model& model, GraphFacts facts) {
  model.derived() = std::make_shared<GraphFacts>(std::move(facts));
}

bool has_exact_types(Model& model) {
  const auto* facts = static_cast<const GraphFacts*>(model.derived().get());
  return facts == nullptr || !facts->inference || facts->exact;
}

void drop_inexact_types(Model& model) {
  auto* facts = static_cast<GraphFacts*>(model.derived().get());
  if (facts != nullptr && !facts->exact) facts->inference.reset();
}

}  // namespace tenonnx
