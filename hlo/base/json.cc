// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/json.h"

#include <charconv>
#include <cmath>

#include "hlo/base/utf8.h"

namespace collet {
namespace {

void append_control(std::string& out, unsigned char c) {
  constexpr char kHex[] = "0123456789abcdef";
  out += "\\u00";
  out += kHex[c >> 4];
  out += kHex[c & 15];
}

}  // namespace

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
      ++i;
    } else if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
      ++i;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      append_control(out, static_cast<unsigned char>(c));
      ++i;
    } else if (static_cast<unsigned char>(c) == 0xC2 && i + 1 < text.size() && continues_character(text[i + 1]) &&
               static_cast<unsigned char>(text[i + 1]) < 0xA0) {  // a control character of Latin-1
      append_control(out, static_cast<unsigned char>(text[i + 1]));
      i += 2;
    } else if (const size_t n = utf8_length(text, i)) {
      out += text.substr(i, n);
      i += n;
    } else {
      out += "\\ufffd";
      ++i;
    }
  }
  return out += '"';
}

void JsonWriter::new_line() {
  if (indent_ == 0) return;
  out_ += '\n';
  out_.append(static_cast<size_t>(depth_ * indent_), ' ');
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!first_) out_ += indent_ == 0 ? ", " : ",";
  first_ = false;
  if (depth_ > 0) new_line();
}

JsonWriter& JsonWriter::begin(char bracket) {
  separate();
  out_ += bracket;
  ++depth_;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::end(char bracket) {
  --depth_;
  if (!first_) new_line();
  first_ = false;
  out_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  out_ += json_quote(name);
  out_ += ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  return raw(json_quote(text));
}

JsonWriter& JsonWriter::value(double number) {
  if (std::isnan(number)) return value("nan");
  if (std::isinf(number)) return value(number > 0 ? "inf" : "-inf");
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  return raw(std::string_view(text, static_cast<size_t>(end - text)));
}

JsonWriter& JsonWriter::raw(std::string_view text) {
  separate();
  out_ += text;
  return *this;
}

}  // namespace collet
