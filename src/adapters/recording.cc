// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/recording.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <system_error>

#include "base/files.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/status.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kInputsEnding = ".inputs";
constexpr int kSchemaVersion = 1;

Result<RecordedName> read_name(const JsonReader& reader) {
  RecordedName name;
  if (reader.json().is_string()) {
    TENONNX_ASSIGN_OR_RETURN(name.key, reader.string());
    return name;
  }
  if (!reader.json().is_object())
    return reader.error("the array's name, or an object with \"key\"");
  TENONNX_RETURN_IF_ERROR(
      reader.only({"key", "layout", "transpose", "reshape", "convert", "scale", "zero_point"}));
  TENONNX_ASSIGN_OR_RETURN(name.key, reader.string("key"));
  TENONNX_ASSIGN_OR_RETURN(name.reshape, reader.boolean_or("reshape", false));
  TENONNX_ASSIGN_OR_RETURN(name.convert, reader.boolean_or("convert", false));
  if (reader.has("scale")) {
    TENONNX_ASSIGN_OR_RETURN(const double scale, reader.number("scale"));
    name.scale = scale;
  }
  TENONNX_ASSIGN_OR_RETURN(name.zero_point, reader.number_or("zero_point", 0));
  if (reader.has("zero_point") && !name.scale)
    return DataLoss(
        "{}: \"zero_point\" without \"scale\": give both of a quantised array, or neither",
        reader.where());
  if (reader.has("layout")) {
    TENONNX_ASSIGN_OR_RETURN(const std::string layout, reader.string("layout"));
    if (layout == "NHWC")
      name.transpose = {0, 3, 1, 2};
    else if (layout == "NCHW")
      name.transpose = {0, 2, 3, 1};
    else
      return DataLoss(
          "{}/layout: \"{}\" is not one of \"NHWC\" (the array's, the model's being NCHW), "
          "\"NCHW\" (the reverse); give other orders as \"transpose\"",
          reader.where(), layout);
  }
  if (reader.has("transpose")) {
    if (!name.transpose.empty())
      return DataLoss("{}: both \"layout\" and \"transpose\"", reader.where());
    TENONNX_ASSIGN_OR_RETURN(const JsonReader axes, reader.at("transpose"));
    TENONNX_ASSIGN_OR_RETURN(const auto items, axes.items());
    for (const JsonReader& item : items) {
      TENONNX_ASSIGN_OR_RETURN(const std::int64_t axis, item.integer());
      name.transpose.push_back(axis);
    }
    const std::vector<std::int64_t> given = name.transpose;
    const auto rank = static_cast<std::int64_t>(given.size());
    for (std::int64_t& axis : name.transpose)
      if (axis < 0) axis += rank;  // from the back, as numpy counts
    std::vector<std::int64_t> sorted = name.transpose;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i)
      if (sorted[i] != static_cast<std::int64_t>(i))
        return DataLoss("{}: {} is no order of the axes 0 to {} (-{} to -1 from the back)",
                        axes.where(), to_string(given), rank - 1, rank);
  }
  return name;
}

Status read_names(const fs::path& file, Recording& recording) {
  TENONNX_ASSIGN_OR_RETURN(const Json json, read_json_file(file));
  const JsonReader reader(json, file.string());
  TENONNX_RETURN_IF_ERROR(reader.only({"schema_version", "source", "tensors"}));
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t version, reader.integer("schema_version"));
  if (version != kSchemaVersion)
    return Unsupported("{}: /schema_version is {}, this version reads {}", file.string(), version,
                       kSchemaVersion);
  TENONNX_ASSIGN_OR_RETURN(recording.source, reader.string_or("source", ""));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader tensors, reader.at("tensors"));
  TENONNX_ASSIGN_OR_RETURN(const auto members, tensors.members());
  for (const auto& [tensor, value] : members) {
    TENONNX_ASSIGN_OR_RETURN(recording.names[tensor], read_name(value));
  }
  return {};
}

// Every key of names.json must be an array of some case: anything else is a slip of the pen.
Status check_keys(const Recording& recording) {
  std::set<std::string> arrays;
  for (const RecordedCase& one : recording.cases) {
    arrays.insert(one.tensors.names().begin(), one.tensors.names().end());
    if (one.inputs) arrays.insert(one.inputs->names().begin(), one.inputs->names().end());
  }
  for (const auto& [tensor, name] : recording.names) {
    if (arrays.contains(name.key)) continue;
    return DataLoss(
        "{}: tensor '{}' is said to be recorded as '{}', but no .npz of '{}' holds such "
        "an array; there are {}",
        recording.names_file.string(), tensor, name.key, recording.path.string(),
        nearest_names(name.key, {arrays.begin(), arrays.end()}));
  }
  return {};
}

Result<RecordedCase> read_case(const fs::path& file) {
  RecordedCase one;
  one.name = file.stem().string();
  TENONNX_ASSIGN_OR_RETURN(one.tensors, NpzFile::open(file));
  const fs::path inputs =
      file.parent_path() /
      (one.name == "outputs" ? "inputs.npz" : fmt::format("{}{}.npz", one.name, kInputsEnding));
  std::error_code error;
  if (fs::exists(inputs, error)) {
    TENONNX_ASSIGN_OR_RETURN(one.inputs, NpzFile::open(inputs));
  }
  return one;
}

Result<std::vector<fs::path>> find_cases(const fs::path& directory) {
  std::vector<fs::path> files, inputs;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".npz") continue;
    const fs::path stem = it->path().stem();
    (stem == "inputs" || stem.extension() == kInputsEnding ? inputs : files).push_back(it->path());
  }
  if (error) return Io("cannot read '{}': {}", directory.string(), error.message());
  for (const fs::path& file : inputs) {
    const fs::path stem = file.stem();
    const fs::path outputs =
        directory / (stem == "inputs" ? "outputs.npz" : stem.stem().string() + ".npz");
    if (std::find(files.begin(), files.end(), outputs) == files.end())
      return NotFound(
          "{}: inputs without the outputs that were recorded for them: there is no '{}'",
          file.string(), outputs.filename().string());
  }
  if (files.empty())
    return NotFound(
        "'{}' holds no recording: put one .npz a case there, its arrays named like the model's "
        "tensors, or name them in names.json (docs/reference/executors.md)",
        directory.string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

const RecordedName* Recording::entry(std::string_view tensor) const {
  const auto found = names.find(tensor);
  return found == names.end() ? nullptr : &found->second;
}

std::string_view Recording::key_of(std::string_view tensor) const {
  const RecordedName* name = entry(tensor);
  return name == nullptr ? tensor : std::string_view(name->key);
}

std::string Recording::case_list() const {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < cases.size() && i < kShown; ++i)
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", cases[i].name);
  if (cases.size() > kShown) text += fmt::format(" and {} more", cases.size() - kShown);
  return text;
}

Result<Recording> read_recording(const fs::path& path) {
  Recording recording;
  recording.path = path;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return NotFound("there is no recording '{}'", path.string());
  std::vector<fs::path> files = {path};
  if (fs::is_directory(status)) {
    TENONNX_ASSIGN_OR_RETURN(files, find_cases(path));
  } else if (path.extension() != ".npz") {
    return InvalidArgument("recording '{}': a directory or an .npz file is needed", path.string());
  }
  for (const fs::path& file : files) {
    TENONNX_ASSIGN_OR_RETURN(RecordedCase one, read_case(file));
    recording.cases.push_back(std::move(one));
  }
  recording.names_file = (fs::is_directory(status) ? path : path.parent_path()) / "names.json";
  std::string content;
  if (fs::exists(recording.names_file, error)) {
    TENONNX_RETURN_IF_ERROR(read_names(recording.names_file, recording));
    TENONNX_RETURN_IF_ERROR(check_keys(recording));
    TENONNX_ASSIGN_OR_RETURN(content, read_file(recording.names_file));
  }
  for (const RecordedCase& one : recording.cases) {
    content += fmt::format("{}\n{}", one.name, one.tensors.fingerprint());
    if (one.inputs) content += fmt::format("inputs\n{}", one.inputs->fingerprint());
  }
  recording.fingerprint = sha256_hex(content);
  return recording;
}

}  // namespace tenonnx
