// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
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

/// Whether a text may have several lines.
enum class Lines : uint8_t { One, Many };

/// Returns `text` with everything escaped that could control a terminal: control characters of ASCII and of Latin-1 (C1), bytes that
/// are no UTF-8, and characters that separate lines or turn the direction of writing. "\x1b" and "\u009b" are examples. Line feeds
/// and tabs stay where `lines` is Many. Whatever comes from outside goes through this function before it is shown: names, paths,
/// texts of programs and of backends. A text that it has returned is not changed by it.
std::string printable(std::string_view text, Lines lines = Lines::Many);

/// True if `text` has 1 to 64 characters, a lower-case letter first, then lower-case letters, digits, '-', '_' and '.'. Such a name is
/// the same in every file name, option and report.
bool is_plain_name(std::string_view text);

/// Returns `text` in single quotes, for messages, printable in one line; text of more than 200 bytes is cut.
std::string quoted(std::string_view text);

}  // namespace collet
