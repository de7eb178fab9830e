// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tenonnx {
namespace {

// Behind a mark such as "[1] ", else two.
std::size_t hanging(std::string_view words) {
  const std::size_t end = words.find("] ");
  const bool marked = words.starts_with('[') && end != std::string_view::npos && end <= 5;
  return marked ? end + 2 : 2;
}

// "tenonnx run package images", or with one word and a colon before it.
bool is_command(std::string_view words) {
  constexpr std::string_view kProgram = "tenonnx ";
  if (words.starts_with(kProgram)) return true;
  const std::size_t colon = words.find(": ");
  if (colon == std::string_view::npos || words.find(' ') < colon) return false;
  const std::size_t begin = words.find_first_not_of(' ', colon + 1);
  return begin != std::string_view::npos && words.substr(begin).starts_with(kProgram);
}

// Where the word at `begin` ends. What stands in single quotes, or as "(tenonnx ...)", is one word,
// blanks or not, as long as it fits into a line: a path, a name or a command to be copied.
std::size_t end_of_word(std::string_view words, std::size_t begin, std::size_t columns) {
  constexpr std::string_view kCommand = "(tenonnx ";
  std::size_t end = std::min(words.find(' ', begin), words.size());
  for (std::size_t i = begin; i < end; ++i) {
    const bool opens = i == begin || words[i - 1] == '(' || words[i - 1] == '=';
    std::size_t close = std::string_view::npos;
    if (words.substr(i).starts_with(kCommand)) close = words.find(')', i);
    if (words[i] == '\'' && opens) {
      close = words.find('\'', i + 1);
      while (close != std::string_view::npos && close + 1 < words.size() &&
             std::isalnum(static_cast<unsigned char>(words[close + 1])) != 0)
        close = words.find('\'', close + 1);
    }
    if (close == std::string_view::npos || close < i + 2) continue;
    const std::size_t behind = std::min(words.find(' ', close), words.size());
    if (screen_width(words.substr(begin, behind - begin)) > columns) continue;
    end = std::max(end, behind);
    i = close;
  }
  return end;
}

std::string wrapped_line(std::string_view line, std::size_t columns) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::string_view words = line.substr(indent);
  if (screen_width(line) <= columns || is_command(words)) return std::string(line);
  const std::string hang(indent + hanging(words), ' ');
  std::string out(line.substr(0, indent));
  std::size_t width = indent;
  bool empty = true;  // the line that is being filled
  std::size_t begin = 0;
  while (begin < words.size()) {
    const std::size_t word_begin = std::min(words.find_first_not_of(' ', begin), words.size());
    const std::size_t end =
        end_of_word(words, word_begin, columns - std::min(columns, hang.size()));
    const std::string_view blanks = words.substr(begin, word_begin - begin);
    const std::string_view word = words.substr(word_begin, end - word_begin);
    if (!empty && width + blanks.size() + screen_width(word) > columns) {
      out += '\n' + hang;
      width = hang.size();
    } else {
      out += blanks;
      width += blanks.size();
    }
    out += word;
    width += screen_width(word);
    empty = false;
    begin = end;
  }
  return out;
}

}  // namespace

std::string counted_as(std::int64_t count, std::string_view one, std::string_view more) {
  if (count == 1) return fmt::format("1 {}", one);
  if (!more.empty()) return fmt::format("{} {}", count, more);
  return fmt::format("{} {}s", count, one);
}

std::size_t screen_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string in_column(std::string_view text, std::size_t column, std::size_t columns) {
  std::string out;
  std::size_t width = column;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (begin > 0 && width + 1 + screen_width(word) > columns) {
      out += '\n' + std::string(column, ' ');
      width = column;
    } else if (begin > 0) {
      out += ' ';
      ++width;
    }
    out += word;
    width += screen_width(word);
    begin = end + 1;
  }
  return out;
}

std::string shortened(std::string_view name, std::size_t width) {
  constexpr std::string_view kDots = "...";
  if (name.size() <= width || width <= kDots.size()) return std::string(name);
  std::size_t begin = name.size() - (width - kDots.size());
  while (begin < name.size() && (name[begin] & 0xC0) == 0x80) ++begin;
  return fmt::format("{}{}", kDots, name.substr(begin));
}

std::string wrapped(std::string_view text, std::size_t columns) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    out += wrapped_line(text.substr(0, end), columns);
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace tenonnx
