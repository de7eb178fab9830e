// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/name_record.h"

#include <onnx/onnx_pb.h>

#include <set>

#include "base/status.h"

namespace tenonnx {

Json to_json(const NameRecord& record) {
  return {{"renamed", Json(record.renamed)}, {"removed", Json(record.removed)}};
}

Result<NameRecord> name_record_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only({"renamed", "removed"}));
  NameRecord record;
  for (const auto& [key, map] :
       {std::pair("renamed", &record.renamed), std::pair("removed", &record.removed)}) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader object, reader.at(key));
    TENONNX_ASSIGN_OR_RETURN(const auto members, object.members());
    for (const auto& [name, value] : members) {
      TENONNX_ASSIGN_OR_RETURN((*map)[name], value.string());
    }
  }
  return record;
}

std::set<std::string> computed_names(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const onnx::NodeProto& node : graph.node())
    for (const std::string& name : node.output())
      if (!name.empty()) names.insert(name);
  return names;
}

NameRecord record_of(const std::set<std::string>& before, const std::set<std::string>& after,
                     const std::map<std::string, std::string>& renamed, std::string_view pass) {
  NameRecord record;
  for (const auto& [from, to] : renamed)
    if (from != to && before.contains(from)) record.renamed.emplace(from, to);
  for (const std::string& name : before)
    if (!after.contains(name) && !record.renamed.contains(name)) record.removed.emplace(name, pass);
  return record;
}

NameRecord join(const NameRecord& first, const NameRecord& second) {
  NameRecord joined;
  joined.removed = first.removed;
  // A name that the first step gave belongs, in the second step's record, to the first's tensor.
  std::set<std::string> given;
  for (const auto& [source, name] : first.renamed) {
    given.insert(name);
    if (const auto removed = second.removed.find(name); removed != second.removed.end())
      joined.removed.emplace(source, removed->second);
    else if (const auto renamed = second.renamed.find(name); renamed != second.renamed.end())
      joined.renamed.emplace(source, renamed->second);
    else
      joined.renamed.emplace(source, name);
  }
  for (const auto& [source, name] : second.renamed)
    if (!given.contains(source) && !joined.removed.contains(source))
      joined.renamed.emplace(source, name);
  for (const auto& [source, pass] : second.removed)
    if (!given.contains(source) && !joined.renamed.contains(source))
      joined.removed.emplace(source, pass);
  std::erase_if(joined.renamed, [](const auto& entry) { return entry.first == entry.second; });
  return joined;
}

}  // namespace tenonnx
