// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/files.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <system_error>

#include "base/status.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int close() {
    const int result = fd_ >= 0 ? ::close(fd_) : 0;
    fd_ = -1;
    return result;
  }

 private:
  int fd_;
};

Status os_error(const char* action, const fs::path& path, int error) {
  const std::string reason = std::generic_category().message(error);
  if (error == ENOENT || error == ENOTDIR)
    return NotFound("cannot {} '{}': {}", action, path.string(), reason);
  return Io("cannot {} '{}': {}", action, path.string(), reason);
}

struct OpenedFile {
  int fd;
  std::size_t size;
};

Result<OpenedFile> open_regular(const fs::path& path) {
  // O_NONBLOCK: opening a FIFO that nobody writes must not wait for ever.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return os_error("open", path, errno);
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return os_error("read", path, error);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return InvalidArgument("cannot read '{}': it is {}, not a file", path.string(),
                           S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe");
  }
  return OpenedFile{fd, static_cast<std::size_t>(info.st_size)};
}

std::string to_hex(const unsigned char* bytes, std::size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < size; ++i) {
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out;
}

}  // namespace

Result<std::string> read_file(const fs::path& path) {
  TENONNX_ASSIGN_OR_RETURN(const OpenedFile file, open_regular(path));
  Descriptor fd(file.fd);
  std::string out;
  out.resize(file.size);
  std::size_t have = 0;
  // One read beyond the size that stat gave: a file of /proc says 0, and a growing file grows.
  while (true) {
    if (have == out.size()) out.resize(out.size() + 4096);
    const ssize_t n = ::read(fd.get(), out.data() + have, out.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error("read", path, errno);
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  out.resize(have);
  return out;
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const fs::path& path) {
  TENONNX_ASSIGN_OR_RETURN(const OpenedFile file, open_regular(path));
  Descriptor fd(file.fd);
  if (file.size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(nullptr, 0));
  void* data = ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return os_error("map", path, errno);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const char*>(data), file.size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<char*>(data_), size_);
}

std::string random_suffix() {
  static std::atomic<std::uint32_t> counter = 0;
  std::random_device device;
  return fmt::format("{}-{:08x}{:04x}", ::getpid(), device(), ++counter & 0xFFFFu);
}

Status sync_path(const fs::path& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return os_error("open", path, errno);
  // EINVAL: the file system has no notion of flushing this kind of file.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return os_error("flush", path, errno);
  return {};
}

Status write_file_atomic(const fs::path& path, std::string_view bytes) {
  return write_file_atomic(path, std::span(&bytes, 1));
}

Status write_file_atomic(const fs::path& path, std::span<const std::string_view> pieces) {
  if (path.filename().empty()) return InvalidArgument("'{}' is not a file name", path.string());
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path temporary =
      parent / fmt::format(".{}.tmp-{}", path.filename().string(), random_suffix());
  Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (fd.get() < 0) return os_error("write", path, errno);
  const auto fail = [&](int error) {
    fd.close();
    ::unlink(temporary.c_str());
    return os_error("write", path, error);
  };
  for (std::string_view piece : pieces) {
    while (!piece.empty()) {
      // Linux writes at most 2 GiB - 4 KiB at once.
      const ssize_t n =
          ::write(fd.get(), piece.data(), std::min<std::size_t>(piece.size(), 1 << 30));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(errno);
      piece.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return fail(errno);
  if (fd.close() != 0) return fail(errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail(errno);
  return sync_path(parent);
}

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    return {};
  return to_hex(digest.data(), size);
}

Result<std::string> sha256_file(const fs::path& path) {
  // Read in blocks, not mapped: a file that shrinks meanwhile must not end the process with SIGBUS.
  TENONNX_ASSIGN_OR_RETURN(const OpenedFile file, open_regular(path));
  Descriptor fd(file.fd);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1)
    return Internal("OpenSSL offers no SHA-256");
  std::string block(1 << 18, '\0');
  while (true) {
    const ssize_t n = ::read(fd.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error("read", path, errno);
    if (n == 0) break;
    EVP_DigestUpdate(context.get(), block.data(), static_cast<std::size_t>(n));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &size);
  return to_hex(digest.data(), size);
}

Result<fs::path> resolve_inside(const fs::path& root, std::string_view relative) {
  const auto refuse = [&](std::string_view reason) -> Status {
    return InvalidArgument("path '{}' {}; only a relative path inside '{}' is allowed", relative,
                           reason, root.string());
  };
  if (relative.empty()) return refuse("is empty");
  if (relative.find('\0') != std::string_view::npos)
    return InvalidArgument("a path inside '{}' holds a NUL character", root.string());
  const fs::path path(relative);
  if (path.is_absolute()) return refuse("is absolute");
  for (const fs::path& part : path)
    if (part == "..") return refuse("leaves its directory by '..'");
  if (path.lexically_normal() == ".") return refuse("names the directory itself");
  std::error_code error;
  const fs::path real_root = fs::weakly_canonical(root.empty() ? fs::path(".") : root, error);
  if (error) return os_error("resolve", root, error.value());
  const fs::path joined = root / path;
  const fs::path real = fs::weakly_canonical(joined, error);
  if (error) return os_error("resolve", joined, error.value());
  const fs::path inside = real.lexically_relative(real_root);
  if (inside.empty() || *inside.begin() == "..")
    return refuse("leaves its directory by a symbolic link");
  return joined;
}

}  // namespace tenonnx
