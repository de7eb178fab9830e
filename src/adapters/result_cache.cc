// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/result_cache.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/cache_directory.h"
#include "base/files.h"
#include "base/npy.h"
#include "base/status.h"
#include "base/temporary_directory.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

// Arrays are numbered: an output may have a name that is no file name.
std::string array_name(std::size_t index) { return fmt::format("output_{}", index); }

void drop_oldest(const fs::path& directory, std::uint64_t limit) {
  struct Entry {
    fs::file_time_type time;
    std::uint64_t bytes;
    fs::path path;
  };
  std::error_code error;
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".npz") continue;
    entries.push_back({entry.last_write_time(error), entry.file_size(error), entry.path()});
    total += entries.back().bytes;
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.time < b.time; });
  for (const Entry& entry : entries) {
    if (total <= limit) break;
    fs::remove(entry.path, error);
    total -= std::min(total, entry.bytes);
  }
}

}  // namespace

ResultCache::ResultCache(fs::path directory, std::string_view subject)
    : directory_(std::move(directory)), subject_(sha256_hex(subject)) {}

std::string ResultCache::key(std::span<const Tensor> inputs) const {
  std::string text = subject_;
  for (const Tensor& input : inputs)
    text += fmt::format(" {} {} {}", to_string(input.dtype()), to_string(input.shape()),
                        sha256_hex({static_cast<const char*>(input.raw()),
                                    static_cast<std::size_t>(input.bytes())}));
  return sha256_hex(text);
}

std::vector<Tensor> ResultCache::find(const std::string& key,
                                      std::span<const TensorInfo> infos) const {
  if (directory_.empty()) return {};
  auto read = read_npz(directory_ / (key + ".npz"));
  if (!read.ok() || read->size() != infos.size()) return {};
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const auto found = read->find(array_name(i));
    if (found == read->end() || found->second.dtype() != infos[i].dtype) return {};
    const Shape& shape = found->second.shape();
    if (!std::equal(shape.begin(), shape.end(), infos[i].shape.begin(), infos[i].shape.end(),
                    [](std::int64_t have, std::int64_t want) { return want < 0 || have == want; }))
      return {};
    out.push_back(found->second);
  }
  return out;
}

void ResultCache::keep(const std::string& key, std::span<const TensorInfo> infos,
                       std::span<const Tensor> outputs) const {
  if (directory_.empty() || outputs.size() != infos.size()) return;
  std::error_code error;
  fs::create_directories(directory_, error);
  TensorMap tensors;
  for (std::size_t i = 0; i < outputs.size(); ++i) tensors.emplace(array_name(i), outputs[i]);
  const fs::path part = directory_ / (".part-" + random_suffix());
  const RemovedOnInterrupt on_interrupt(part);  // before it is there: write_npz() makes it whole
  if (write_npz(part, tensors).ok()) fs::rename(part, directory_ / (key + ".npz"), error);
  fs::remove(part, error);
  drop_oldest(directory_, limit_);
}

fs::path ResultCache::default_directory() { return cache_directory("results"); }

}  // namespace tenonnx
