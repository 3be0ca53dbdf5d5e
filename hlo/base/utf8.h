// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

/// \file
/// Characters of text in UTF-8.

namespace collet {

/// Whether `c` is the second or a later byte of a character.
inline bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

/// Length of the UTF-8 sequence at `text[i]`; 0 where there is none.
size_t utf8_length(std::string_view text, size_t i);

/// The first `most` bytes of `text`, less those of a character that would be cut.
std::string_view utf8_prefix(std::string_view text, size_t most);

}  // namespace collet
