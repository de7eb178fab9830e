// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <future>
#include <system_error>

#include "base/log.h"
#include "base/status.h"
#include "model/check.h"
#include "model/graph.h"
#include "model/model.h"
#include "model/serialized_weights.h"
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

// Hashes a file while it is read: of 80 MB both take 0.05 s.
class HashedFile {
 public:
  HashedFile(int fd, Pages& memory) : fd_(fd), memory_(memory) {}

  // Fewer bytes than the memory has where the file ends before.
  Result<std::string_view> read(std::string_view where) {
    hash_ = std::async(std::launch::async, [this] { return hash(); });
    const std::string_view whole = memory_.bytes();
    Status status;
    for (std::size_t have = 0; have < whole.size();) {
      const ssize_t n = ::read(fd_, memory_.data() + have, std::min(kBlock, whole.size() - have));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) status = Io("cannot read '{}': {}", where, std::generic_category().message(errno));
      if (n <= 0) break;
      have += static_cast<std::size_t>(n);
      move_on(have, false);
    }
    const std::size_t size = have_ >> 1;
    move_on(size, true);
    TENONNX_RETURN_IF_ERROR(status);
    return whole.substr(0, size);
  }
  // Waits for the end. Only once.
  std::string sha256() { return hash_.get(); }

 private:
  static constexpr std::size_t kBlock = std::size_t{4} << 20;
  void move_on(std::size_t have, bool ended) {
    have_.store(have << 1 | std::size_t{ended}, std::memory_order_release);
    have_.notify_one();
  }
  std::string hash() {
    Sha256 hash;
    std::size_t done = 0;
    while (true) {
      const std::size_t now = have_.load(std::memory_order_acquire);
      hash.update(memory_.bytes().substr(done, (now >> 1) - done));
      done = now >> 1;
      if ((now & 1) != 0) return hash.hex();
      have_.wait(now);
    }
  }

  const int fd_;
  Pages& memory_;
  std::atomic<std::size_t> have_ = 0;  // bytes, and in the lowest bit whether it is all
  std::future<std::string> hash_;
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

    // The file's bytes become the shared weights, moved to where they are aligned: neither the file
    // nor a copy of them stands in memory beside the model.
    auto memory = std::make_shared<Pages>(static_cast<std::size_t>(info.st_size));
    HashedFile file(fd, *memory);
    TENONNX_ASSIGN_OR_RETURN(const std::string_view bytes, file.read(where));
    const std::string location = next_shared_location();
    const auto taken = take_weights(bytes, location);
    Model model;
    const bool parsed = parse(taken ? std::string_view(taken->proto) : bytes, model);
    model.sha256_ = file.sha256();
    if (!parsed) return not_onnx(where);
    if (taken) share(model, location, *taken, bytes, std::move(memory));
    model.source_ = path;
    return finish(std::move(model), path.parent_path(), where);
  }

  static Result<Model> from_bytes(std::string_view bytes, const fs::path& base_dir,
                                  std::string_view where) {
    silence_protobuf();
    if (bytes.size() > kMaxProtobuf) return too_large(where, bytes.size());
    if (bytes.empty()) return DataLoss("{}: there are no bytes", where);
    const std::string location = next_shared_location();
    const auto taken = take_weights(bytes, location);
    Model model;
    if (!parse(taken ? std::string_view(taken->proto) : bytes, model)) return not_onnx(where);
    if (taken) {
      const TakenWeights::Move& last = taken->moves.back();
      share(model, location, *taken, bytes, std::make_shared<Pages>(last.to + last.size));
    }
    model.sha256_ = sha256_hex(bytes);
    return finish(std::move(model), base_dir, where);
  }

  static Result<Model> from_proto(onnx::ModelProto proto, const fs::path& base_dir,
                                  std::string_view where) {
    Model model;
    *model.proto_ = std::move(proto);
    model.share_weights();
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

  static bool parse(std::string_view bytes, Model& model) {
    return model.proto_->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  }

  // `memory` may be that of `bytes`.
  static void share(Model& model, const std::string& location, const TakenWeights& taken,
                    std::string_view bytes, std::shared_ptr<Pages> memory) {
    for (const TakenWeights::Move& move : taken.moves)
      std::memmove(memory->data() + move.to, bytes.data() + move.from, move.size);
    model.shared_[location] = {memory->bytes(), memory};
  }

  static Status map_file(Model& model, const onnx::TensorProto& t, std::string_view where) {
    TENONNX_ASSIGN_OR_RETURN(const ExternalRange range, external_range(t));
    if (model.shared_.contains(range.location) && model.shared_bytes(t).ok()) return {};
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
