// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "cut/separators.h"

#include <algorithm>
#include <limits>

namespace tenonnx {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace

TensorIds single_separators(const DataFlow& flow) {
  std::vector<std::size_t> unread(flow.tensors(), 0);
  for (std::size_t i = 0; i < flow.tensors(); ++i) {
    const int id = static_cast<int>(i);
    unread[i] = flow.readers(id).size() + (flow.is_output(id) ? 1 : 0);
  }
  TensorIds out;
  TensorIds alive = flow.sources();
  for (const int node : flow.nodes()) {
    for (const int id : flow.inputs(node))
      if (--unread[at(id)] == 0) std::erase(alive, id);
    for (const int id : flow.outputs(node)) alive.push_back(id);
    if (alive.size() == 1 && !flow.is_source(alive[0])) out.push_back(alive[0]);
  }
  return out;
}

std::vector<TensorIds> layered_separators(const DataFlow& flow, std::size_t max_width) {
  // Steps from the end: an output is read at step 0, and a node stands one step before the first
  // that reads what it makes.
  std::vector<int> read_first(flow.tensors(), 0);
  std::vector<int> made(flow.tensors(), std::numeric_limits<int>::max());
  int steps = 0;
  for (auto it = flow.nodes().rbegin(); it != flow.nodes().rend(); ++it) {
    int step = 0;
    for (const int id : flow.outputs(*it)) step = std::max(step, read_first[at(id)] + 1);
    for (const int id : flow.outputs(*it)) made[at(id)] = step;
    for (const int id : flow.inputs(*it)) read_first[at(id)] = std::max(read_first[at(id)], step);
    steps = std::max(steps, step);
  }
  std::vector<int> read_last(flow.tensors(), std::numeric_limits<int>::max());
  for (const int node : flow.nodes()) {
    const TensorIds& outputs = flow.outputs(node);
    if (outputs.empty()) continue;
    for (const int id : flow.inputs(node))
      read_last[at(id)] = std::min(read_last[at(id)], made[at(outputs[0])]);
  }
  // Alive at the boundary before step s: made at a step of at least s, read last below s.
  std::vector<TensorIds> alive(at(steps + 1));
  std::vector<bool> excluded(at(steps + 1), false);
  for (std::size_t i = 0; i < flow.tensors(); ++i) {
    const int id = static_cast<int>(i);
    if (!flow.carries(id)) continue;
    const int from = std::min(made[i], steps);
    const int to = flow.is_output(id) ? 0 : read_last[i];
    for (int s = std::max(to + 1, 1); s <= from; ++s) {
      if (flow.is_source(id) || alive[at(s)].size() >= max_width)
        excluded[at(s)] = true;
      else
        alive[at(s)].push_back(id);
    }
  }
  std::vector<TensorIds> out;
  for (int s = steps; s >= 1; --s) {
    if (excluded[at(s)] || alive[at(s)].empty()) continue;
    if (out.empty() || out.back() != alive[at(s)]) out.push_back(alive[at(s)]);
  }
  return out;
}

}  // namespace tenonnx
