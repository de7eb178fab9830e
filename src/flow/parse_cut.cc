// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <system_error>

#include "base/files.h"
#include "base/status.h"
#include "flow/deploy.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

std::vector<std::string> pieces(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (true) {
    const auto end = text.find(separator);
    if (std::string piece = trimmed(text.substr(0, end)); !piece.empty())
      out.push_back(std::move(piece));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

// ["T0","T1"], {"cut": [...]} as in a contract, {"boundaries": [{"source": T0}, ...]} as in
// split.json and a manifest.
Result<std::vector<std::string>> cut_from_json(const JsonReader& reader) {
  JsonReader array = reader;
  bool sources = false;
  if (reader.json().is_object()) {
    sources = !reader.has("cut");
    if (sources && !reader.has("boundaries"))
      return reader.error("an array of tensor names, or an object with 'cut' or 'boundaries'");
    TENONNX_ASSIGN_OR_RETURN(array, reader.at(sources ? "boundaries" : "cut"));
  }
  TENONNX_ASSIGN_OR_RETURN(const auto items, array.items());
  std::vector<std::string> out;
  for (const JsonReader& item : items) {
    TENONNX_ASSIGN_OR_RETURN(std::string name, sources ? item.string("source") : item.string());
    out.push_back(std::move(name));
  }
  return out;
}

Result<std::vector<std::string>> cut_from_file(const fs::path& path) {
  constexpr std::uintmax_t kMaxBytes = 1u << 20;  // thousands of tensor names
  std::error_code error;
  if (const auto bytes = fs::file_size(path, error); error || bytes > kMaxBytes)
    return InvalidArgument("'{}' is no file with a cut: it has {} bytes, allowed are {}",
                           path.string(), bytes, kMaxBytes);
  TENONNX_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  const auto first = text.find_first_not_of(" \t\r\n");
  std::vector<std::string> out;
  if (first != std::string::npos && (text[first] == '{' || text[first] == '[')) {
    TENONNX_ASSIGN_OR_RETURN(const Json json, parse_json(text, path.string()));
    TENONNX_ASSIGN_OR_RETURN(out, cut_from_json(JsonReader(json, path.string())));
  } else {
    out = pieces(text, '\n');
  }
  if (out.empty())
    return InvalidArgument("'{}' names no tensor; for the whole graph say --cut none",
                           path.string());
  return out;
}

}  // namespace

Result<std::vector<std::string>> parse_cut(const std::string& cut) {
  if (cut == "none") return std::vector<std::string>();
  std::error_code error;
  if (fs::is_regular_file(cut, error)) return cut_from_file(cut);
  std::vector<std::string> out = pieces(cut, ',');
  if (out.empty())
    return InvalidArgument("--cut '{}' names no tensor; for the whole graph say --cut none", cut);
  for (const std::string_view word : {"auto", "none"})
    if (out.size() > 1 && std::find(out.begin(), out.end(), word) != out.end())
      return InvalidArgument("the cut '{}' has '{}' beside names: '{}' stands alone", cut, word,
                             word);
  return out;
}

}  // namespace tenonnx
