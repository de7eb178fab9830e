// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "bench/chain.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "adapters/address.h"
#include "base/files.h"
#include "base/status.h"
#include "bench/timer.h"
#include "model/model.h"

namespace tenonnx {

Result<SegmentChain> SegmentChain::load(const std::filesystem::path& package,
                                        const Manifest& manifest, const LoadOptions& options,
                                        TensorMap inputs) {
  SegmentChain chain;
  chain.given_ = std::move(inputs);
  for (const Segment& segment : manifest.segments) {
    Loaded loaded;
    loaded.name = segment.name;
    loaded.executor = segment.executor;
    const Stopwatch watch;
    TENONNX_ASSIGN_OR_RETURN(const auto executor, make_executor(segment.executor));
    TENONNX_ASSIGN_OR_RETURN(const auto path, resolve_inside(package, segment.file));
    TENONNX_ASSIGN_OR_RETURN(const Model model, Model::load(path));
    auto graph = executor->load(model, options);
    if (!graph.ok()) return graph.status().at("segment '" + segment.name + "'");
    loaded.graph = std::move(graph).value();
    loaded.load_ms = watch.milliseconds();
    TENONNX_RETURN_IF_ERROR(chain.connect(loaded));
    chain.segments_.push_back(std::move(loaded));
  }
  return chain;
}

Status SegmentChain::connect(Loaded& segment) {
  for (const TensorInfo& input : segment.graph->inputs()) {
    Source source;
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const auto& outputs = segments_[s].graph->outputs();
      for (std::size_t o = 0; o < outputs.size(); ++o)
        if (outputs[o].name == input.name) source = {static_cast<int>(s), o};
    }
    Tensor given;
    if (source.segment < 0) {
      const auto it = given_.find(input.name);
      if (it == given_.end()) {
        return FailedPrecondition(
            "segment '{}' takes '{}', which no earlier segment makes and the contract does not "
            "name",
            segment.name, input.name);
      }
      given = it->second;
    }
    segment.sources.push_back(source);
    segment.inputs.push_back(std::move(given));
  }
  return {};
}

Status SegmentChain::run(std::size_t i) {
  Loaded& segment = segments_[i];
  for (std::size_t k = 0; k < segment.sources.size(); ++k) {
    const Source& source = segment.sources[k];
    if (source.segment >= 0) {
      segment.inputs[k] =
          segments_[static_cast<std::size_t>(source.segment)].outputs[source.output];
    }
  }
  return segment.graph->run(segment.inputs, segment.outputs);
}

std::vector<Boundary> SegmentChain::boundaries() const {
  std::map<std::pair<int, int>, Boundary> found;
  for (std::size_t to = 0; to < segments_.size(); ++to) {
    const Loaded& segment = segments_[to];
    for (std::size_t k = 0; k < segment.sources.size(); ++k) {
      const int from = segment.sources[k].segment;
      if (from < 0) continue;
      Boundary& boundary = found[{from, static_cast<int>(to)}];
      boundary.from = from;
      boundary.to = static_cast<int>(to);
      boundary.tensors.push_back(segment.graph->inputs()[k].name);
      boundary.bytes += segment.inputs[k].bytes();
    }
  }
  std::vector<Boundary> list;
  for (auto& [ends, boundary] : found) list.push_back(std::move(boundary));
  return list;
}

void SegmentChain::copy(const Boundary& boundary) {
  const Loaded& segment = segments_[static_cast<std::size_t>(boundary.to)];
  std::size_t slot = 0;
  for (std::size_t k = 0; k < segment.sources.size(); ++k) {
    if (segment.sources[k].segment != boundary.from) continue;
    const Tensor& tensor = segment.inputs[k];
    if (copies_.size() <= slot) copies_.emplace_back();
    if (copies_[slot].size() < tensor.bytes()) copies_[slot].resize(tensor.bytes());
    if (tensor.bytes() > 0) std::memcpy(copies_[slot].data(), tensor.raw(), tensor.bytes());
    ++slot;
  }
}

}  // namespace tenonnx
