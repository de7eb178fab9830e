// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Text for a screen: counted nouns, and lines that fit.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenonnx {

inline constexpr std::size_t kScreenColumns = 100;

// "1 node", "3 nodes", "0 nodes"; where the plural is not one with an s it is given:
// counted(2, "box", "boxes").
std::string counted_as(std::int64_t count, std::string_view one, std::string_view more);
std::string counted(std::integral auto count, std::string_view one, std::string_view more = {}) {
  return counted_as(static_cast<std::int64_t>(count), one, more);
}

// Characters on the screen, not bytes: names may hold any UTF-8 (combining and wide characters
// count as one).
std::size_t screen_width(std::string_view text);

// `text`, its lines of more than `columns` characters broken at blanks. What goes on is indented by
// two more than the line was, or to behind a mark such as "[1] ". A word that is longer than a line
// (a path, a name) sticks out, and a command to be copied ("next: tenonnx run ...") stays whole.
// What stands in single quotes, and "(tenonnx ...)", is not broken where it fits into a line.
std::string wrapped(std::string_view text, std::size_t columns = kScreenColumns);

// `text` as a column that begins at `column`: what does not fit goes on below its beginning.
std::string in_column(std::string_view text, std::size_t column,
                      std::size_t columns = kScreenColumns);

// "...end of the name" where it has more than `width` bytes: a tensor's scopes come first, and the
// end says more. A UTF-8 character is not cut apart.
std::string shortened(std::string_view name, std::size_t width);

}  // namespace tenonnx
