// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/region_model.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/status.h"
#include "model/graph.h"
#include "model/rename.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

bool takes(const RegionTensor& input, Side side) {
  return side == Side::kBefore ? input.in_before : input.in_after;
}

class Builder {
 public:
  Builder(const Model& model, Side side, std::span<const ChangedRegion* const> regions,
          const RegionNames& names, const TensorInfos& values)
      : model_(model),
        side_(side),
        regions_(regions),
        names_(names),
        values_(values),
        index_(model.proto().graph()),
        fresh_(model.proto()),
        proto_(std::make_unique<onnx::ModelProto>()) {}

  Result<Model> run() {
    const onnx::ModelProto& from = model_.proto();
    proto_->set_ir_version(std::max<std::int64_t>(from.ir_version(), 4));
    *proto_->mutable_opset_import() = from.opset_import();
    if (from.opset_import_size() == 0) proto_->add_opset_import()->set_version(1);
    *proto_->mutable_functions() = from.functions();
    proto_->mutable_graph()->set_name("regions");
    TENONNX_RETURN_IF_ERROR(declare_inputs());
    for (std::size_t k = 0; k < regions_.size(); ++k)
      for (const std::string& name : names_.outputs[k]) reserved_.insert(name);
    for (std::size_t k = 0; k < regions_.size(); ++k) add_region(k);
    return model_.with_proto(std::move(proto_));
  }

 private:
  const std::string& own(const RegionTensor& tensor) const {
    return side_ == Side::kBefore ? tensor.before : tensor.after;
  }

  Status declare_inputs() {
    for (const ChangedRegion* region : regions_) {
      for (const RegionTensor& input : region->inputs) {
        reserved_.insert(input.before);
        if (!takes(input, side_) || !declared_.insert(input.before).second) continue;
        const auto value = values_.find(input.before);
        if (value == values_.end())
          return FailedPrecondition("no value was taken of '{}'", input.before);
        TensorInfo info = value->second;
        info.name = input.before;
        *proto_->mutable_graph()->add_input() = to_value_info(info);
      }
    }
    return {};
  }

  // A tensor inside a region keeps its name where nothing else has it.
  std::string inner(const std::string& name) {
    if (!reserved_.contains(name) && inner_.insert(name).second) return name;
    return fresh_.make(name + "_inner");
  }

  const std::string& constant(const std::string& name) {
    const auto [it, inserted] = constants_.try_emplace(name);
    if (!inserted) return it->second;
    it->second = inner(name);
    const Value* value = index_.find(name);
    if (value->initializer != nullptr) {
      onnx::TensorProto& copy = *proto_->mutable_graph()->add_initializer();
      copy = *value->initializer;
      copy.set_name(it->second);
    } else {
      for (const auto& sparse : model_.proto().graph().sparse_initializer()) {
        if (sparse.values().name() != name) continue;
        auto& copy = *proto_->mutable_graph()->add_sparse_initializer();
        copy = sparse;
        copy.mutable_values()->set_name(it->second);
      }
    }
    return it->second;
  }

  bool is_constant(std::string_view name) const {
    const Value* value = index_.find(name);
    return value != nullptr && value->is_initializer() && !value->is_input;
  }

  void add_region(std::size_t k) {
    const ChangedRegion& region = *regions_[k];
    const std::vector<int>& nodes = side_ == Side::kBefore ? region.before : region.after;
    TensorNames map;
    for (const RegionTensor& input : region.inputs)
      if (takes(input, side_) && !own(input).empty())
        map.insert_or_assign(own(input), input.before);
    const onnx::GraphProto& graph = model_.proto().graph();
    std::unordered_set<std::string> made;
    for (const int i : nodes)
      for (const std::string& name : graph.node(i).output())
        if (!name.empty()) made.insert(name);
    std::vector<std::pair<std::string, std::string>> passed_on;  // from (own name) -> output
    std::unordered_set<std::string> given;
    for (std::size_t o = 0; o < region.outputs.size(); ++o) {
      const std::string& name = own(region.outputs[o]);
      const std::string& wanted = names_.outputs[k][o];
      if (made.contains(name) && given.insert(name).second)
        map.insert_or_assign(name, wanted);
      else
        passed_on.emplace_back(name, wanted);
    }
    for (const std::string& name : made)
      if (!given.contains(name)) map.insert_or_assign(name, inner(name));
    onnx::GraphProto& to = *proto_->mutable_graph();
    const auto see = [&](std::string_view name) {
      const std::string key(name);
      if (!key.empty() && !map.contains(key) && is_constant(name)) map[key] = constant(key);
    };
    for (const int i : nodes) {
      onnx::NodeProto& node = *to.add_node();
      node = graph.node(i);
      node.clear_doc_string();
      node.clear_metadata_props();
      for (const std::string& name : node.input()) see(name);
      for (const std::string_view name : index_.captures(i)) see(name);
      rename_reads(node, map);
      for (std::string& name : *node.mutable_output())
        if (!name.empty()) name = map.at(name);
    }
    for (const auto& [from, wanted] : passed_on) {
      see(from);
      onnx::NodeProto& node = *to.add_node();
      node.set_op_type("Identity");
      node.set_name(fresh_.make("pass_on_" + wanted));
      const auto it = map.find(from);
      node.add_input(it == map.end() ? from : it->second);
      node.add_output(wanted);
    }
    for (std::size_t o = 0; o < region.outputs.size(); ++o) {
      TensorInfo info;
      info.name = names_.outputs[k][o];
      info.has_rank = false;
      onnx::ValueInfoProto& output = *to.add_output();
      if (const auto value = values_.find(region.outputs[o].before); value != values_.end()) {
        info.dtype = value->second.dtype;
        output = to_value_info(info);
      }
      output.set_name(info.name);
    }
  }

  const Model& model_;
  const Side side_;
  const std::span<const ChangedRegion* const> regions_;
  const RegionNames& names_;
  const TensorInfos& values_;
  const GraphIndex index_;
  UniqueNames fresh_;
  std::unique_ptr<onnx::ModelProto> proto_;
  std::unordered_set<std::string> declared_, reserved_, inner_;
  std::unordered_map<std::string, std::string> constants_;  // name -> name in here
};

void append_side(const Model& model, const GraphIndex& index, const std::vector<int>& nodes,
                 Side side, const ChangedRegion& region, const TensorMap& values,
                 std::string& out) {
  const onnx::GraphProto& graph = model.proto().graph();
  std::unordered_map<std::string_view, std::string> ids;
  for (std::size_t i = 0; i < region.inputs.size(); ++i) {
    const RegionTensor& input = region.inputs[i];
    ids[side == Side::kBefore ? input.before : input.after] = fmt::format("i{}", i);
    if (const auto value = values.find(input.before); value != values.end())
      out += fmt::format("i{} {} {}\n", i, to_string(value->second.dtype()),
                         to_string(value->second.shape()));
  }
  const auto id = [&](std::string_view name) -> std::string {
    if (name.empty()) return "-";
    if (const auto it = ids.find(name); it != ids.end()) return it->second;
    const Value* value = index.find(name);
    if (value != nullptr && value->initializer != nullptr) {
      std::string text = fmt::format("c{}", to_string(Shape(value->initializer->dims().begin(),
                                                            value->initializer->dims().end())));
      const auto tensor = model.tensor(*value->initializer);
      const std::string_view bytes =
          tensor.ok() ? std::string_view(static_cast<const char*>(tensor->raw()), tensor->bytes())
                      : std::string_view(value->name);
      return text + fmt::format("{:x}", std::hash<std::string_view>()(bytes));
    }
    return std::string(name);
  };
  int made = 0;
  std::string attribute_text;
  for (const int i : nodes) {
    const onnx::NodeProto& node = graph.node(i);
    out += fmt::format("{}.{}(", node.domain(), node.op_type());
    for (const std::string& name : node.input()) out += id(name) + ",";
    for (const std::string_view name : index.captures(i)) out += "^" + id(name) + ",";
    out += ")";
    for (const auto& attribute : node.attribute()) {
      attribute.SerializeToString(&attribute_text);
      out += attribute_text;
    }
    for (const std::string& name : node.output()) ids[name] = fmt::format("t{}", made++);
    out += "\n";
  }
  for (const RegionTensor& output : region.outputs)
    out += "o" + id(side == Side::kBefore ? output.before : output.after);
}

}  // namespace

RegionNames::RegionNames(std::span<const ChangedRegion* const> regions) {
  std::unordered_set<std::string> taken;
  for (const ChangedRegion* region : regions)
    for (const RegionTensor& input : region->inputs) taken.insert(input.before);
  for (const ChangedRegion* region : regions) {
    std::vector<std::string> names;
    for (const RegionTensor& output : region->outputs) {
      std::string name = output.before;
      for (int i = 0; !taken.insert(name).second; ++i)
        name = output.before + (i == 0 ? std::string("_out") : fmt::format("_out_{}", i));
      names.push_back(std::move(name));
    }
    outputs.push_back(std::move(names));
  }
}

Result<Model> regions_model(const Model& model, Side side,
                            std::span<const ChangedRegion* const> regions, const RegionNames& names,
                            const TensorInfos& infos) {
  return Builder(model, side, regions, names, infos).run();
}

Result<Model> regions_model(const Model& model, Side side,
                            std::span<const ChangedRegion* const> regions, const RegionNames& names,
                            const TensorMap& values) {
  TensorInfos infos;
  for (const auto& [name, tensor] : values)
    infos.emplace(name, TensorInfo{name, tensor.dtype(), tensor.shape(), true});
  return regions_model(model, side, regions, names, infos);
}

TensorMap region_inputs(Side side, std::span<const ChangedRegion* const> regions,
                        const TensorMap& values) {
  TensorMap out;
  for (const ChangedRegion* region : regions)
    for (const RegionTensor& input : region->inputs)
      if (takes(input, side))
        if (const auto it = values.find(input.before); it != values.end())
          out.emplace(input.before, it->second);
  return out;
}

std::string region_signature(const Model& before, const GraphIndex& before_index,
                             const Model& after, const GraphIndex& after_index,
                             const ChangedRegion& region, const TensorMap& values) {
  std::string out;
  append_side(before, before_index, region.before, Side::kBefore, region, values, out);
  out += "\n->\n";
  append_side(after, after_index, region.after, Side::kAfter, region, values, out);
  return out;
}

}  // namespace tenonnx
