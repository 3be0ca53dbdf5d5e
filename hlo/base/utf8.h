// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// \file
/// Functions for the characters of UTF-8 text.

namespace collet {

/// True if `c` is the second or a later byte of a character.
inline bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

/// Returns the length of the UTF-8 sequence at `text[i]`; 0 if it is not valid.
size_t utf8_length(std::string_view text, size_t i);

/// Returns at most the first `most` bytes of `text`, without cutting a character.
std::string_view utf8_prefix(std::string_view text, size_t most);

/// Returns `text` in single quotes, for messages; text of more than 200 bytes is cut.
std::string quoted(std::string_view text);

}  // namespace collet
