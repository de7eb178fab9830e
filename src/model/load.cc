// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <system_error>

#include "base/log.h"
#include "base/status.h"
#include "model/check.h"
#include "model/graph.h"
#include "model/model.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

// Protobuf's own limit for one message.
constexpr std::uint64_t kMaxProtobuf = INT_MAX;

// Protobuf prints to standard error by default; what it has to say is in our Status.
void silence_protobuf() {
  static const auto silenced = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(silenced);
}

// Reads and hashes in one go, in blocks: neither the file nor a mapping of it stands in memory
// beside the parsed model.
class HashingInput : public google::protobuf::io::CopyingInputStream {
 public:
  HashingInput(int fd, Sha256& hash) : fd_(fd), hash_(hash) {}
  int Read(void* buffer, int size) override {
    ssize_t n = 0;
    do {
      n = ::read(fd_, buffer, static_cast<std::size_t>(size));
    } while (n < 0 && errno == EINTR);
    if (n < 0) error_ = errno;
    if (n > 0) hash_.update({static_cast<const char*>(buffer), static_cast<std::size_t>(n)});
    return static_cast<int>(n);
  }
  int error() const { return error_; }

 private:
  int fd_;
  int error_ = 0;
  Sha256& hash_;
};

Status too_large(std::string_view where, std::uint64_t size) {
  return Unsupported(
      "{}: {} bytes; a protobuf holds at most 2 GB. Export with external data "
      "(torch.onnx.export with external_data=True, or onnx.save_model with "
      "save_as_external_data=True)",
      where, size);
}

Status not_onnx(std::string_view where) {
  return DataLoss("{}: not an ONNX model, or cut off: the protobuf cannot be read", where);
}

}  // namespace

class ModelLoader {
 public:
  static Result<Model> finish(Model model, const fs::path& base_dir, std::string_view where) {
    model.directory_ = base_dir;
    if (model.proto_->has_graph()) {
      auto early = sort_nodes(*model.proto_->mutable_graph());
      if (!early.ok()) return early.status().at(where);
      if (!early->empty())
        log_warning("{}: the nodes were not in topological order, first {}; sorted", where, *early);
    }
    TENONNX_RETURN_IF_ERROR(check_proto(*model.proto_, where));
    TENONNX_RETURN_IF_ERROR(map_files(model, where));
    if (!model.files_.empty()) TENONNX_RETURN_IF_ERROR(check_model(model, where));
    return model;
  }

  static Result<Model> load(const fs::path& path) {
    silence_protobuf();
    const std::string where = path.string();
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int open_error = errno;
    if (fd < 0) {
      const std::string reason = std::generic_category().message(open_error);
      if (open_error == ENOENT || open_error == ENOTDIR)
        return NotFound("cannot open the model '{}': {}", where, reason);
      return Io("cannot open the model '{}': {}", where, reason);
    }
    const std::shared_ptr<void> closer(nullptr, [fd](void*) { ::close(fd); });
    struct stat info {};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
      return InvalidArgument("'{}' is not a file; give the path of an .onnx file", where);
    if (static_cast<std::uint64_t>(info.st_size) > kMaxProtobuf)
      return too_large(where, static_cast<std::uint64_t>(info.st_size));
    if (info.st_size == 0) return DataLoss("{}: the file is empty", where);

    Model model;
    Sha256 hash;
    HashingInput input(fd, hash);
    google::protobuf::io::CopyingInputStreamAdaptor stream(&input, 1 << 18);
    const bool parsed = model.proto_->ParseFromZeroCopyStream(&stream);
    if (input.error() != 0)
      return Io("cannot read '{}': {}", where, std::generic_category().message(input.error()));
    if (!parsed) return not_onnx(where);
    model.sha256_ = hash.hex();
    model.source_ = path;
    return finish(std::move(model), path.parent_path(), where);
  }

  static Result<Model> from_bytes(std::string_view bytes, const fs::path& base_dir,
                                  std::string_view where) {
    silence_protobuf();
    if (bytes.size() > kMaxProtobuf) return too_large(where, bytes.size());
    if (bytes.empty()) return DataLoss("{}: there are no bytes", where);
    Model model;
    if (!model.proto_->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return not_onnx(where);
    model.sha256_ = sha256_hex(bytes);
    return finish(std::move(model), base_dir, where);
  }

  static Result<Model> from_proto(onnx::ModelProto proto, const fs::path& base_dir,
                                  std::string_view where) {
    Model model;
    *model.proto_ = std::move(proto);
    return finish(std::move(model), base_dir, where);
  }

 private:
  static Status map_files(Model& model, std::string_view where) {
    Status status;
    for_each_tensor(std::as_const(*model.proto_), [&](const onnx::TensorProto& t) {
      if (status.ok() && is_external(t)) status = map_file(model, t, where);
    });
    return status;
  }

  static Status map_file(Model& model, const onnx::TensorProto& t, std::string_view where) {
    TENONNX_ASSIGN_OR_RETURN(const ExternalRange range, external_range(t));
    if (model.files_.contains(range.location)) return {};
    const std::string what = fmt::format("{}: external data of '{}'", where, t.name());
    const auto path = resolve_inside(model.directory_, range.location);
    if (!path.ok()) return path.status().at(what);
    auto file = MappedFile::open(*path);
    if (!file.ok()) return file.status().at(what);
    model.files_.emplace(range.location, std::move(*file));
    return {};
  }
};

Result<Model> Model::load(const fs::path& path) {
  try {
    return ModelLoader::load(path);
  } catch (const std::exception& error) {  // memory: everything else has a Status
    return Internal("{}: {}", path.string(), error.what());
  }
}

Result<Model> Model::from_bytes(std::string_view bytes, const fs::path& base_dir,
                                std::string_view where) {
  try {
    return ModelLoader::from_bytes(bytes, base_dir, where);
  } catch (const std::exception& error) {
    return Internal("{}: {}", where, error.what());
  }
}

Result<Model> Model::from_proto(onnx::ModelProto proto, const fs::path& base_dir,
                                std::string_view where) {
  return ModelLoader::from_proto(std::move(proto), base_dir, where);
}

}  // namespace tenonnx
