// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/npy.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/files.h"
#include "base/npy_format.h"
#include "base/status.h"

namespace tenonnx {
namespace {

static_assert(std::endian::native == std::endian::little, ".npy data is used as it lies");

constexpr std::string_view kMagic = "\x93NUMPY";

struct Descr {
  DType dtype;
  std::string_view text;
};
constexpr std::array<Descr, 12> kDescrs = {{{DType::kFloat32, "<f4"},
                                            {DType::kFloat64, "<f8"},
                                            {DType::kFloat16, "<f2"},
                                            {DType::kInt8, "|i1"},
                                            {DType::kInt16, "<i2"},
                                            {DType::kInt32, "<i4"},
                                            {DType::kInt64, "<i8"},
                                            {DType::kUInt8, "|u1"},
                                            {DType::kUInt16, "<u2"},
                                            {DType::kUInt32, "<u4"},
                                            {DType::kUInt64, "<u8"},
                                            {DType::kBool, "|b1"}}};

// Reads the Python dict literal of a header, no more of Python than NumPy writes there.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}
  bool take(char c) {
    skip_space();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::optional<std::string_view> quoted() {
    skip_space();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return std::nullopt;
    const auto end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view out = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return out;
  }
  std::optional<bool> boolean() {
    skip_space();
    for (const auto& [word, value] :
         {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return value;
      }
    return std::nullopt;
  }
  std::optional<Shape> tuple() {
    if (!take('(')) return std::nullopt;
    Shape shape;
    while (!take(')')) {
      skip_space();
      std::int64_t d = 0;
      const auto [rest, error] = std::from_chars(text_.data(), text_.data() + text_.size(), d);
      if (error != std::errc() || d < 0) return std::nullopt;
      text_.remove_prefix(static_cast<std::size_t>(rest - text_.data()));
      shape.push_back(d);
      if (!take(',') && !(text_.starts_with(')'))) return std::nullopt;
    }
    return shape;
  }
  bool at_end() {
    skip_space();
    return text_.empty();
  }

 private:
  void skip_space() {
    const auto n = text_.find_first_not_of(" \t\n");
    text_.remove_prefix(n == std::string_view::npos ? text_.size() : n);
  }
  std::string_view text_;
};

struct Header {
  std::string_view descr;
  bool fortran_order = false;
  Shape shape;
};

std::optional<Header> parse_header(std::string_view text) {
  HeaderParser p(text);
  Header header;
  int seen = 0;
  if (!p.take('{')) return std::nullopt;
  while (!p.take('}')) {
    const auto key = p.quoted();
    if (!key || !p.take(':')) return std::nullopt;
    if (*key == "descr") {
      const auto value = p.quoted();  // a list here is a structured dtype: refused
      if (!value) return std::nullopt;
      header.descr = *value;
    } else if (*key == "fortran_order") {
      const auto value = p.boolean();
      if (!value) return std::nullopt;
      header.fortran_order = *value;
    } else if (*key == "shape") {
      auto value = p.tuple();
      if (!value) return std::nullopt;
      header.shape = std::move(*value);
    } else {
      return std::nullopt;
    }
    ++seen;
    p.take(',');
  }
  if (seen != 3 || !p.at_end()) return std::nullopt;
  return header;
}

}  // namespace

Result<std::string> npy_header(DType dtype, const Shape& shape) {
  for (const Descr& row : kDescrs) {
    if (row.dtype != dtype) continue;
    std::string dims;
    for (std::int64_t d : shape) dims += fmt::format("{}{}", dims.empty() ? "" : ", ", d);
    if (shape.size() == 1) dims += ",";
    std::string dict =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", row.text, dims);
    // The data begins at a multiple of 64, as NumPy has it.
    dict.append(63 - (kMagic.size() + 4 + dict.size()) % 64, ' ');
    dict += '\n';
    if (dict.size() > 0xFFFF) break;
    std::string out(kMagic);
    out += {'\x01', '\x00', static_cast<char>(dict.size() & 0xFF),
            static_cast<char>(dict.size() >> 8)};
    return out + dict;
  }
  return Unsupported(".npy has no dtype for {} {}", to_string(dtype), to_string(shape));
}

Result<Tensor> parse_npy(std::string_view bytes, std::string_view where) {
  if (!bytes.starts_with(kMagic))
    return DataLoss("{}: not an .npy file: it does not begin with \\x93NUMPY", where);
  if (bytes.size() < 10) return DataLoss("{}: the .npy header is cut off", where);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const int version = byte(6);
  if (version < 1 || version > 3)
    return Unsupported("{}: .npy format {}.{}; formats 1.0 to 3.0 are read", where, version,
                       byte(7));
  std::size_t start = 10;
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) {
    if (bytes.size() < 12) return DataLoss("{}: the .npy header is cut off", where);
    start = 12;
    length |= static_cast<std::size_t>(byte(10)) << 16 | static_cast<std::size_t>(byte(11)) << 24;
  }
  if (length > bytes.size() - start) return DataLoss("{}: the .npy header is cut off", where);
  const auto header = parse_header(bytes.substr(start, length));
  if (!header)
    return DataLoss("{}: the .npy header is not a dict of a simple descr, fortran_order and shape",
                    where);
  DType dtype = DType::kUndefined;
  for (const Descr& row : kDescrs)
    // A one-byte type may be written with any byte order mark.
    if (header->descr == row.text || (row.text[0] == '|' && header->descr.size() == 3 &&
                                      header->descr.substr(1) == row.text.substr(1)))
      dtype = row.dtype;
  if (dtype == DType::kUndefined)
    return Unsupported(
        "{}: dtype '{}' is not read; save little-endian float16/32/64, (u)int8 to "
        "(u)int64 or bool",
        where, header->descr);
  if (header->fortran_order && header->shape.size() > 1)
    return Unsupported("{}: the array is in Fortran order; save numpy.ascontiguousarray(x)", where);
  const std::int64_t count = element_count(header->shape);
  const std::size_t have = bytes.size() - start - length;
  if (count < 0 || static_cast<std::uint64_t>(count) > have / size_of(dtype) ||
      static_cast<std::size_t>(count) * size_of(dtype) != have)
    return DataLoss("{}: {} {} against {} bytes of data", where, to_string(dtype),
                    to_string(header->shape), have);
  Tensor tensor(dtype, header->shape);
  if (have > 0) std::memcpy(tensor.mutable_raw(), bytes.data() + start + length, have);
  return tensor;
}

Result<Tensor> read_npy(const std::filesystem::path& path) {
  TENONNX_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
  return parse_npy(file->bytes(), path.string());
}

Status write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  if (!tensor.defined()) return InvalidArgument("{}: the tensor is empty", path.string());
  if (tensor.dtype() == DType::kBFloat16)
    return Unsupported("{}: .npy has no bfloat16; write an .npz, or float32", path.string());
  TENONNX_ASSIGN_OR_RETURN(const std::string header, npy_header(tensor.dtype(), tensor.shape()));
  const std::string_view pieces[] = {header,
                                     {static_cast<const char*>(tensor.raw()), tensor.bytes()}};
  return write_file_atomic(path, pieces);
}

}  // namespace tenonnx
