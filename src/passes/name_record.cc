// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/name_record.h"

#include <onnx/onnx_pb.h>

#include <set>

#include "base/status.h"

namespace tenonnx {
namespace {

// Tensor of the source -> its value's name after a step, with the Transpose that gives it back
// (empty: none).
using Found = std::map<std::string, MovedTensor>;

Found found_in(const NameRecord& record) {
  Found all = record.moved;
  for (const auto& [source, name] : record.renamed)
    all.insert_or_assign(source, MovedTensor{name, {}});
  return all;
}

// Transpose(Transpose(x, first), second)
std::vector<std::int64_t> both(const std::vector<std::int64_t>& first,
                               const std::vector<std::int64_t>& second) {
  if (first.empty() || second.empty()) return first.empty() ? second : first;
  std::vector<std::int64_t> perm;
  for (const std::int64_t axis : second) perm.push_back(first[static_cast<std::size_t>(axis)]);
  for (std::size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<std::int64_t>(i)) return perm;
  return {};
}

bool is_permutation(const std::vector<std::int64_t>& perm) {
  std::set<std::int64_t> axes(perm.begin(), perm.end());
  return !perm.empty() && axes.size() == perm.size() && *axes.begin() == 0 &&
         *axes.rbegin() == static_cast<std::int64_t>(perm.size()) - 1;
}

Result<MovedTensor> moved_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only({"name", "perm"}));
  MovedTensor moved;
  TENONNX_ASSIGN_OR_RETURN(const JsonReader name, reader.at("name"));
  TENONNX_ASSIGN_OR_RETURN(moved.name, name.string());
  TENONNX_ASSIGN_OR_RETURN(const JsonReader perm, reader.at("perm"));
  TENONNX_ASSIGN_OR_RETURN(const auto items, perm.items());
  for (const JsonReader& item : items) {
    TENONNX_ASSIGN_OR_RETURN(const std::int64_t axis, item.integer());
    moved.perm.push_back(axis);
  }
  if (!is_permutation(moved.perm))
    return DataLoss("{}: not every axis from 0 once, as [0, 2, 1]", perm.where());
  return moved;
}

}  // namespace

Json to_json(const NameRecord& record) {
  Json moved = Json::object();
  for (const auto& [source, to] : record.moved)
    moved[source] = {{"name", to.name}, {"perm", to.perm}};
  return {{"renamed", Json(record.renamed)},
          {"removed", Json(record.removed)},
          {"moved", std::move(moved)}};
}

Result<NameRecord> name_record_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only({"renamed", "removed", "moved"}));
  NameRecord record;
  for (const auto& [key, map] :
       {std::pair("renamed", &record.renamed), std::pair("removed", &record.removed)}) {
    TENONNX_ASSIGN_OR_RETURN(const JsonReader object, reader.at(key));
    TENONNX_ASSIGN_OR_RETURN(const auto members, object.members());
    for (const auto& [name, value] : members) {
      TENONNX_ASSIGN_OR_RETURN((*map)[name], value.string());
    }
  }
  if (!reader.has("moved")) return record;
  TENONNX_ASSIGN_OR_RETURN(const JsonReader object, reader.at("moved"));
  TENONNX_ASSIGN_OR_RETURN(const auto members, object.members());
  for (const auto& [name, value] : members) {
    TENONNX_ASSIGN_OR_RETURN(record.moved[name], moved_from_json(value));
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
                     const std::map<std::string, std::string>& renamed, std::string_view pass,
                     const std::map<std::string, MovedTensor>& moved) {
  NameRecord record;
  for (const auto& [from, to] : renamed)
    if (const auto next = moved.find(to); next != moved.end() && !after.contains(to))
      record.moved.emplace(from, next->second);
    else if (from != to && before.contains(from) && after.contains(to))
      record.renamed.emplace(from, to);  // an input of the graph is none of its computed tensors
  for (const auto& [from, to] : moved)
    if (before.contains(from) && !after.contains(from) && !record.renamed.contains(from))
      record.moved.emplace(from, to);
  for (const std::string& name : before)
    if (!after.contains(name) && !record.renamed.contains(name) && !record.moved.contains(name))
      record.removed.emplace(name, pass);
  return record;
}

NameRecord join(const NameRecord& first, const NameRecord& second) {
  NameRecord joined;
  joined.removed = first.removed;
  const Found early = found_in(first), late = found_in(second);
  Found all;
  // A name that the first step gave belongs, in the second step's record, to the first's tensor.
  std::set<std::string> given;
  for (const auto& [source, there] : early) {
    given.insert(there.name);
    if (const auto removed = second.removed.find(there.name); removed != second.removed.end())
      joined.removed.emplace(source, removed->second);
    else if (const auto next = late.find(there.name); next != late.end())
      all.emplace(source, MovedTensor{next->second.name, both(next->second.perm, there.perm)});
    else
      all.emplace(source, there);
  }
  for (const auto& [source, there] : late)
    if (!given.contains(source) && !joined.removed.contains(source)) all.emplace(source, there);
  for (const auto& [source, pass] : second.removed)
    if (!given.contains(source) && !all.contains(source)) joined.removed.emplace(source, pass);
  for (auto& [source, there] : all) {
    if (!there.perm.empty())
      joined.moved.emplace(source, std::move(there));
    else if (source != there.name)
      joined.renamed.emplace(source, std::move(there.name));
  }
  return joined;
}

}  // namespace tenonnx
