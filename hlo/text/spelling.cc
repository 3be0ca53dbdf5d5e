// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>

#include "hlo/text/lexer.h"

namespace collet::hlo::text {
namespace {

void append_utf8(uint32_t rune, std::string& out) {
  if (rune < 0x80) {
    out += static_cast<char>(rune);
  } else if (rune < 0x800) {
    out += static_cast<char>(0xC0 | rune >> 6);
    out += static_cast<char>(0x80 | (rune & 0x3F));
  } else if (rune < 0x10000) {
    out += static_cast<char>(0xE0 | rune >> 12);
    out += static_cast<char>(0x80 | (rune >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (rune & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | rune >> 18);
    out += static_cast<char>(0x80 | (rune >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (rune >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (rune & 0x3F));
  }
}

// Reads exactly `count` hexadecimal digits, which follow "\u" or "\U".
bool unescape_rune(std::string_view raw, size_t& i, int count, std::string& out) {
  uint32_t rune = 0;
  for (int k = 0; k < count; ++k) {
    const int digit = i < raw.size() ? hex_digit(raw[i]) : -1;
    if (digit < 0) return false;
    rune = rune << 4 | static_cast<uint32_t>(digit);
    ++i;
  }
  if (rune > 0x10FFFF || (rune >= 0xD800 && rune <= 0xDFFF)) return false;
  append_utf8(rune, out);
  return true;
}

bool unescape_number(std::string_view raw, size_t& i, int base, std::string& out) {
  uint32_t value = 0;
  const size_t begin = i;
  for (; i < raw.size() && (base == 16 || i < begin + 3); ++i) {
    const int digit = hex_digit(raw[i]);
    if (digit < 0 || digit >= base) break;
    value = value * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit);
    if (value > 0xFF) return false;
  }
  out += static_cast<char>(value);
  return i > begin;
}

}  // namespace

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool unescape(std::string_view raw, std::string& out) {
  for (size_t i = 0; i < raw.size();) {
    const char c = raw[i++];
    if (c != '\\') {
      out += c;
      continue;
    }
    if (i == raw.size()) return false;
    const char e = raw[i++];
    constexpr std::string_view kFrom = "abfnrtv\\?'\"", kTo = "\a\b\f\n\r\t\v\\?'\"";
    if (const size_t k = kFrom.find(e); k != std::string_view::npos) {
      out += kTo[k];
    } else if (e >= '0' && e <= '7') {
      --i;
      if (!unescape_number(raw, i, 8, out)) return false;
    } else if (e == 'x' || e == 'X') {
      if (!unescape_number(raw, i, 16, out)) return false;
    } else if (e == 'u' || e == 'U') {
      if (!unescape_rune(raw, i, e == 'u' ? 4 : 8, out)) return false;
    } else {
      return false;
    }
  }
  return true;
}

std::string_view token_text(Tok kind) {
  switch (kind) {
    case Tok::End:
      return "the end of the text";
    case Tok::Error:
      return "an unreadable character";
    case Tok::Equal:
      return "'='";
    case Tok::Comma:
      return "','";
    case Tok::Colon:
      return "':'";
    case Tok::Star:
      return "'*'";
    case Tok::Question:
      return "'?'";
    case Tok::Hash:
      return "'#'";
    case Tok::Plus:
      return "'+'";
    case Tok::Tilde:
      return "'~'";
    case Tok::LeftSquare:
      return "'['";
    case Tok::RightSquare:
      return "']'";
    case Tok::LeftBrace:
      return "'{'";
    case Tok::RightBrace:
      return "'}'";
    case Tok::LeftParen:
      return "'('";
    case Tok::RightParen:
      return "')'";
    case Tok::Arrow:
      return "'->'";
    case Tok::LessEqual:
      return "'<='";
    case Tok::Dots:
      return "'...'";
    case Tok::Ident:
      return "a word";
    case Tok::Name:
      return "a name";
    case Tok::AttrName:
      return "an attribute's name";
    case Tok::Type:
      return "an element type";
    case Tok::Keyword:
      return "a keyword";
    case Tok::String:
      return "a string";
    case Tok::Int:
      return "an integer";
    case Tok::Decimal:
      return "a decimal number";
    case Tok::NegInf:
      return "'-inf'";
    case Tok::Nan:
      return "'nan'";
    case Tok::DimLabels:
      return "dimension labels";
    case Tok::DxD:
      return "sizes such as 3x3";
    case Tok::Pad:
      return "padding such as 0_0x1_1";
  }
  return "a token";
}

}  // namespace collet::hlo::text
