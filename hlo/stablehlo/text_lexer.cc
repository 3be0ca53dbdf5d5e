// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/text_lexer.h"

namespace collet::hlo::mlir {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_bare(char c) {
  return is_letter(c) || is_digit(c) || c == '.' || c == '$';
}
bool is_suffix(char c) {
  return is_bare(c) || c == '-';
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  return (c | 0x20) - 'a' + 10;
}

}  // namespace

std::string unescape(std::string_view raw) {
  std::string out;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 >= raw.size()) {
      out += raw[i];
      continue;
    }
    const char c = raw[++i];
    if (c == 'n') {
      out += '\n';
    } else if (c == 't') {
      out += '\t';
    } else if (is_hex(c) && i + 1 < raw.size() && is_hex(raw[i + 1])) {
      out += static_cast<char>(hex_value(c) * 16 + hex_value(raw[i + 1]));
      ++i;
    } else {
      out += c;
    }
  }
  return out;
}

void Lexer::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
      const size_t end = text_.find('\n', at_);
      at_ = end == std::string_view::npos ? text_.size() : end;
    } else {
      return;
    }
  }
}

void Lexer::next() {
  skip_space();
  token_ = Token{};
  token_.offset = at_;
  if (at_ >= text_.size()) return;
  const size_t begin = at_;
  const char c = text_[at_];
  const auto run = [&](auto in) {
    while (at_ < text_.size() && in(text_[at_])) ++at_;
  };
  const auto finish = [&](Tok kind, size_t skip) {
    token_.kind = kind;
    token_.text = text_.substr(begin + skip, at_ - begin - skip);
  };
  const auto string_end = [&]() {
    // The position is at the opening quote.
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) {
      at_ = text_.size();
      return false;
    }
    ++at_;
    return true;
  };
  if (is_letter(c)) {
    run(is_bare);
    return finish(Tok::Bare, 0);
  }
  if (c == '%' || c == '^') {
    ++at_;
    run(is_suffix);
    if (c == '%' && at_ < text_.size() && text_[at_] == '#') {
      ++at_;
      run(is_digit);
    }
    return finish(c == '%' ? Tok::Value : Tok::Block, 1);
  }
  if (c == '@') {
    ++at_;
    if (at_ < text_.size() && text_[at_] == '"') {
      if (!string_end()) return finish(Tok::Bad, 0);
      token_.kind = Tok::Symbol;
      token_.text = text_.substr(begin + 2, at_ - begin - 3);
      return;
    }
    run(is_suffix);
    return finish(Tok::Symbol, 1);
  }
  if (c == '#' || c == '!') {
    ++at_;
    run(is_bare);
    return finish(c == '#' ? Tok::Hash : Tok::Bang, 1);
  }
  if (c == '"') {
    if (!string_end()) return finish(Tok::Bad, 0);
    token_.kind = Tok::String;
    token_.text = text_.substr(begin + 1, at_ - begin - 2);
    return;
  }
  if (c == '-' && at_ + 1 < text_.size() && text_[at_ + 1] == '>') {
    at_ += 2;
    return finish(Tok::Arrow, 0);
  }
  if (is_digit(c) || (c == '-' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
    ++at_;
    if (c == '0' && at_ + 1 < text_.size() && text_[at_] == 'x' && is_hex(text_[at_ + 1])) {
      ++at_;
      run(is_hex);
      return finish(Tok::Integer, 0);
    }
    run(is_digit);
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      run(is_digit);
      if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
        size_t exponent = at_ + 1;
        if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
        if (exponent < text_.size() && is_digit(text_[exponent])) {
          at_ = exponent;
          run(is_digit);
        }
      }
      return finish(Tok::Float, 0);
    }
    return finish(Tok::Integer, 0);
  }
  ++at_;
  token_.kind = Tok::Punct;
  token_.punct = c;
  token_.text = text_.substr(begin, 1);
}

}  // namespace collet::hlo::mlir
