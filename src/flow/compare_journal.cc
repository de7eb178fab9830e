// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare_journal.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <vector>

#include "base/cache_directory.h"
#include "base/files.h"
#include "base/status.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

// Comparisons that are kept; each is some hundred KiB to a few MiB.
constexpr std::size_t kKept = 16;

Result<WindowFigures> figures_from_json(const JsonReader& reader) {
  WindowFigures figures;
  TENONNX_ASSIGN_OR_RETURN(const JsonReader tensors, reader.at("tensors"));
  TENONNX_ASSIGN_OR_RETURN(const auto items, tensors.items());
  for (const JsonReader& item : items) {
    TENONNX_ASSIGN_OR_RETURN(const std::int64_t position, item.integer("position"));
    TENONNX_ASSIGN_OR_RETURN(TensorComparison tensor, tensor_comparison_from_json(item));
    figures.tensors.emplace_back(static_cast<std::size_t>(position), std::move(tensor));
  }
  TENONNX_ASSIGN_OR_RETURN(const JsonReader selections, reader.at("selections"));
  TENONNX_ASSIGN_OR_RETURN(const auto sets, selections.items());
  for (const JsonReader& item : sets) {
    TENONNX_ASSIGN_OR_RETURN(const std::int64_t position, item.integer("position"));
    TENONNX_ASSIGN_OR_RETURN(SelectionAgreement agreement, selection_agreement_from_json(item));
    figures.selections.emplace_back(static_cast<std::size_t>(position), agreement);
  }
  return figures;
}

// Files that a killed run did not get to rename. Writing one takes milliseconds: what is a minute
// old is nobody's any more, and what is younger may be that of an equal run beside this one.
void remove_unfinished(const fs::path& directory) {
  const auto before = fs::file_time_type::clock::now() - std::chrono::minutes(1);
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->path().filename().string().find(".tmp-") != std::string::npos &&
        it->last_write_time(ignored) < before && !ignored)
      fs::remove(it->path(), ignored);
  }
}

// The oldest beyond kKept go.
void prune(const fs::path& directory) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    // Only what has the form of our own: 64 hex digits.
    const std::string name = it->path().filename().string();
    if (name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string::npos)
      found.emplace_back(it->last_write_time(error), it->path());
  }
  std::sort(found.rbegin(), found.rend());
  for (std::size_t i = kKept; i < found.size(); ++i) fs::remove_all(found[i].second, error);
}

}  // namespace

fs::path CompareJournal::default_directory() { return cache_directory("compare"); }

Result<CompareJournal> CompareJournal::open(const fs::path& directory, std::string_view key,
                                            bool resume) {
  CompareJournal journal;
  if (directory.empty()) return journal;
  journal.path_ = directory / sha256_hex(key);
  std::error_code error;
  if (!resume) fs::remove_all(journal.path_, error);
  fs::create_directories(journal.path_, error);
  if (error)
    return Io("cannot make '{}' to keep figures in: {}; give --cache DIR, or --cache none",
              journal.path_.string(), error.message());
  fs::last_write_time(journal.path_, fs::file_time_type::clock::now(), error);
  remove_unfinished(journal.path_);
  prune(directory);
  return journal;
}

std::optional<WindowFigures> CompareJournal::recall(std::size_t begin) const {
  if (path_.empty()) return std::nullopt;
  const fs::path file = path_ / fmt::format("{}.json", begin);
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  const auto json = read_json_file(file);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  const auto content = json->find("window"), hash = json->find("sha256");
  if (content == json->end() || hash == json->end()) return std::nullopt;
  if (!hash->is_string() || *hash != sha256_hex(content->dump())) return std::nullopt;
  if (!content->is_object() || content->value("begin", Json()) != Json(begin)) return std::nullopt;
  auto figures = figures_from_json(JsonReader(*content, file.string()));
  if (!figures.ok()) return std::nullopt;
  return std::move(*figures);
}

Status CompareJournal::remember(std::size_t begin, const WindowFigures& figures) const {
  if (path_.empty()) return {};
  Json json = {{"begin", begin}, {"tensors", Json::array()}, {"selections", Json::array()}};
  for (const auto& [position, tensor] : figures.tensors) {
    Json one = to_json(tensor);
    one["position"] = position;
    json["tensors"].push_back(std::move(one));
  }
  for (const auto& [position, agreement] : figures.selections) {
    Json one = to_json(agreement);
    one["position"] = position;
    json["selections"].push_back(std::move(one));
  }
  const std::string hash = sha256_hex(json.dump());
  return write_json_file(path_ / fmt::format("{}.json", begin),
                         {{"sha256", hash}, {"window", std::move(json)}});
}

}  // namespace tenonnx
