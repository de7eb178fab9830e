// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What passes did to the names of tensors. A tensor that keeps its name keeps its value; this says
// what became of the others, so that two graphs can be compared tensor by tensor.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tenonnx/base.h"

namespace onnx {
class GraphProto;
}  // namespace onnx

namespace tenonnx {

// Transpose(tensor `name`, perm) is the tensor of the source.
struct MovedTensor {
  std::string name;
  std::vector<std::int64_t> perm;
  bool operator==(const MovedTensor&) const = default;
};

struct NameRecord {
  std::map<std::string, std::string> renamed;  // tensor of the source -> the same value's name here
  std::map<std::string, std::string> removed;  // tensor of the source -> the pass that took it away
  std::map<std::string, MovedTensor> moved;    // tensor of the source -> the same in another layout
};

// {"renamed": {"a": "b"}, "removed": {"c": "fuse_gelu"},
//  "moved": {"d": {"name": "d_moved", "perm": [0, 2, 1]}}}
Json to_json(const NameRecord& record);
// "moved" may be missing: what wrote the file knew of none. DataLoss names what is wrong.
Result<NameRecord> name_record_from_json(const JsonReader& reader);

// Names of what the nodes of the main graph make.
std::set<std::string> computed_names(const onnx::GraphProto& graph);

// What one pass did: `before` and `after` are computed_names(), `renamed` and `moved` the pass's
// own word.
NameRecord record_of(const std::set<std::string>& before, const std::set<std::string>& after,
                     const std::map<std::string, std::string>& renamed, std::string_view pass,
                     const std::map<std::string, MovedTensor>& moved = {});

// Of the record of two steps, one after the other: a tensor that the first renamed and the second
// removed is removed, and so on.
NameRecord join(const NameRecord& first, const NameRecord& second);

}  // namespace tenonnx
