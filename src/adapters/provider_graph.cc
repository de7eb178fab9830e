// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/provider_graph.h"

namespace tenonnx {

const ProviderRecord* provider_record(const LoadedGraph& graph) {
  const auto* provider = dynamic_cast<const ProviderGraph*>(&graph);
  return provider != nullptr ? &provider->record() : nullptr;
}

}  // namespace tenonnx
