// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// .npz is a zip of .npy files. Source: PKWARE APPNOTE 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <set>

#include "base/files.h"
#include "base/npy.h"
#include "base/npy_format.h"
#include "base/status.h"

namespace tenonnx {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50;
constexpr std::uint32_t kCentral = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::size_t kLocalSize = 30;
constexpr std::size_t kCentralSize = 46;
constexpr std::size_t kEndSize = 22;
constexpr std::uint64_t kLimit = 0xFFFFFFFF;  // from here on a zip needs its 64-bit extension
// Deflate makes at most 1032 bytes out of one (zlib's technical details); more is a damaged size.
constexpr std::uint64_t kMaxRatio = 1032;
constexpr std::string_view kBFloat16Suffix = ".bfloat16";

template <typename T>
T read_le(std::string_view bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <typename T>
void put_le(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

Result<std::string> inflate_all(std::string_view in, std::size_t size, const std::string& where) {
  if (size / kMaxRatio > in.size() + 1)
    return DataLoss("{}: {} bytes cannot come out of {} deflated ones", where, size, in.size());
  std::string out(size, '\0');
  z_stream stream{};
  // Negative window bits: deflate without a zlib header, as a zip has it.
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return Internal("{}: zlib did not start", where);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  const bool whole = result == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  if (!whole) return DataLoss("{}: the deflated data is damaged", where);
  return out;
}

std::uint32_t crc_of(std::uint32_t crc, std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// The place of the end record: the last one that reaches exactly to the end of the file.
Result<std::size_t> find_end(std::string_view zip, const std::string& where) {
  if (zip.size() >= kEndSize) {
    const std::size_t lowest = zip.size() > kEndSize + 0xFFFF ? zip.size() - kEndSize - 0xFFFF : 0;
    for (std::size_t at = zip.size() - kEndSize + 1; at-- > lowest;)
      if (read_le<std::uint32_t>(zip, at) == kEnd &&
          read_le<std::uint16_t>(zip, at + 20) == zip.size() - at - kEndSize)
        return at;
  }
  return DataLoss("{}: not an .npz (zip) file, or cut off", where);
}

}  // namespace

// Reads the entry of the central directory at `at` and moves `at` behind it.
Result<NpzFile::Entry> NpzFile::read_entry(std::string_view zip, std::size_t& at,
                                           const std::string& file) {
  const Status damaged = DataLoss("{}: the zip directory is damaged", file);
  if (at > zip.size() || zip.size() - at < kCentralSize ||
      read_le<std::uint32_t>(zip, at) != kCentral)
    return damaged;
  Entry entry;
  const auto flags = read_le<std::uint16_t>(zip, at + 8);
  entry.method = read_le<std::uint16_t>(zip, at + 10);
  entry.crc = read_le<std::uint32_t>(zip, at + 16);
  const std::uint64_t packed = read_le<std::uint32_t>(zip, at + 20);
  entry.size = read_le<std::uint32_t>(zip, at + 24);
  const std::size_t name_size = read_le<std::uint16_t>(zip, at + 28);
  const std::size_t rest =
      std::size_t{read_le<std::uint16_t>(zip, at + 30)} + read_le<std::uint16_t>(zip, at + 32);
  const std::uint64_t local = read_le<std::uint32_t>(zip, at + 42);
  if (zip.size() - at < kCentralSize + name_size + rest) return damaged;
  entry.raw_name = zip.substr(at + kCentralSize, name_size);
  at += kCentralSize + name_size + rest;

  const std::string where = fmt::format("{}: '{}'", file, entry.raw_name);
  if (packed == kLimit || entry.size == kLimit || local == kLimit)
    return Unsupported("{}: 4 GiB or more; save the array as .npy", where);
  if ((flags & 1) != 0) return Unsupported("{}: encrypted", where);
  if (entry.method != 0 && entry.method != 8)
    return Unsupported("{}: zip method {}; stored and deflated are read", where, entry.method);
  if (local + kLocalSize > zip.size() || read_le<std::uint32_t>(zip, local) != kLocal)
    return damaged;
  // The local header may have another extra field than the directory (NumPy's has).
  const std::uint64_t start = local + kLocalSize + read_le<std::uint16_t>(zip, local + 26) +
                              read_le<std::uint16_t>(zip, local + 28);
  if (start > zip.size() || packed > zip.size() - start ||
      (entry.method == 0 && packed != entry.size))
    return damaged;
  entry.data = zip.substr(start, packed);
  return entry;
}

Result<NpzFile> NpzFile::open(const std::filesystem::path& path) {
  NpzFile npz;
  npz.path_ = path;
  TENONNX_ASSIGN_OR_RETURN(npz.file_, MappedFile::open(path));
  const std::string_view zip = npz.file_->bytes();
  TENONNX_ASSIGN_OR_RETURN(const std::size_t end, find_end(zip, path.string()));
  const std::size_t count = read_le<std::uint16_t>(zip, end + 10);
  std::size_t at = read_le<std::uint32_t>(zip, end + 16);
  if (count == 0xFFFF || at == kLimit)
    return Unsupported("{}: a zip of 4 GiB or 65,535 entries and more; save .npy files",
                       path.string());
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < count; ++i) {
    TENONNX_ASSIGN_OR_RETURN(Entry entry, read_entry(zip, at, path.string()));
    std::string name = entry.raw_name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (name.ends_with(kBFloat16Suffix)) name.resize(name.size() - kBFloat16Suffix.size());
    npz.names_.push_back(std::move(name));
    npz.entries_.push_back(std::move(entry));
  }
  for (const std::string& name : npz.names_)
    if (!seen.insert(name).second)
      return DataLoss("{}: two arrays are named '{}'", path.string(), name);
  return npz;
}

bool NpzFile::has(std::string_view name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

Result<Tensor> NpzFile::read(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) return NotFound("{}: there is no array '{}'", path_.string(), name);
  const Entry& entry = entries_[static_cast<std::size_t>(found - names_.begin())];
  const std::string where = fmt::format("{}: '{}'", path_.string(), entry.raw_name);
  std::string_view data = entry.data;
  std::string inflated;
  if (entry.method == 8) {
    TENONNX_ASSIGN_OR_RETURN(inflated, inflate_all(data, entry.size, where));
    data = inflated;
  }
  if (crc_of(0, data) != entry.crc) return DataLoss("{}: the checksum is wrong", where);
  TENONNX_ASSIGN_OR_RETURN(Tensor tensor, parse_npy(data, where));
  const bool bfloat16 = found->size() < entry.raw_name.size() &&
                        entry.raw_name.substr(found->size()).starts_with(kBFloat16Suffix);
  if (bfloat16 && tensor.dtype() == DType::kUInt16) {
    const auto owner = std::make_shared<Tensor>(tensor);
    tensor = Tensor::view(DType::kBFloat16, owner->shape(), owner->raw(), owner);
  }
  return tensor;
}

std::string NpzFile::fingerprint() const {
  std::string text;
  for (const Entry& entry : entries_)
    text += fmt::format("{} {} {:08x}\n", entry.raw_name, entry.size, entry.crc);
  return text;
}

Result<TensorMap> read_npz(const std::filesystem::path& path) {
  TENONNX_ASSIGN_OR_RETURN(const NpzFile file, NpzFile::open(path));
  TensorMap out;
  for (const std::string& name : file.names()) {
    TENONNX_ASSIGN_OR_RETURN(out[name], file.read(name));
  }
  return out;
}

Status write_npz(const std::filesystem::path& path, const TensorMap& tensors) {
  std::list<std::string> headers;  // a list: the pieces keep views of its strings
  std::vector<std::string_view> pieces;
  std::string directory;
  std::uint64_t offset = 0;
  if (tensors.size() >= 0xFFFF) return Unsupported("{}: too many arrays", path.string());
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined())
      return InvalidArgument("{}: the tensor '{}' is empty", path.string(), name);
    const bool bfloat16 = tensor.dtype() == DType::kBFloat16;
    const std::string entry = fmt::format("{}{}.npy", name, bfloat16 ? kBFloat16Suffix : "");
    TENONNX_ASSIGN_OR_RETURN(
        const std::string npy,
        npy_header(bfloat16 ? DType::kUInt16 : tensor.dtype(), tensor.shape()));
    const std::string_view data(static_cast<const char*>(tensor.raw()), tensor.bytes());
    const std::uint64_t size = npy.size() + data.size();
    if (entry.size() > 0xFFFF || size >= kLimit || offset + size + kLocalSize >= kLimit)
      return Unsupported("{}: '{}' would make the .npz 4 GiB or more; write .npy files",
                         path.string(), name);
    const std::uint32_t crc = crc_of(crc_of(0, npy), data);
    // Version 2.0, UTF-8 names, stored, 1980-01-01 00:00 (so that equal content gives equal bytes).
    std::string common;
    for (const std::uint16_t field : {20, 1 << 11, 0, 0, (1 << 5) | 1})
      put_le(common, static_cast<std::uint16_t>(field));
    put_le(common, crc);
    put_le(common, static_cast<std::uint32_t>(size));
    put_le(common, static_cast<std::uint32_t>(size));
    put_le(common, static_cast<std::uint16_t>(entry.size()));
    put_le(common, std::uint16_t{0});

    put_le(directory, kCentral);
    put_le(directory, std::uint16_t{20});
    directory += common;
    directory.append(10, '\0');  // comment, disk, attributes
    put_le(directory, static_cast<std::uint32_t>(offset));
    directory += entry;

    std::string& header = headers.emplace_back();
    put_le(header, kLocal);
    header.append(common).append(entry).append(npy);
    pieces.push_back(header);
    pieces.push_back(data);
    offset += header.size() + data.size();
  }
  const std::uint32_t directory_size = static_cast<std::uint32_t>(directory.size());
  put_le(directory, kEnd);
  put_le(directory, std::uint32_t{0});
  put_le(directory, static_cast<std::uint16_t>(tensors.size()));
  put_le(directory, static_cast<std::uint16_t>(tensors.size()));
  put_le(directory, directory_size);
  put_le(directory, static_cast<std::uint32_t>(offset));
  put_le(directory, std::uint16_t{0});
  pieces.push_back(directory);
  return write_file_atomic(path, pieces);
}

}  // namespace tenonnx
