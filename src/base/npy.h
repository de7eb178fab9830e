// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// NumPy's .npy (format 1.0 to 3.0, C order, little endian) and .npz (stored, and deflated on
// reading). bfloat16, which NumPy lacks, is written as uint16 with the array's name ending in
// ".bfloat16" inside an .npz and refused in an .npy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "tenonnx/base.h"

namespace tenonnx {

Result<Tensor> read_npy(const std::filesystem::path& path);
Result<Tensor> parse_npy(std::string_view bytes, std::string_view where);
Status write_npy(const std::filesystem::path& path, const Tensor& tensor);
Result<TensorMap> read_npz(const std::filesystem::path& path);

// An .npz whose arrays are read one at a time, so that a file of gigabytes needs the memory of one
// array. The errors of read_npz, for the directory when it is opened, for an array when it is read.
class NpzFile {
 public:
  static Result<NpzFile> open(const std::filesystem::path& path);
  const std::filesystem::path& path() const { return path_; }
  // In the order of the file.
  const std::vector<std::string>& names() const { return names_; }
  bool has(std::string_view name) const;
  // NotFound.
  Result<Tensor> read(std::string_view name) const;
  // Names, sizes and checksums of all arrays, from the directory: other content, other text.
  std::string fingerprint() const;

 private:
  struct Entry {
    std::string raw_name;  // with its endings
    std::uint16_t method = 0;
    std::uint32_t crc = 0;
    std::uint64_t size = 0;
    std::string_view data;  // inside file_
  };
  static Result<Entry> read_entry(std::string_view zip, std::size_t& at, const std::string& file);
  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
  std::vector<std::string> names_;  // without endings
  std::vector<Entry> entries_;      // one a name
};

Status write_npz(const std::filesystem::path& path, const TensorMap& tensors);

}  // namespace tenonnx
