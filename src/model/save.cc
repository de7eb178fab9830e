// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <map>
#include <tuple>

#include "base/status.h"
#include "model/graph.h"
#include "model/model.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

// Page size of every platform that ONNX Runtime maps files on, but for Windows.
constexpr std::uint64_t kAlignment = 4096;
constexpr std::size_t kBlock = 1 << 20;

class FileOutput : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit FileOutput(AtomicFile& file) : file_(file) {}
  bool Write(const void* buffer, int size) override {
    status_ = file_.append({static_cast<const char*>(buffer), static_cast<std::size_t>(size)});
    return status_.ok();
  }
  const Status& status() const { return status_; }

 private:
  AtomicFile& file_;
  Status status_;
};

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
    if (is_external(t)) {
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

}  // namespace

Result<std::string> Model::serialize() const {
  if (proto_->ByteSizeLong() > INT_MAX)
    return Unsupported(
        "the model has {} bytes; a protobuf holds at most 2 GB. Save it with "
        "external_threshold, so that large initializers go into a data file",
        proto_->ByteSizeLong());
  std::string out;
  if (!proto_->SerializeToString(&out)) return Internal("the model cannot be serialized");
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
  if (written.ByteSizeLong() > INT_MAX)
    return Unsupported(
        "'{}' would have {} bytes; a protobuf holds at most 2 GB. Save it with "
        "external_threshold, so that large initializers go into a data file",
        path.string(), written.ByteSizeLong());

  TENONNX_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  FileOutput output(file);
  {
    google::protobuf::io::CopyingOutputStreamAdaptor stream(&output, 1 << 18);
    const bool whole = written.SerializeToZeroCopyStream(&stream) && stream.Flush();
    TENONNX_RETURN_IF_ERROR(output.status());
    if (!whole) return Internal("'{}': the model cannot be serialized", path.string());
  }
  TENONNX_RETURN_IF_ERROR(data.commit());
  return file.commit();
}

}  // namespace tenonnx
