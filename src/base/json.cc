// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/files.h"
#include "base/status.h"

namespace tenonnx {
namespace {

// Far beyond what any of our files needs, and far below what would exhaust the stack in a recursive
// walk.
constexpr int kMaxDepth = 64;

// Reads without building anything; refuses what the builder would take: depth and duplicate keys.
class Checker : public nlohmann::json_sax<Json> {
 public:
  const std::string& problem() const { return problem_; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t value, const string_t& text) override {
    if (std::isfinite(value)) return true;
    return fail(fmt::format("the number {} does not fit a double", text));
  }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return check_depth();
  }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    return fail(fmt::format("the key \"{}\" stands twice in one object", name));
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    keys_.emplace_back();
    return check_depth();
  }
  bool end_array() override {
    keys_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    std::string_view text = error.what();
    if (const auto end = text.find("] "); end != std::string_view::npos)
      text.remove_prefix(end + 2);
    return fail(std::string(text));
  }

 private:
  bool check_depth() {
    if (keys_.size() <= static_cast<std::size_t>(kMaxDepth)) return true;
    return fail(fmt::format("nested deeper than {} levels", kMaxDepth));
  }
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  std::vector<std::set<std::string>> keys_;
  std::string problem_;
};

bool all_finite(const Json& value) {
  if (value.is_number_float()) return std::isfinite(value.get<double>());
  if (!value.is_structured()) return true;
  return std::all_of(value.begin(), value.end(), [](const Json& item) { return all_finite(item); });
}

void name_non_finite(Json& value) {
  if (value.is_number_float()) value = json_number(value.get<double>());
  if (!value.is_structured()) return;
  for (Json& item : value) name_non_finite(item);
}

std::string_view kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "an integer";
    case Json::value_t::number_float:
      return "a number";
    default:
      return "something else";
  }
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view where) {
  try {
    Checker checker;
    if (!Json::sax_parse(text, &checker))
      return DataLoss("{}: not JSON that can be read: {}", where, checker.problem());
    return Json::parse(text);
  } catch (const std::exception& error) {
    return DataLoss("{}: not JSON that can be read: {}", where, error.what());
  }
}

Result<Json> read_json_file(const std::filesystem::path& path) {
  TENONNX_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  return parse_json(text, path.string());
}

Status write_json_file(const std::filesystem::path& path, const Json& value) {
  return write_file_atomic(path, dump_json(value));
}

std::string dump_json(const Json& value) {
  // error_handler_t::replace: a file name need not be UTF-8; dump() would throw at one.
  constexpr auto kReplace = Json::error_handler_t::replace;
  if (all_finite(value)) return value.dump(2, ' ', false, kReplace) + "\n";
  Json copy = value;
  name_non_finite(copy);
  return copy.dump(2, ' ', false, kReplace) + "\n";
}

Json json_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

bool JsonReader::has(std::string_view key) const {
  return value_->is_object() && value_->find(key) != value_->end();
}

JsonReader JsonReader::child(const Json& value, std::string_view step) const {
  JsonReader reader(value, fmt::format("{}{}/{}", where_, inner_ ? "" : ": ", step));
  reader.inner_ = true;
  return reader;
}

Result<JsonReader> JsonReader::at(std::string_view key) const {
  if (!value_->is_object()) return error("an object");
  const auto it = value_->find(key);
  if (it == value_->end()) return DataLoss("{}: the field \"{}\" is missing", where_, key);
  return child(*it, key);
}

Result<std::vector<JsonReader>> JsonReader::items() const {
  if (!value_->is_array()) return error("an array");
  std::vector<JsonReader> out;
  for (const Json& item : *value_) out.push_back(child(item, std::to_string(out.size())));
  return out;
}

Result<std::vector<std::pair<std::string, JsonReader>>> JsonReader::members() const {
  if (!value_->is_object()) return error("an object");
  std::vector<std::pair<std::string, JsonReader>> out;
  for (const auto& [key, item] : value_->items()) out.emplace_back(key, child(item, key));
  return out;
}

Result<std::string> JsonReader::string() const {
  if (!value_->is_string()) return error("a string");
  return value_->get<std::string>();
}

Result<double> JsonReader::number() const {
  if (value_->is_number()) return value_->get<double>();
  if (value_->is_string()) {
    const auto& text = value_->get_ref<const std::string&>();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  }
  return error("a number");
}

Result<std::int64_t> JsonReader::integer() const {
  if (!value_->is_number_integer()) return error("an integer");
  if (value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    return DataLoss("{}: the integer {} is beyond int64", where_, value_->get<std::uint64_t>());
  return value_->get<std::int64_t>();
}

Result<bool> JsonReader::boolean() const {
  if (!value_->is_boolean()) return error("a boolean");
  return value_->get<bool>();
}

Result<std::string> JsonReader::string(std::string_view key) const {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader field, at(key));
  return field.string();
}

Result<double> JsonReader::number(std::string_view key) const {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader field, at(key));
  return field.number();
}

Result<std::int64_t> JsonReader::integer(std::string_view key) const {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader field, at(key));
  return field.integer();
}

Result<bool> JsonReader::boolean(std::string_view key) const {
  TENONNX_ASSIGN_OR_RETURN(const JsonReader field, at(key));
  return field.boolean();
}

Result<std::string> JsonReader::string_or(std::string_view key, std::string fallback) const {
  if (value_->is_object() && !has(key)) return fallback;
  return string(key);
}

Result<double> JsonReader::number_or(std::string_view key, double fallback) const {
  if (value_->is_object() && !has(key)) return fallback;
  return number(key);
}

Result<std::int64_t> JsonReader::integer_or(std::string_view key, std::int64_t fallback) const {
  if (value_->is_object() && !has(key)) return fallback;
  return integer(key);
}

Result<bool> JsonReader::boolean_or(std::string_view key, bool fallback) const {
  if (value_->is_object() && !has(key)) return fallback;
  return boolean(key);
}

Status JsonReader::only(std::initializer_list<std::string_view> allowed) const {
  if (!value_->is_object()) return error("an object");
  for (const auto& [key, item] : value_->items()) {
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    std::string list;
    for (std::string_view name : allowed)
      list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
    return DataLoss("{}: unknown field \"{}\"; allowed: {}", where_, key, list);
  }
  return {};
}

Status JsonReader::error(std::string_view expected) const {
  return DataLoss("{}: expected {}, got {}", where_, expected, kind_of(*value_));
}

}  // namespace tenonnx
