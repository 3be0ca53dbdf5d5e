// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/utf8.h"

namespace collet {

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

std::string quoted(std::string_view text) {
  return "'" + std::string(utf8_prefix(text, 200)) + "'";
}

}  // namespace collet
