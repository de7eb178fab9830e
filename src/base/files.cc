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
#include <utility>

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
  std::shared_ptr<MappedFile> mapped(new MappedFile(static_cast<const char*>(data), file.size));
  // A file in more pieces than this is not sparse on purpose.
  constexpr std::size_t kMaxHoles = 1024;
  const auto size = static_cast<off_t>(file.size);
  for (off_t at = 0; at < size && mapped->holes_.size() < kMaxHoles;) {
    const off_t hole = ::lseek(fd.get(), at, SEEK_HOLE);
    if (hole < 0 || hole >= size) break;
    const off_t next = ::lseek(fd.get(), hole, SEEK_DATA);
    at = next < 0 ? size : next;
    mapped->holes_.emplace_back(hole, at);
  }
  return std::shared_ptr<const MappedFile>(std::move(mapped));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<char*>(data_), size_);
}

void MappedFile::release(std::string_view part) const {
  static const auto kPage = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  // Only whole pages inside the part: the others may be in use by a neighbour.
  const auto begin = (reinterpret_cast<std::uintptr_t>(part.data()) + kPage - 1) / kPage * kPage;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size()) / kPage * kPage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

bool MappedFile::in_hole(std::string_view part) const {
  const auto begin = static_cast<std::size_t>(part.data() - data_);
  return std::any_of(holes_.begin(), holes_.end(), [&](const auto& hole) {
    return hole.first <= begin && begin + part.size() <= hole.second;
  });
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
  TENONNX_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  for (std::string_view piece : pieces) TENONNX_RETURN_IF_ERROR(file.append(piece));
  return file.commit();
}

Result<AtomicFile> AtomicFile::create(const fs::path& path) {
  if (path.filename().empty()) return InvalidArgument("'{}' is not a file name", path.string());
  AtomicFile file;
  file.path_ = path;
  const fs::path temporary =
      path.parent_path() / fmt::format(".{}.tmp-{}", path.filename().string(), random_suffix());
  const auto hold = hold_interrupt();
  file.fd_ = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file.fd_ < 0) return os_error("write", path, errno);
  file.temporary_ = temporary;
  file.on_interrupt_ = RemovedOnInterrupt(temporary);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, fs::path())),
      on_interrupt_(std::move(other.on_interrupt_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_) {}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status AtomicFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    // Linux writes at most 2 GiB - 4 KiB at once.
    const ssize_t n = ::write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), 1 << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error("write", path_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
    size_ += static_cast<std::uint64_t>(n);
  }
  return {};
}

Status AtomicFile::append_zeros(std::uint64_t count) {
  if (count == 0) return {};
  const auto end = static_cast<off_t>(size_ + count);
  if (::ftruncate(fd_, end) != 0 || ::lseek(fd_, end, SEEK_SET) < 0)
    return os_error("write", path_, errno);
  size_ += count;
  return {};
}

Status AtomicFile::commit() {
  if (fd_ < 0) return FailedPrecondition("'{}' has already been written", path_.string());
  if (::fsync(fd_) != 0 && errno != EINVAL) return os_error("write", path_, errno);
  if (::close(std::exchange(fd_, -1)) != 0) return os_error("write", path_, errno);
  auto hold = hold_interrupt();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return os_error("write", path_, errno);
  temporary_.clear();
  on_interrupt_.reset();
  hold.unlock();
  return sync_path(path_.has_parent_path() ? path_.parent_path() : fs::path("."));
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_), EVP_sha256(), nullptr);
}

Sha256::~Sha256() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_)); }

void Sha256::update(std::string_view bytes) {
  EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_), digest.data(), &size);
  return to_hex(digest.data(), size);
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

Result<std::string> sha256_file(const fs::path& path) {
  // Read in blocks, not mapped: a file that shrinks meanwhile must not end the process with SIGBUS.
  TENONNX_ASSIGN_OR_RETURN(const OpenedFile file, open_regular(path));
  Descriptor fd(file.fd);
  Sha256 hash;
  std::string block(1 << 18, '\0');
  while (true) {
    const ssize_t n = ::read(fd.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error("read", path, errno);
    if (n == 0) break;
    hash.update({block.data(), static_cast<std::size_t>(n)});
  }
  return hash.hex();
}

Result<fs::path> resolve_inside(const fs::path& root, std::string_view relative) {
  // An empty root is the working directory. It must be named: weakly_canonical leaves a relative
  // path as it is where not even its first part exists.
  const fs::path base = root.empty() ? fs::path(".") : root;
  const auto refuse = [&](std::string_view reason) -> Status {
    return InvalidArgument("path '{}' {}; only a relative path inside '{}' is allowed", relative,
                           reason, base.string());
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
  const fs::path real_root = fs::weakly_canonical(fs::absolute(base), error);
  if (error) return os_error("resolve", base, error.value());
  const fs::path real = fs::weakly_canonical(fs::absolute(base / path), error);
  if (error) return os_error("resolve", base / path, error.value());
  const fs::path inside = real.lexically_relative(real_root);
  if (inside.empty() || *inside.begin() == "..")
    return refuse("leaves its directory by a symbolic link");
  return root / path;
}

}  // namespace tenonnx
