// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/utf8.h"

#include <algorithm>

namespace collet {

namespace {

// True for control characters beyond ASCII: C1, marks that turn the direction of writing, and separators of lines.
bool is_control(uint32_t character) {
  return (character >= 0x80 && character < 0xA0) || character == 0x61C || character == 0x200E || character == 0x200F ||
         (character >= 0x2028 && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069);
}

}  // namespace

size_t utf8_length(std::string_view text, size_t i) {
  auto byte = [&](size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
  auto follows = [&](size_t k) { return k < text.size() && continues_character(text[k]); };
  const unsigned lead = byte(i);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0 && follows(i + 1)) return 2;
  if ((lead & 0xF0) == 0xE0 && follows(i + 1) && follows(i + 2)) {
    const bool overlong = lead == 0xE0 && byte(i + 1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(i + 1) >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (lead >= 0xF0 && lead < 0xF5 && follows(i + 1) && follows(i + 2) && follows(i + 3)) {
    const bool outside = (lead == 0xF0 && byte(i + 1) < 0x90) || (lead == 0xF4 && byte(i + 1) >= 0x90);
    return outside ? 0 : 4;
  }
  return 0;
}

std::string_view utf8_prefix(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && continues_character(text[most])) --most;
  return text.substr(0, most);
}

std::string printable(std::string_view text, Lines lines) {
  std::string out;
  const auto escape = [&](char kind, uint32_t number, int digits) {
    constexpr char kHex[] = "0123456789abcdef";
    out += '\\';
    out += kind;
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHex[number >> shift & 15];
  };
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t n = utf8_length(text, i);
    if (n == 0 || byte == 0x7F) {
      escape('x', byte, 2);
      ++i;
    } else if (byte == '\n' || byte == '\t') {
      if (lines == Lines::Many)
        out += text[i];
      else
        out += byte == '\n' ? "\\n" : "\\t";
      ++i;
    } else if (byte < 0x20) {
      escape('x', byte, 2);
      ++i;
    } else if (const uint32_t number = n == 2 ? (byte & 0x1Fu) << 6 | (text[i + 1] & 0x3Fu)
                                       : n == 3
                                           ? (byte & 0x0Fu) << 12 | (text[i + 1] & 0x3Fu) << 6 | (text[i + 2] & 0x3Fu)
                                           : 0;
               is_control(number)) {
      escape('u', number, 4);
      i += n;
    } else {
      out += text.substr(i, n);
      i += n;
    }
  }
  return out;
}

bool is_plain_name(std::string_view text) {
  constexpr size_t kMost = 64;
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && text.size() <= kMost && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
         });
}

std::string quoted(std::string_view text) {
  return "'" + printable(utf8_prefix(text, 200), Lines::One) + "'";
}

}  // namespace collet
