// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What passes did to the names of tensors. A tensor that keeps its name keeps its value; this says
// what became of the others, so that two graphs can be compared tensor by tensor.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/json.h"
#include "tenonnx/base.h"

namespace onnx {
class GraphProto;
}  // namespace onnx

namespace tenonnx {

struct NameRecord {
  std::map<std::string, std::string> renamed;  // tensor of the source -> the same value's name here
  std::map<std::string, std::string> removed;  // tensor of the source -> the pass that took it away
};

// {"renamed": {"a": "b"}, "removed": {"c": "fuse_gelu"}}
Json to_json(const NameRecord& record);
Result<NameRecord> name_record_from_json(const JsonReader& reader);

// Names of what the nodes of the main graph make.
std::set<std::string> computed_names(const onnx::GraphProto& graph);

// What one pass did: `before` and `after` are computed_names(), `renamed` is the pass's own word.
NameRecord record_of(const std::set<std::string>& before, const std::set<std::string>& after,
                     const std::map<std::string, std::string>& renamed, std::string_view pass);

// Of the record of two steps, one after the other: a tensor that the first renamed and the second
// removed is removed, and so on.
NameRecord join(const NameRecord& first, const NameRecord& second);

}  // namespace tenonnx
