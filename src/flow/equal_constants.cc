// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/equal_constants.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "passes/region_diff.h"

namespace tenonnx {

void add_equal_constants(const Model& before, const Model& after,
                         std::map<std::string, std::string>& renamed) {
  const auto key_of = [](const Model& model, const onnx::TensorProto& tensor) {
    std::string key = std::to_string(tensor.data_type());
    for (const std::int64_t size : tensor.dims()) key += fmt::format(",{}", size);
    // The beginning tells nearly all apart; the rest is compared.
    constexpr std::size_t kBeginning = 64;
    if (tensor.has_raw_data()) return key + ":" + tensor.raw_data().substr(0, kBeginning);
    const auto value = model.tensor(tensor);
    if (!value.ok()) return key;
    return key + ":" +
           std::string(static_cast<const char*>(value->raw()),
                       std::min(kBeginning, value->bytes()));
  };
  std::unordered_map<std::string, std::vector<const onnx::TensorProto*>> there;
  std::unordered_map<std::string_view, const onnx::TensorProto*> by_name;
  for (const auto& tensor : after.proto().graph().initializer()) {
    there[key_of(after, tensor)].push_back(&tensor);
    by_name.emplace(tensor.name(), &tensor);
  }
  const auto same = [&](const onnx::TensorProto& a, const onnx::TensorProto& b) {
    return same_constant(before, a, after, b);
  };
  for (const auto& tensor : before.proto().graph().initializer()) {
    if (const auto named = by_name.find(tensor.name());
        named != by_name.end() && same(tensor, *named->second))
      continue;
    const auto alike = there.find(key_of(before, tensor));
    if (alike == there.end()) continue;
    for (const onnx::TensorProto* other : alike->second) {
      if (!same(tensor, *other)) continue;
      renamed[tensor.name()] = other->name();
      break;
    }
  }
}

}  // namespace tenonnx
