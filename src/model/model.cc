// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/model.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/status.h"
#include "model/graph.h"
#include "model/tensor_proto.h"

namespace tenonnx {

Model::Model() : proto_(std::make_shared<onnx::ModelProto>()) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

void Model::share_weights() {
  if (!proto_->has_graph()) return;
  std::set<std::string, std::less<>> used;
  for (onnx::TensorProto& t : *proto_->mutable_graph()->mutable_initializer()) {
    if (is_shared(t)) {
      if (const auto range = external_range(t); range.ok()) used.insert(range->location);
      continue;
    }
    if (is_external(t) || t.data_type() == onnx::TensorProto::STRING ||
        t.raw_data().size() < kSharedBytes)
      continue;
    const std::shared_ptr<const std::string> data(t.release_raw_data());
    const std::string location = next_shared_location();
    shared_[location] = {*data, data};
    used.insert(location);
    set_external(t, {location, 0, data->size(), true});
  }
  std::erase_if(shared_, [&](const auto& block) { return !used.contains(block.first); });
}

void Model::adopt_weights(const Model& other) {
  shared_.insert(other.shared_.begin(), other.shared_.end());
}

Result<SharedBytes> Model::shared_bytes(const onnx::TensorProto& tensor) const {
  TENONNX_ASSIGN_OR_RETURN(const ExternalRange range, external_range(tensor));
  const auto it = shared_.find(range.location);
  if (it == shared_.end())
    return NotFound("tensor '{}': its values are those of another model", tensor.name());
  const std::string_view block = it->second.bytes;
  if (range.offset > block.size() || range.length > block.size() - range.offset)
    return DataLoss("tensor '{}' reaches beyond the {} bytes of its block", tensor.name(),
                    block.size());
  return SharedBytes{block.substr(range.offset, range.length), it->second.owner};
}

Result<std::vector<std::pair<std::string, Tensor>>> Model::shared_weights() const {
  std::vector<std::pair<std::string, Tensor>> out;
  for (const auto& t : proto_->graph().initializer()) {
    if (!is_shared(t)) continue;
    TENONNX_ASSIGN_OR_RETURN(Tensor value, tensor(t));
    out.emplace_back(t.name(), std::move(value));
  }
  return out;
}

Model Model::clone() const { return with_proto(std::make_unique<onnx::ModelProto>(*proto_)); }

Model Model::with_proto(std::unique_ptr<onnx::ModelProto> proto) const {
  Model out;
  out.proto_ = std::move(proto);
  out.files_ = files_;
  out.shared_ = shared_;
  out.source_ = source_;
  out.directory_ = directory_;
  out.sha256_ = sha256_;
  return out;
}

std::vector<TensorInfo> Model::inputs() const {
  std::unordered_set<std::string_view> stored;
  for (const auto& t : proto_->graph().initializer()) stored.insert(t.name());
  for (const auto& s : proto_->graph().sparse_initializer()) stored.insert(s.values().name());
  std::vector<TensorInfo> out;
  for (const auto& input : proto_->graph().input())
    if (!stored.contains(input.name())) out.push_back(to_info(input));
  return out;
}

std::vector<TensorInfo> Model::outputs() const {
  std::vector<TensorInfo> out;
  for (const auto& output : proto_->graph().output()) out.push_back(to_info(output));
  return out;
}

Result<Tensor> Model::initializer(std::string_view name) const {
  for (const auto& t : proto_->graph().initializer())
    if (t.name() == name) return tensor(t);
  return NotFound("the model has no initializer '{}'", name);
}

Result<Tensor> Model::constant(std::string_view name) const {
  for (const auto& t : proto_->graph().initializer())
    if (t.name() == name) return tensor(t);
  for (const auto& node : proto_->graph().node()) {
    if (node.op_type() != "Constant" || node.output_size() != 1 || node.output(0) != name ||
        !normalized_domain(node.domain()).empty())
      continue;
    for (const auto& a : node.attribute()) {
      if (a.name() == "value") return tensor(a.t());
      if (a.name() == "value_float") return Tensor::from<float>(DType::kFloat32, {}, {a.f()});
      if (a.name() == "value_int") return Tensor::from<std::int64_t>(DType::kInt64, {}, {a.i()});
      if (a.name() == "value_floats")
        return Tensor::from<float>(DType::kFloat32, {a.floats_size()},
                                   {a.floats().begin(), a.floats().end()});
      if (a.name() == "value_ints")
        return Tensor::from<std::int64_t>(DType::kInt64, {a.ints_size()},
                                          {a.ints().begin(), a.ints().end()});
    }
    return Unsupported("{} holds no dense numbers", node_label(node));
  }
  return NotFound("the model has no constant '{}'", name);
}

Result<Tensor> Model::tensor(const onnx::TensorProto& proto) const {
  if (!is_external(proto)) return to_tensor(proto, proto_);
  const DType dtype = from_onnx_type(proto.data_type());
  if (dtype == DType::kUndefined)
    return Unsupported("tensor '{}' is {}, which tenonnx does not read as values", proto.name(),
                       onnx_type_name(proto.data_type()));
  Shape shape(proto.dims().begin(), proto.dims().end());
  const std::int64_t count = element_count(shape);
  if (is_shared(proto)) {
    TENONNX_ASSIGN_OR_RETURN(const SharedBytes data, shared_bytes(proto));
    if (count < 0 || static_cast<std::uint64_t>(count) * size_of(dtype) != data.bytes.size())
      return DataLoss("tensor '{}': its data does not fill {} {}", proto.name(), to_string(dtype),
                      to_string(shape));
    return Tensor::view(dtype, std::move(shape), data.bytes.data(), data.owner);
  }
  TENONNX_ASSIGN_OR_RETURN(const ExternalRange range, external_range(proto));
  const auto it = files_.find(range.location);
  if (it == files_.end())
    return NotFound("tensor '{}': the external data '{}' is not mapped", proto.name(),
                    range.location);
  const std::string_view file = it->second->bytes();
  if (count < 0 || range.offset > file.size() ||
      static_cast<std::uint64_t>(count) > (file.size() - range.offset) / size_of(dtype))
    return DataLoss("tensor '{}' reaches beyond the {} bytes of '{}'", proto.name(), file.size(),
                    range.location);
  Tensor view = Tensor::view(dtype, std::move(shape), file.data() + range.offset, it->second);
  // An offset need not be a multiple of the element: a copy is aligned.
  if (range.offset % size_of(dtype) != 0) return view.clone();
  return view;
}

std::int64_t Model::ir_version() const { return proto_->ir_version(); }

std::int64_t Model::opset(std::string_view domain) const {
  for (const auto& import : proto_->opset_import())
    if (normalized_domain(import.domain()) == normalized_domain(domain)) return import.version();
  return 0;
}

std::map<std::string, std::string> Model::metadata() const {
  std::map<std::string, std::string> out;
  for (const auto& entry : proto_->metadata_props()) out[entry.key()] = entry.value();
  return out;
}

std::vector<ExternalFile> Model::external_files() const {
  if (files_.empty()) return {};
  std::set<std::string> used;
  for_each_tensor(std::as_const(*proto_), [&](const onnx::TensorProto& t) {
    if (!is_external(t)) return;
    if (auto range = external_range(t); range.ok()) used.insert(range->location);
  });
  std::vector<ExternalFile> out;
  for (const std::string& location : used)
    if (const auto it = files_.find(location); it != files_.end())
      out.push_back({location, it->second});
  return out;
}

std::vector<std::pair<std::string, std::string>> Model::source_hashes() const {
  // Blocks that are given back: hashing a file of many GB must not fill the memory.
  constexpr std::size_t kBlock = 64u << 20;
  std::vector<std::pair<std::string, std::string>> out;
  if (!sha256_.empty()) out.emplace_back(source_.filename().string(), sha256_);
  for (const auto& [location, file] : files_) {
    Sha256 hash;
    for (std::size_t at = 0; at < file->bytes().size(); at += kBlock) {
      const std::string_view block = file->bytes().substr(at, kBlock);
      hash.update(block);
      file->release(block);
    }
    out.emplace_back(location, hash.hex());
  }
  return out;
}

}  // namespace tenonnx
