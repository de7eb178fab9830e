// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// deduplicate_initializers: keeps one of several initializers that hold the same.
//
// before: a = x + w1; b = y + w2, w1 and w2 the same      after: a = x + w1; b = y + w1
//
// The same: dtype, shape and every byte (so 0.0 is not -0.0, and two NaN are alike only bit for
// bit). The first in the file stays. Bodies of If/Loop/Scan read the one that stays too; what they
// store themselves is left as it is.
// Class bitwise.
// Refuses: an initializer that is an output of the graph. Left alone: one that is an input too,
// which the caller may override.
#include <onnx/onnx_pb.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/status.h"
#include "passes/fold_rules.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

// What tells nearly all weights apart, and does not read them all.
std::string sample_of(std::string_view bytes) {
  constexpr std::size_t kPiece = 64;
  if (bytes.size() <= 3 * kPiece) return std::string(bytes);
  std::string sample;
  for (const std::size_t at : {std::size_t{0}, bytes.size() / 2, bytes.size() - kPiece})
    sample += bytes.substr(at, kPiece);
  return sample;
}

// Name of each duplicate -> the initializer that stays.
std::unordered_map<std::string, std::string> find_duplicates(const Model& model) {
  std::unordered_map<std::string, std::string> duplicates;
  std::unordered_set<std::string_view> inputs;
  for (const auto& input : model.proto().graph().input()) inputs.insert(input.name());
  using Key = std::tuple<DType, Shape, std::string>;  // the last: some of the bytes
  std::map<Key, std::vector<std::pair<std::string, Tensor>>> seen;
  for (const onnx::TensorProto& proto : model.proto().graph().initializer()) {
    if (inputs.contains(proto.name())) continue;
    const auto tensor = model.tensor(proto);
    if (!tensor.ok()) continue;  // strings, 4-bit types
    const std::string_view bytes(static_cast<const char*>(tensor->raw()), tensor->bytes());
    auto& same_key = seen[{tensor->dtype(), tensor->shape(), sample_of(bytes)}];
    for (const auto& [name, first] : same_key) {
      if (!bytes.empty() && std::memcmp(first.raw(), bytes.data(), bytes.size()) != 0) continue;
      duplicates.emplace(proto.name(), name);
      break;
    }
    if (!duplicates.contains(proto.name())) same_key.emplace_back(proto.name(), *tensor);
  }
  return duplicates;
}

}  // namespace

namespace passes {

Result<PassOutcome> deduplicate_initializers(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("deduplicate_initializers", options, {}));
  const auto duplicates = find_duplicates(model);
  std::unordered_set<std::string> done;
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    for (const std::string_view name : all_inputs(r.node(i))) {
      const auto found = duplicates.find(std::string(name));
      if (found == duplicates.end() || done.contains(found->first)) continue;
      if (!r.begin({})) return;
      if (!r.alias(found->first, found->second)) {
        r.refuse(i, fmt::format("'{}' holds what '{}' holds, but is an output of the graph",
                                found->first, found->second));
        continue;
      }
      done.insert(found->first);
      r.apply(i, fmt::format("reads '{}', of which '{}' is a copy", found->second, found->first));
    }
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
