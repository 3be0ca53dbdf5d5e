// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hlo/ir/types.h"

/// \file
/// Tokens of HLO text. The lexer allocates nothing: tokens are views of the text, which the caller keeps alive.

namespace collet::hlo::text {

enum class Tok : uint8_t {
  End,
  Error,
  Equal,
  Comma,
  Colon,
  Star,
  Question,
  Hash,
  Plus,
  Tilde,
  LeftSquare,
  RightSquare,
  LeftBrace,
  RightBrace,
  LeftParen,
  RightParen,
  Arrow,
  LessEqual,
  Dots,
  Ident,     ///< a word that is neither a type nor a keyword
  Name,      ///< %word, or a word followed by ':', which is part of the token
  AttrName,  ///< a word followed by '=', which is part of the token
  Type,
  Keyword,
  String,  ///< `text` is the part between the quotes
  Int,
  Decimal,
  NegInf,
  Nan,
  DimLabels,
  DxD,
  Pad,
};

enum class Word : uint8_t {
  None,
  HloModule,
  Entry,
  Root,
  True,
  False,
  Inf,
  Nan,
  Maximal,
  Replicated,
  Manual,
  LastTileDimReplicate,
  ShardAs,
  ShardLike,
  Unknown,
  Unreduced,
};

struct Token {
  Tok kind = Tok::End;
  Word word = Word::None;     ///< for Keyword
  Type type = Type::Invalid;  ///< for Type
  bool negative = false;      ///< for Int: written with '-'; for Nan: its sign
  bool escaped = false;       ///< for String: it contains a backslash
  const char* begin = nullptr;
  const char* end = nullptr;  ///< end of the token, including a ':' or '=' that is part of it
  std::string_view text;
  int64_t integer = 0;   ///< for Int: the low 64 bits
  uint64_t payload = 0;  ///< for Nan: its payload; 0 if none is written
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  /// Reads the next token into `out`.
  void next(Token& out);
  /// Continues reading at `at`, which must point into the text.
  void rewind(const char* at) { at_ = at; }
  const char* begin() const { return begin_; }
  const char* end() const { return end_; }
  const char* at() const { return at_; }
  /// Returns why the last token was an Error.
  std::string_view reason() const { return reason_; }

  /// Returns the text from `open`, a '{', to after the matching '}', ignoring braces in strings; empty if there is
  /// none.
  std::string_view braces(const char* open) const;

 private:
  bool skip_blanks(Token& out);
  void word(Token& out);
  void number(Token& out);
  bool pattern(Token& out, const char* digits_end);
  void integer(Token& out, const char* digits_end);
  void string(Token& out);
  void nan(Token& out, bool negative);
  void fail(Token& out, std::string reason);

  const char* begin_;
  const char* at_;
  const char* end_;
  std::string reason_;
};

/// True if the character may occur in a name.
bool is_name_char(char c);
bool begins_name(char c);

/// True for names that XLA gives to no instruction: types, and names that begin with "__" (but not "__xla_").
bool is_reserved_name(std::string_view name);

/// Returns a description for messages: "'{'", "a name", ...
std::string_view token_text(Tok kind);

/// Returns the value of a hexadecimal digit; -1 if it is none.
int hex_digit(char c);
/// Appends `raw` to `out` with its C escapes resolved; false if one is malformed.
bool unescape(std::string_view raw, std::string& out);

}  // namespace collet::hlo::text
