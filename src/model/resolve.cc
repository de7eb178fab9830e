// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <onnx/onnx_pb.h>

#include "base/nearest.h"
#include "base/status.h"
#include "model/extract.h"
#include "model/graph.h"

namespace tenonnx {

Result<std::string> resolve_tensor(const Model& model, std::string_view name_or_suffix) {
  constexpr std::size_t kMost = 10;
  if (name_or_suffix.empty()) return InvalidArgument("an empty tensor name");
  const GraphIndex index(model.proto().graph());
  if (index.find(name_or_suffix) != nullptr) return std::string(name_or_suffix);
  std::vector<std::string_view> candidates;
  for (const Value& value : index.values())
    if (value.name.ends_with(name_or_suffix)) candidates.push_back(value.name);
  if (candidates.size() == 1) return std::string(candidates.front());
  if (candidates.empty()) {
    std::vector<std::string> all;
    for (const Value& value : index.values()) all.emplace_back(value.name);
    return NotFound(
        "no tensor is named '{}' or ends with it; the nearest names: {}. tenonnx inspect lists the "
        "inputs and outputs, and a viewer such as Netron the rest",
        name_or_suffix, nearest_names(name_or_suffix, all));
  }
  std::string list;
  for (std::size_t i = 0; i < candidates.size() && i < kMost; ++i)
    list += fmt::format("{}'{}'", i == 0 ? "" : ", ", candidates[i]);
  if (candidates.size() > kMost) list += ", ...";
  return InvalidArgument("'{}' is the end of {} tensor names: {}; give a longer one",
                         name_or_suffix, candidates.size(), list);
}

}  // namespace tenonnx
