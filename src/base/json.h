// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// JSON in the order in which it was written, and typed reading whose errors name the path:
// "manifest.json: /segments/0/file: expected a string, got a number".
#pragma once

#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

using Json = nlohmann::ordered_json;

// DataLoss with line and column where the text is not JSON; `where` is put first. Depth beyond 64
// and duplicate keys are refused.
Result<Json> parse_json(std::string_view text, std::string_view where);
Result<Json> read_json_file(const std::filesystem::path& path);
// Two-space indent and a newline at the end, written atomically.
Status write_json_file(const std::filesystem::path& path, const Json& value);
// The text that write_json_file writes. Infinities and NaN, which JSON lacks, are written as the
// strings "inf", "-inf" and "nan".
std::string dump_json(const Json& value);
// A double as JSON under that convention, and back (a number, or one of the three strings).
Json json_number(double value);

// A cursor into a JSON value, which must outlive it, that knows its path. Missing and wrong-typed
// fields are DataLoss.
class JsonReader {
 public:
  JsonReader(const Json& value, std::string where) : value_(&value), where_(std::move(where)) {}
  const Json& json() const { return *value_; }
  const std::string& where() const { return where_; }
  bool has(std::string_view key) const;
  Result<JsonReader> at(std::string_view key) const;  // a member of an object
  Result<std::vector<JsonReader>> items() const;      // the elements of an array
  Result<std::vector<std::pair<std::string, JsonReader>>> members() const;
  Result<std::string> string() const;
  Result<double> number() const;  // also "inf", "-inf", "nan"
  Result<std::int64_t> integer() const;
  Result<bool> boolean() const;
  Result<std::string> string(std::string_view key) const;
  Result<double> number(std::string_view key) const;
  Result<std::int64_t> integer(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::string> string_or(std::string_view key, std::string fallback) const;
  Result<double> number_or(std::string_view key, double fallback) const;
  Result<std::int64_t> integer_or(std::string_view key, std::int64_t fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  // An object whose keys are all among `allowed`; else DataLoss that names the unknown key and the
  // allowed ones (a misspelt field must not be silently ignored).
  Status only(std::initializer_list<std::string_view> allowed) const;
  Status error(std::string_view expected) const;  // "<where>: expected <expected>, got <kind>"

 private:
  JsonReader child(const Json& value, std::string_view step) const;
  const Json* value_;
  std::string where_;
  bool inner_ = false;  // where_ already holds a path
};

}  // namespace tenonnx
