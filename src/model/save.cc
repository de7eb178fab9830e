// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <future>
#include <map>
#include <tuple>

#include "base/status.h"
#include "model/graph.h"
#include "model/model.h"
#include "model/serialized_weights.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

// Page size of every platform that ONNX Runtime maps files on, but for Windows.
constexpr std::uint64_t kAlignment = 4096;
constexpr std::size_t kBlock = 1 << 20;

bool all_zero(std::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Collects tensors into a data file that exists only when the first comes.
class DataWriter {
 public:
  explicit DataWriter(fs::path path) : path_(std::move(path)) {}

  // Appends `bytes` and returns their offset. `file` is the mapping that they lie in, or nullptr.
  Result<std::uint64_t> append(std::string_view bytes, const MappedFile* file) {
    if (!file_) {
      TENONNX_ASSIGN_OR_RETURN(AtomicFile created, AtomicFile::create(path_));
      file_ = std::make_unique<AtomicFile>(std::move(created));
    }
    const auto key = std::pair(bytes.data(), bytes.size());
    // Tensors that share their data (tied weights) share it again.
    if (const auto it = written_.find(key); it != written_.end()) return it->second;
    TENONNX_RETURN_IF_ERROR(
        file_->append_zeros((kAlignment - file_->size() % kAlignment) % kAlignment));
    const std::uint64_t offset = file_->size();
    for (std::size_t at = 0; at < bytes.size(); at += kBlock) {
      const std::string_view block = bytes.substr(at, kBlock);
      const bool hole = file != nullptr && file->in_hole(block);
      TENONNX_RETURN_IF_ERROR(hole || all_zero(block) ? file_->append_zeros(block.size())
                                                      : file_->append(block));
      if (file != nullptr && !hole) file->release(block);
    }
    written_[key] = offset;
    return offset;
  }
  Status commit() { return file_ ? file_->commit() : Status(); }

 private:
  fs::path path_;
  std::unique_ptr<AtomicFile> file_;
  std::map<std::pair<const char*, std::size_t>, std::uint64_t> written_;
};

Status externalize(const Model& model, onnx::ModelProto& proto, const SaveOptions& options,
                   const std::string& location, DataWriter& data) {
  std::map<std::string, std::shared_ptr<const MappedFile>> files;
  for (auto& file : model.external_files()) files[file.location] = file.file;
  Status status;
  const auto move_out = [&](onnx::TensorProto& t, bool may_move) -> Status {
    std::string_view bytes;
    const MappedFile* file = nullptr;
    if (is_shared(t)) {
      TENONNX_ASSIGN_OR_RETURN(const SharedBytes shared, model.shared_bytes(t));
      if (!may_move || shared.bytes.size() < options.external_threshold) return {};
      bytes = shared.bytes;
    } else if (is_external(t)) {
      TENONNX_ASSIGN_OR_RETURN(const ExternalRange range, external_range(t));
      const auto it = files.find(range.location);
      if (it == files.end())
        return NotFound("tensor '{}': the external data '{}' is not mapped", t.name(),
                        range.location);
      file = it->second.get();
      TENONNX_ASSIGN_OR_RETURN(const std::uint64_t size, tensor_data_bytes(t));
      if (range.offset > file->bytes().size() || size > file->bytes().size() - range.offset)
        return DataLoss("tensor '{}' reaches beyond '{}'", t.name(), range.location);
      bytes = file->bytes().substr(range.offset, size);
    } else if (may_move && t.has_raw_data() && t.raw_data().size() >= options.external_threshold &&
               !t.raw_data().empty()) {
      bytes = t.raw_data();
    } else {
      return {};
    }
    TENONNX_ASSIGN_OR_RETURN(const std::uint64_t offset, data.append(bytes, file));
    set_external(t, {location, offset, bytes.size(), true});
    return {};
  };
  std::unordered_set<const onnx::TensorProto*> initializers;
  for (const auto& t : proto.graph().initializer()) initializers.insert(&t);
  for_each_tensor(proto, [&](onnx::TensorProto& t) {
    if (status.ok()) status = move_out(t, initializers.contains(&t));
  });
  return status;
}

Status too_large(const std::string& what, std::uint64_t size) {
  return Unsupported(
      "{} {} bytes; a protobuf holds at most 2 GB. Save it with external_threshold, so that large "
      "initializers go into a data file",
      what, size);
}

Result<std::string> serialized(const onnx::ModelProto& proto, const std::string& what) {
  if (proto.ByteSizeLong() > INT_MAX) return too_large(what, proto.ByteSizeLong());
  std::string out;
  if (!proto.SerializeToString(&out)) return Internal("the model cannot be serialized");
  return out;
}

Result<SerializedModel> with_weights(const Model& model, std::string_view references,
                                     const std::string& what) {
  TENONNX_ASSIGN_OR_RETURN(
      SerializedModel whole,
      SerializedModel::with_weights(
          references, [&](const onnx::TensorProto& t) -> std::optional<std::string_view> {
            const auto shared = model.shared_bytes(t);
            if (!shared.ok()) return std::nullopt;
            return shared->bytes;
          }));
  if (whole.size() > INT_MAX) return too_large(what, whole.size());
  return whole;
}

}  // namespace

Result<std::string> Model::serialize_references() const {
  return serialized(*proto_, "the model has");
}

Result<std::string> Model::serialize() const {
  TENONNX_ASSIGN_OR_RETURN(std::string references, serialize_references());
  if (shared_.empty()) return references;
  TENONNX_ASSIGN_OR_RETURN(const SerializedModel whole,
                           with_weights(*this, references, "the model has"));
  std::string out;
  out.reserve(whole.size());
  for (const std::string_view piece : whole.pieces()) out += piece;
  return out;
}

Status Model::save(const fs::path& path, const SaveOptions& options) const {
  const std::string location =
      options.data_file.empty() ? path.filename().string() + ".data" : options.data_file;
  if (fs::path(location).filename() != location)
    return InvalidArgument("the data file '{}' must be a plain name: it lies beside the model",
                           location);
  if (location == path.filename().string())
    return InvalidArgument("the data file '{}' would overwrite the model", location);
  const bool drop = !options.keep_metadata && has_metadata(*proto_);
  const bool move = !external_files().empty() || options.external_threshold != UINT64_MAX;
  // Only where something changes is the proto copied: most models that are saved were extracted or
  // rewritten, and have no metadata any more.
  std::unique_ptr<onnx::ModelProto> changed;
  DataWriter data(path.parent_path() / location);
  if (drop || move) changed = std::make_unique<onnx::ModelProto>(*proto_);
  if (drop) strip_metadata(*changed);
  if (move) TENONNX_RETURN_IF_ERROR(externalize(*this, *changed, options, location, data));
  const onnx::ModelProto& written = changed ? *changed : *proto_;
  const std::string what = fmt::format("'{}' would have", path.string());
  TENONNX_ASSIGN_OR_RETURN(const std::string references, serialized(written, what));
  TENONNX_ASSIGN_OR_RETURN(const SerializedModel whole, with_weights(*this, references, what));
  std::future<std::string> hash;
  if (options.sha256 != nullptr)
    hash = std::async(std::launch::async, [&whole] {
      Sha256 sum;
      for (const std::string_view piece : whole.pieces()) sum.update(piece);
      return sum.hex();
    });
  TENONNX_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  for (const std::string_view piece : whole.pieces()) TENONNX_RETURN_IF_ERROR(file.append(piece));
  TENONNX_RETURN_IF_ERROR(data.commit());
  TENONNX_RETURN_IF_ERROR(file.commit());
  if (options.sha256 != nullptr) *options.sha256 = hash.get();
  return {};
}

}  // namespace tenonnx
