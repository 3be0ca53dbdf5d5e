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
  Ident,     ///< a word that is neither type nor keyword
  Name,      ///< %word, or word followed by ':' (which is swallowed)
  AttrName,  ///< word followed by '=' (which is swallowed)
  Type,
  Keyword,
  String,  ///< text is what stands between the quotes
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
  Word word = Word::None;     ///< of a Keyword
  Type type = Type::Invalid;  ///< of a Type
  bool negative = false;      ///< of an Int: written with '-'; of a Nan: its sign
  bool escaped = false;       ///< of a String: holds a backslash
  const char* begin = nullptr;
  const char* end = nullptr;  ///< behind the token, swallowed characters included
  std::string_view text;
  int64_t integer = 0;   ///< of an Int: the low 64 bits
  uint64_t payload = 0;  ///< of a Nan: 0 when none is written
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  /// Reads the next token into `out`.
  void next(Token& out);
  /// Goes on reading at `at`, which lies in the text.
  void rewind(const char* at) { at_ = at; }
  const char* begin() const { return begin_; }
  const char* end() const { return end_; }
  const char* at() const { return at_; }
  /// Why the last token was an Error.
  std::string_view reason() const { return reason_; }

  /// The text from `open`, a '{', to behind the matching '}', strings respected; empty where there is none.
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

/// May stand in a name; may begin one.
bool is_name_char(char c);
bool begins_name(char c);

/// XLA gives no instruction such a name: types, and what begins with "__" (but not "__xla_").
bool is_reserved_name(std::string_view name);

/// "'{'", "a name", ...: for messages.
std::string_view token_text(Tok kind);

/// -1 where it is none.
int hex_digit(char c);
/// Appends `raw` with its C escapes resolved to `out`; false where one is malformed.
bool unescape(std::string_view raw, std::string& out);

}  // namespace collet::hlo::text
