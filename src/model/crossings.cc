// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/crossings.h"

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <set>

#include "model/graph.h"

namespace tenonnx {

std::vector<Crossing> find_crossings(const onnx::GraphProto& graph,
                                     const std::vector<int>& group_of) {
  const GraphIndex index(graph);
  std::vector<Crossing> crossings;
  for (const Value& value : index.values()) {
    if (value.is_initializer()) continue;
    Crossing crossing{std::string(value.name), -1, {}, value.is_output};
    if (value.producer >= 0) {
      if (graph.node(value.producer).op_type() == "Constant") continue;
      crossing.from = group_of[static_cast<std::size_t>(value.producer)];
    }
    std::set<int> readers;
    for (const Use& use : value.uses) readers.insert(group_of[static_cast<std::size_t>(use.node)]);
    readers.erase(crossing.from);
    crossing.to.assign(readers.begin(), readers.end());
    if (!crossing.to.empty() || crossing.is_output) crossings.push_back(std::move(crossing));
  }
  return crossings;
}

}  // namespace tenonnx
