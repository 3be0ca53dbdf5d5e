// SPDX-License-Identifier: Apache-2.0
#include "conformance/report/markup.h"

#include <fmt/format.h>

#include "hlo/base/json.h"
#include "hlo/base/utf8.h"

namespace collet::conformance {

std::string escape_markup(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text, i);
    const std::string_view character = text.substr(i, length);
    i += length == 0 ? 1 : length;
    if (character == "&") {
      out += "&amp;";
    } else if (character == "<") {
      out += "&lt;";
    } else if (character == ">") {
      out += "&gt;";
    } else if (character == "\"") {
      out += "&quot;";
    } else if (character == "\n") {
      out += "&#10;";
    } else if (length == 0 || (length == 1 && static_cast<unsigned char>(character[0]) < 0x20 && character != "\t")) {
      out += ' ';
    } else {
      // Marks that turn the direction of writing would show the text in another order than it has.
      out += length > 1 ? printable(character, Lines::Many) : std::string(character);
    }
  }
  return out;
}

std::string link_to_file(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace collet::conformance
