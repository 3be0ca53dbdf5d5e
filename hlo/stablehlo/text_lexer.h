// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace collet::hlo::mlir {

/// Tokens of MLIR text.
enum class Tok : uint8_t {
  End,
  Bare,     ///< identifier, with dots: stablehlo.add, f32, true
  Value,    ///< %name or %0, with #n: text without the %
  Symbol,   ///< @name or @"name": text without the @
  Hash,     ///< #name, with dots: text without the #
  Bang,     ///< !name, with dots: text without the !
  Block,    ///< ^bb0
  Integer,  ///< -1, 0x7F
  Float,    ///< 1.5e-3
  String,   ///< contents as written, escapes unresolved
  Arrow,    ///< ->
  Punct,    ///< one character
  Bad
};

struct Token {
  Tok kind = Tok::End;
  std::string_view text;
  size_t offset = 0;
  char punct = 0;
  bool is(char c) const { return kind == Tok::Punct && punct == c; }
  bool is_word(std::string_view word) const { return kind == Tok::Bare && text == word; }
};

/// Splits text into tokens. Dimensions such as 2x3xf32 are not tokens; dimension_list() reads them from the raw text.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { next(); }

  const Token& peek() const { return token_; }
  Token take() {
    Token out = token_;
    next();
    return out;
  }
  std::string_view text() const { return text_; }
  /// Moves to an offset, back or forth, and reads the token there.
  void seek(size_t offset) {
    at_ = offset;
    next();
  }

 private:
  void next();
  void skip_space();

  std::string_view text_;
  size_t at_ = 0;
  Token token_;
};

/// Returns a string token's contents with escapes resolved: \n, \t, \", \\ and \HH.
std::string unescape(std::string_view raw);

}  // namespace collet::hlo::mlir
