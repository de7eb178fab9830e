// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/printable.h"

#include <cstddef>
#include <cstdint>

namespace tenonnx {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8
};

// Source: RFC 3629. Longer forms than needed and surrogates are no UTF-8.
Character first_character(std::string_view text) {
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC0 || first > 0xF4 || bytes > text.size()) return {};
  std::uint32_t code = first & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  if (code < kSmallest[bytes] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, bytes};
}

bool shows(std::uint32_t code) {
  constexpr std::uint32_t kHidden[][2] = {{0x7F, 0x9F},     {0x200B, 0x200F}, {0x2028, 0x202E},
                                          {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}};
  if (code == '\t' || code == '\n') return true;
  if (code < 0x20) return false;
  for (const auto& [from, to] : kHidden)
    if (code >= from && code <= to) return false;
  return true;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\r') {
      if (i + 1 == text.size() || text[i + 1] != '\n') out += '\n';
      ++i;
      continue;
    }
    const Character c = first_character(text.substr(i));
    if (c.bytes > 0 && shows(c.code))
      out += text.substr(i, c.bytes);
    else
      out += '?';
    i += c.bytes > 0 ? c.bytes : 1;
  }
  return out;
}

}  // namespace tenonnx
