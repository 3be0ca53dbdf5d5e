// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/lexer.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string>

#include "reference_backends/gpu/emulator/ptx.h"

namespace collet::gpu::emulator {
namespace {

bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}
bool continues_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    for (;;) {
      const bool spaced = skip_space();
      Token token;
      token.line = line_;
      token.after_space = spaced;
      if (at_ == text_.size()) {
        tokens.push_back(token);
        return tokens;
      }
      read(token);
      tokens.push_back(token);
    }
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  [[noreturn]] void fail(const std::string& message) const { throw PtxError(line_, message); }

  bool skip_space() {
    const size_t from = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
      } else if (std::isspace(static_cast<unsigned char>(c))) {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '/' && peek(1) == '*') {
        const int began = line_;
        at_ += 2;
        while (at_ < text_.size() && !(text_[at_] == '*' && peek(1) == '/')) line_ += text_[at_++] == '\n';
        if (at_ >= text_.size()) throw PtxError(began, "the comment has no end");
        at_ += 2;
      } else {
        break;
      }
    }
    return at_ != from;
  }

  void read(Token& token) {
    const size_t from = at_;
    const char c = peek();
    if (starts_name(c)) {
      ++at_;
      while (continues_name(peek())) ++at_;
      token.kind = Token::Kind::kName;
      token.text = text_.substr(from, at_ - from);
    } else if (c == '.' && (continues_name(peek(1)))) {
      ++at_;
      while (continues_name(peek()) || (peek() == ':' && peek(1) == ':') || (peek() == ':' && text_[at_ - 1] == ':'))
        ++at_;
      token.kind = Token::Kind::kDotName;
      token.text = text_.substr(from + 1, at_ - from - 1);
    } else if (is_digit(c)) {
      read_number(token);
    } else if (c == '"') {
      ++at_;
      while (peek() != '"') {
        if (at_ >= text_.size() || peek() == '\n') fail("the string has no end");
        at_ += peek() == '\\' && at_ + 1 < text_.size() ? 2 : 1;
      }
      token.kind = Token::Kind::kString;
      token.text = text_.substr(from + 1, at_ - from - 1);
      ++at_;
    } else if (std::string_view("(){}[],;:+-!|@=<>*~").find(c) != std::string_view::npos) {
      ++at_;
      token.kind = Token::Kind::kPunctuation;
      token.text = text_.substr(from, 1);
    } else {
      fail("this character means nothing: code " + std::to_string(static_cast<unsigned char>(c)));
    }
  }

  void read_hex_float(Token& token, size_t digits) {
    const std::string_view hex = text_.substr(at_ + 2, digits);
    uint64_t bits = 0;
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), bits, 16);
    if (hex.size() != digits || error != std::errc() || end != hex.data() + digits) {
      fail("a floating-point constant in hexadecimal has " + std::to_string(digits) + " digits");
    }
    at_ += 2 + digits;
    token.kind = Token::Kind::kFloat;
    if (digits == 8) {
      token.is_f32 = true;
      token.f32 = static_cast<uint32_t>(bits);
      bits = std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(token.f32)));
    }
    token.integer = bits;
  }

  void read_number(Token& token) {
    const size_t from = at_;
    const char second = static_cast<char>(std::tolower(static_cast<unsigned char>(peek(1))));
    int base = 10;
    if (peek() == '0' && second == 'f') return read_hex_float(token, 8);
    if (peek() == '0' && second == 'd') return read_hex_float(token, 16);
    if (peek() == '0' && (second == 'x' || second == 'b')) {
      base = second == 'x' ? 16 : 2;
      at_ += 2;
    } else {
      size_t end = at_;
      while (end < text_.size() && is_digit(text_[end])) ++end;
      const bool fraction = end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1]);
      const bool exponent = end < text_.size() && (text_[end] == 'e' || text_[end] == 'E');
      if (fraction || exponent) return read_decimal(token);
      if (peek() == '0' && is_digit(second)) base = 8;
    }
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), token.integer, base);
    if (error != std::errc()) fail("this number does not fit in 64 bits, or has no digits");
    at_ += static_cast<size_t>(end - begin);
    if (peek() == 'U') ++at_;
    token.kind = Token::Kind::kInteger;
    token.text = text_.substr(from, at_ - from);
    if (continues_name(peek())) fail("a number is followed by letters");
  }

  void read_decimal(Token& token) {
    const size_t from = at_;
    while (is_digit(peek())) ++at_;
    if (peek() == '.') ++at_;
    while (is_digit(peek())) ++at_;
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      while (is_digit(peek())) ++at_;
    }
    token.kind = Token::Kind::kFloat;
    token.text = text_.substr(from, at_ - from);
    token.integer = std::bit_cast<uint64_t>(std::strtod(std::string(token.text).c_str(), nullptr));
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<Token> lex_ptx(std::string_view text) {
  return Lexer(text).run();
}

}  // namespace collet::gpu::emulator
