// SPDX-License-Identifier: Apache-2.0
#include "hlo/text/lexer.h"

#include <array>
#include <cstring>
#include <utility>

#include "hlo/base/diagnostics.h"

namespace collet::hlo::text {
namespace {

enum CharClass : uint8_t { kWordStart = 1, kWordPart = 2, kDigit = 4, kInLabels = 8, kAfterNumber = 16 };

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> table{};
  for (int c = 'a'; c <= 'z'; ++c) table[c] = kWordStart | kWordPart;
  for (int c = 'A'; c <= 'Z'; ++c) table[c] = kWordStart | kWordPart;
  table['_'] = kWordStart | kWordPart;
  for (int c = '0'; c <= '9'; ++c) table[c] = kWordPart | kDigit | kInLabels;
  table['.'] = table['-'] = kWordPart;
  for (char c : {'b', 'f', 'i', 'o', '?'}) table[static_cast<uint8_t>(c)] |= kInLabels;
  // Characters after which an integer becomes a longer token.
  for (char c : {'.', 'e', 'E', 'x', '_', 'b', 'f', '?'}) table[static_cast<uint8_t>(c)] |= kAfterNumber;
  return table;
}
constexpr auto kClass = make_classes();

bool is(char c, CharClass which) {
  return kClass[static_cast<uint8_t>(c)] & which;
}

// Reserved words, which are not identifiers, in a hash table without collisions.
struct Reserved {
  std::string_view text;
  Type type = Type::Invalid;
  Word word = Word::None;
};

constexpr Reserved kReserved[] = {
#define COLLET_TYPE(NAME, text, value, bits, kind, since) {text, Type::NAME, Word::None},
#include <collet/types.def>
    {"HloModule", Type::Invalid, Word::HloModule},
    {"ENTRY", Type::Invalid, Word::Entry},
    {"ROOT", Type::Invalid, Word::Root},
    {"true", Type::Invalid, Word::True},
    {"false", Type::Invalid, Word::False},
    {"inf", Type::Invalid, Word::Inf},
    {"nan", Type::Invalid, Word::Nan},
    {"maximal", Type::Invalid, Word::Maximal},
    {"replicated", Type::Invalid, Word::Replicated},
    {"manual", Type::Invalid, Word::Manual},
    {"last_tile_dim_replicate", Type::Invalid, Word::LastTileDimReplicate},
    {"shard_as", Type::Invalid, Word::ShardAs},
    {"shard_like", Type::Invalid, Word::ShardLike},
    {"unknown", Type::Invalid, Word::Unknown},
    {"unreduced", Type::Invalid, Word::Unreduced},
};

constexpr size_t kSlots = 1024;

constexpr size_t reserved_slot(const char* p, size_t n) {
  const auto at = [p](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(p[i])); };
  return (at(0) * 185 + at(1) * 352 + at(n > 3 ? 3 : 0) * 617 + at(n - 1) * 71 + at(n / 2) * 867 + n * 877) % kSlots;
}

struct ReservedTable {
  std::array<uint8_t, kSlots> slot{};  // index in kReserved plus one; 0: free
  bool collides = false;
};

constexpr ReservedTable make_reserved() {
  ReservedTable table;
  for (size_t i = 0; i < std::size(kReserved); ++i) {
    uint8_t& slot = table.slot[reserved_slot(kReserved[i].text.data(), kReserved[i].text.size())];
    if (slot) table.collides = true;
    slot = static_cast<uint8_t>(i + 1);
  }
  return table;
}
constexpr ReservedTable kReservedTable = make_reserved();
static_assert(!kReservedTable.collides, "choose other factors in reserved_slot");

const Reserved* find_reserved(const char* p, size_t n) {
  if (n < 2 || n > 23) return nullptr;
  const uint8_t slot = kReservedTable.slot[reserved_slot(p, n)];
  if (!slot) return nullptr;
  const Reserved& r = kReserved[slot - 1];
  return r.text.size() == n && std::memcmp(r.text.data(), p, n) == 0 ? &r : nullptr;
}

const char* digits(const char* p, const char* end) {
  while (p < end && is(*p, kDigit)) ++p;
  return p;
}

// Matches [0-9bf?]{2,}_[0-9io?]{2,}->[0-9bf?]{2,}, the labels of a convolution.
const char* match_labels(const char* p, const char* end) {
  const auto part = [end](const char* q, char a, char b) {
    const char* start = q;
    while (q < end && (is(*q, kDigit) || *q == a || *q == b || *q == '?')) ++q;
    return q - start >= 2 ? q : nullptr;
  };
  const char* q = part(p, 'b', 'f');
  if (!q || q == end || *q != '_') return nullptr;
  q = part(q + 1, 'i', 'o');
  if (!q || end - q < 2 || q[0] != '-' || q[1] != '>') return nullptr;
  return part(q + 2, 'b', 'f');
}

// Matches -?digits_-?digits(_digits)?, the padding of a dimension.
const char* match_pad(const char* p, const char* end) {
  const auto signed_digits = [end](const char* q) -> const char* {
    if (q < end && *q == '-') ++q;
    const char* r = digits(q, end);
    return r == q ? nullptr : r;
  };
  const char* q = signed_digits(p);
  if (!q || q == end || *q != '_') return nullptr;
  q = signed_digits(q + 1);
  if (!q) return nullptr;
  if (q < end && *q == '_') {
    const char* r = digits(q + 1, end);
    if (r != q + 1) q = r;
  }
  return q;
}

}  // namespace

bool is_name_char(char c) {
  return is(c, kWordPart);
}
bool begins_name(char c) {
  return is(c, kWordStart);
}

bool is_reserved_name(std::string_view name) {
  if (name.starts_with("__")) return !name.starts_with("__xla_");
  const Reserved* reserved = find_reserved(name.data(), name.size());
  return reserved && reserved->type != Type::Invalid;
}

void Lexer::fail(Token& out, std::string reason) {
  out.kind = Tok::Error;
  reason_ = std::move(reason);
}

// Skips blanks and comments. Returns false after an error.
bool Lexer::skip_blanks(Token& out) {
  while (at_ < end_) {
    const char c = *at_;
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '/') {
      const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
      size_t close;
      if (rest.starts_with("//")) {
        close = rest.find_first_of("\n\r");
        if (close == std::string_view::npos) close = rest.size();
      } else if (rest.starts_with("/*")) {
        close = rest.find("*/", 2);
        if (close == std::string_view::npos) {
          out.begin = at_;
          fail(out, "comment is not closed");
          return false;
        }
        close += 2;
      } else {
        return true;
      }
      if (const void* nul = std::memchr(at_, 0, close)) {
        out.begin = static_cast<const char*>(nul);
        fail(out, stray_byte(0));
        return false;
      }
      at_ += close;
    } else {
      return true;
    }
  }
  return true;
}

void Lexer::next(Token& out) {
  if (!skip_blanks(out)) {
    out.end = at_;
    return;
  }
  out.begin = at_;
  if (at_ == end_) {
    out.kind = Tok::End;
    out.end = at_;
    return;
  }
  const char c = *at_;
  if (is(c, kWordStart)) {
    word(out);
  } else if (is(c, kDigit)) {
    number(out);
  } else {
    ++at_;
    switch (c) {
      case ',':
        out.kind = Tok::Comma;
        break;
      case '(':
        out.kind = Tok::LeftParen;
        break;
      case ')':
        out.kind = Tok::RightParen;
        break;
      case '{':
        out.kind = Tok::LeftBrace;
        break;
      case '}':
        out.kind = Tok::RightBrace;
        break;
      case '[':
        out.kind = Tok::LeftSquare;
        break;
      case ']':
        out.kind = Tok::RightSquare;
        break;
      case '=':
        out.kind = Tok::Equal;
        break;
      case ':':
        out.kind = Tok::Colon;
        break;
      case '*':
        out.kind = Tok::Star;
        break;
      case '#':
        out.kind = Tok::Hash;
        break;
      case '+':
        out.kind = Tok::Plus;
        break;
      case '~':
        out.kind = Tok::Tilde;
        break;
      case '"':
        string(out);
        break;
      case '%': {
        const char* start = at_;
        if (at_ < end_ && is(*at_, kWordStart))
          while (at_ < end_ && is(*at_, kWordPart)) ++at_;
        if (at_ == start) {
          fail(out, "a name that begins with a letter or '_' must follow '%'");
        } else {
          out.kind = Tok::Name;
          out.text = {start, static_cast<size_t>(at_ - start)};
        }
        break;
      }
      case '<':
        if (at_ < end_ && *at_ == '=') {
          ++at_;
          out.kind = Tok::LessEqual;
        } else {
          fail(out, "unexpected '<'");
        }
        break;
      case '-':
        if (at_ < end_ && *at_ == '>') {
          ++at_;
          out.kind = Tok::Arrow;
          break;
        }
        --at_;
        number(out);
        break;
      case '?':
        --at_;
        number(out);
        break;
      case '.':
        if (end_ - at_ >= 2 && at_[0] == '.' && at_[1] == '.') {
          at_ += 2;
          out.kind = Tok::Dots;
        } else {
          fail(out, "unexpected '.'; a number begins with a digit");
        }
        break;
      default:
        fail(out, stray_byte(c));
    }
  }
  out.end = at_;
}

void Lexer::word(Token& out) {
  const char* p = at_ + 1;
  while (p < end_ && is(*p, kWordPart)) ++p;
  const auto size = static_cast<size_t>(p - at_);
  out.text = {at_, size};
  if (p < end_ && (*p == '=' || *p == ':')) {
    out.kind = *p == '=' ? Tok::AttrName : Tok::Name;
    at_ = p + 1;
    return;
  }
  if (const Reserved* r = find_reserved(at_, size)) {
    at_ = p;
    if (r->type != Type::Invalid) {
      out.kind = Tok::Type;
      out.type = r->type;
    } else if (r->word == Word::Nan) {
      nan(out, false);
    } else {
      out.kind = Tok::Keyword;
      out.word = r->word;
    }
    return;
  }
  if (*at_ == 'b' || *at_ == 'f') {
    if (const char* q = match_labels(at_, end_)) {
      out.kind = Tok::DimLabels;
      out.text = {at_, static_cast<size_t>(q - at_)};
      at_ = q;
      return;
    }
  }
  out.kind = Tok::Ident;
  at_ = p;
}

// Reads the payload of a NaN, such as "(0x7f)", if it comes next.
void Lexer::nan(Token& out, bool negative) {
  out.kind = Tok::Nan;
  out.negative = negative;
  out.payload = 0;
  if (at_ == end_ || *at_ != '(') return;
  const char* p = at_ + 1;
  uint64_t value = 0;
  bool fits = end_ - p > 2 && p[0] == '0' && p[1] == 'x' && hex_digit(p[2]) >= 0;
  if (fits)
    for (p += 2; p < end_ && hex_digit(*p) >= 0; ++p) {
      if (value >> 52) fits = false;
      value = value << 4 | static_cast<uint64_t>(hex_digit(*p));
    }
  if (!fits || p == end_ || *p != ')' || value == 0 || value >> 52) {
    fail(out, "a NaN payload is written as nan(0x7f), not zero and of at most 52 bits");
    return;
  }
  at_ = p + 1;
  out.payload = value;
}

void Lexer::number(Token& out) {
  const char* p = at_;
  if (*p == '-') ++p;
  const char* end_of_digits = digits(p, end_);
  const bool maybe_longer = end_of_digits < end_ && is(*end_of_digits, kAfterNumber);
  if ((maybe_longer || end_of_digits == p) && pattern(out, end_of_digits)) return;
  if (end_of_digits != p) return integer(out, end_of_digits);
  const std::string_view rest(p, static_cast<size_t>(end_ - p));
  if (*at_ == '?') {
    out.kind = Tok::Question;
    ++at_;
  } else if (*at_ == '-' && rest.starts_with("inf")) {
    out.kind = Tok::NegInf;
    at_ = p + 3;
  } else if (*at_ == '-' && rest.starts_with("nan")) {
    at_ = p + 3;
    nan(out, true);
  } else {
    fail(out, "unexpected '-'");
    ++at_;
  }
}

// Reads tokens that begin with a number and continue: decimals, dim labels, 3x3, 0_0x1_1. `digits_end` points after the
// sign and the first digits.
bool Lexer::pattern(Token& out, const char* digits_end) {
  const auto accept = [&](Tok kind, const char* behind) {
    out.kind = kind;
    out.text = {at_, static_cast<size_t>(behind - at_)};
    at_ = behind;
    return true;
  };
  const bool has_digits = digits_end > at_ && is(digits_end[-1], kDigit);
  const char* p = digits_end;
  bool decimal = false;
  if (p < end_ && *p == '.') {
    const char* q = digits(p + 1, end_);
    if (has_digits || q > p + 1) {
      decimal = true;
      p = q;
    }
  }
  if (p < end_ && (*p == 'e' || *p == 'E') && (has_digits || decimal)) {
    const char* q = p + 1;
    if (q < end_ && (*q == '+' || *q == '-')) ++q;
    const char* r = digits(q, end_);
    if (r > q) {
      decimal = true;
      p = r;
    }
  }
  if (decimal) return accept(Tok::Decimal, p);
  if (*at_ != '-')
    if (const char* q = match_labels(at_, end_)) return accept(Tok::DimLabels, q);
  if (!has_digits) return false;
  if (*at_ != '-' && digits_end < end_ && *digits_end == 'x') {
    const char* q = digits_end;
    while (q < end_ && *q == 'x' && digits(q + 1, end_) > q + 1) q = digits(q + 1, end_);
    if (q > digits_end) return accept(Tok::DxD, q);
  }
  if (digits_end < end_ && *digits_end == '_') {
    const char* q = match_pad(at_, end_);
    if (!q) return false;
    while (q < end_ && *q == 'x') {
      const char* r = match_pad(q + 1, end_);
      if (!r) break;
      q = r;
    }
    return accept(Tok::Pad, q);
  }
  return false;
}

void Lexer::integer(Token& out, const char* digits_end) {
  out.kind = Tok::Int;
  out.negative = *at_ == '-';
  uint64_t value = 0;
  bool overflow = false;
  for (const char* p = at_ + out.negative; p < digits_end; ++p) {
    const auto digit = static_cast<uint64_t>(*p - '0');
    overflow |= value > UINT64_MAX / 10 || value * 10 > UINT64_MAX - digit;
    value = value * 10 + digit;
  }
  overflow |= out.negative && value > uint64_t{1} << 63;
  out.text = {at_, static_cast<size_t>(digits_end - at_)};
  out.integer = static_cast<int64_t>(out.negative ? 0 - value : value);
  at_ = digits_end;
  if (overflow) fail(out, "integer does not fit 64 bits");
}

void Lexer::string(Token& out) {
  const char* start = at_;
  out.escaped = false;
  for (const char* p = start; p < end_; ++p) {
    p = static_cast<const char*>(std::memchr(p, '"', static_cast<size_t>(end_ - p)));
    if (!p) break;
    // A quote ends the string if an even number of backslashes precedes it.
    const char* q = p;
    while (q > start && q[-1] == '\\') --q;
    if ((p - q) % 2) continue;
    out.kind = Tok::String;
    out.text = {start, static_cast<size_t>(p - start)};
    out.escaped = std::memchr(start, '\\', out.text.size()) != nullptr;
    at_ = p + 1;
    return;
  }
  fail(out, "string is not closed");
}

std::string_view Lexer::braces(const char* open) const {
  int64_t depth = 0;
  for (const char* p = open; p < end_; ++p) {
    if (*p == '{') {
      ++depth;
    } else if (*p == '}') {
      if (--depth == 0) return {open, static_cast<size_t>(p + 1 - open)};
    } else if (*p == '"') {
      for (++p; p < end_ && *p != '"'; ++p)
        if (*p == '\\') ++p;
    }
  }
  return {};
}

}  // namespace collet::hlo::text
