// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "hlo/base/decimal.h"
#include "hlo/base/float_format.h"
#include "hlo/base/hash.h"
#include "hlo/text/parser_impl.h"

namespace collet::hlo::text {

/// The type and format to which a real number is converted.
struct FloatTarget {
  Type type;
  FloatFormat format;
  int bytes;
  double largest, lowest;

  explicit FloatTarget(Type t)
      : type(t), format(float_format(static_cast<uint32_t>(t))), bytes(type_info(t).bytes()), largest(0), lowest(0) {
    const uint64_t all = format.bits() >= 64 ? ~uint64_t{0} : (uint64_t{1} << format.bits()) - 1;
    const uint64_t sign = format.specials == FloatSpecials::E8M0 ? 0 : all ^ (all >> 1);
    uint64_t bits = all & ~sign;
    if (format.specials == FloatSpecials::IEEE) bits -= uint64_t{1} << format.mantissa_bits;
    while (!std::isfinite(decode_float(format, bits))) --bits;
    largest = decode_float(format, bits);
    lowest = format.specials == FloatSpecials::E8M0 ? decode_float(format, 0) : -largest;
  }
};

namespace {

const FloatTarget& float_target(Type type) {
  static const auto* const table = [] {
    auto* all = new std::vector<FloatTarget>;
    for (int i = 0; i < COLLET_TYPE_LIMIT; ++i)
      all->emplace_back(is_float(static_cast<Type>(i)) ? static_cast<Type>(i) : Type::F64);
    return all;
  }();
  return (*table)[static_cast<size_t>(type)];
}

// True for types that have infinities: XLA keeps the payload of NaNs for these only.
bool has_payload(const FloatFormat& format) {
  return format.specials == FloatSpecials::IEEE;
}

std::string number_text(double value) {
  return decimal_text(value, 6);
}

void store(uint64_t bits, int bytes, uint8_t* to) {
  std::memcpy(to, &bits, static_cast<size_t>(bytes));
}

}  // namespace

bool Parser::literal(const Shape& shape, Literal& out) {
  if (shape.is_tuple()) {
    if (!enter()) return false;
    const bool ok = tuple_literal(shape, out);
    leave();
    return ok;
  }
  if (!shape.is_array()) return complain("a literal is an array or a tuple, not " + shape.to_string());
  return dense_literal(shape, out);
}

// Reads a literal in which every leaf is written with its shape.
bool Parser::shaped_literal(Literal& out) {
  if (!enter()) return false;
  bool ok;
  if (is(Tok::LeftParen)) {
    std::vector<Literal> elements;
    next();
    ok = true;
    while (ok && !is(Tok::RightParen)) {
      ok = shaped_literal(elements.emplace_back());
      if (ok) eat(Tok::Comma);
    }
    if (ok) {
      next();
      out = Literal::tuple(std::move(elements));
    }
  } else {
    const Shape* s = nullptr;
    ok = shape(s) && literal(*s, out);
  }
  leave();
  return ok;
}

bool Parser::tuple_literal(const Shape& shape, Literal& out) {
  if (!expect(Tok::LeftParen, " before the elements of a tuple")) return false;
  std::vector<Literal> elements(shape.elements().size());
  for (size_t i = 0; i < elements.size(); ++i) {
    if (i) eat(Tok::Comma);
    if (!literal(shape.element(i), elements[i])) return false;
  }
  out = Literal::tuple(std::move(elements));
  return expect(Tok::RightParen, " after the elements of a tuple");
}

// ---- arrays ----

bool Parser::dense_literal(const Shape& shape, Literal& out) {
  for (int64_t d : shape.dims())
    if (d == kUnbounded) return complain("a constant has no dimension of unknown size");
  const Type type = shape.type();
  const int64_t count = shape.element_count();
  if (is(Tok::LeftBrace) && shape.rank() > 0 && peek() == Tok::Dots) return elided_literal(shape, out);
  // XLA reads a single number for an array as its first element, followed by zeros.
  if (shape.rank() > 0 && count > 0 && !is_complex(type) && at_number()) return first_element(shape, out);
  // No memory is allocated for elements that the text does not contain; a literal that ends in "..." is padded with
  // zeros. Below this size memory is allocated without counting elements first.
  constexpr int64_t kAlwaysFine = int64_t{1} << 20;
  if (shape.byte_size() > kAlwaysFine && count > lexer_.end() - tok_.begin)
    return complain("the literal has " + std::to_string(count) + " elements, more than the text holds");
  out = shape.byte_size() > kAlwaysFine ? Literal::uninitialized(shape) : Literal::zeros(shape);
  if (is_float(type)) {
    const FloatTarget& target = float_target(type);
    return literal_elements(shape, out, [&](uint8_t* to) { return float_element(target, to); });
  }
  if (is_complex(type)) return literal_elements(shape, out, [&](uint8_t* to) { return complex_element(type, to); });
  return literal_elements(shape, out, [&](uint8_t* to) { return integer_element(type, to); });
}

bool Parser::at_number() const {
  return is(Tok::Int) || is(Tok::Decimal) || is(Tok::NegInf) || is(Tok::Nan) || is_word(Word::Inf) ||
         is_word(Word::True) || is_word(Word::False);
}

bool Parser::first_element(const Shape& shape, Literal& out) {
  if (!claim_elided(shape)) return false;
  out = Literal::zeros(shape);
  const Type type = shape.type();
  return is_float(type) ? float_element(float_target(type), out.mutable_bytes())
                        : integer_element(type, out.mutable_bytes());
}

// Parses the nested braces; store(place) reads one element.
template <typename Store>
bool Parser::literal_elements(const Shape& shape, Literal& out, Store store_element) {
  const auto rank = static_cast<size_t>(shape.rank());
  const int bytes = type_info(shape.type()).bytes();
  uint8_t* to = out.mutable_bytes();
  const uint8_t* end = to + shape.byte_size();
  if (rank == 0) return store_element(to);
  std::vector<int64_t> seen(rank, 0);
  size_t level = 0;
  const auto too_many = [&](size_t d) {
    return complain("dimension " + std::to_string(d) + " of the literal has more than " +
                    std::to_string(shape.dim(static_cast<int>(d))) + " elements");
  };
  do {
    switch (tok_.kind) {
      case Tok::LeftBrace:
        if (level == rank)
          return complain("the literal is nested deeper than its " + std::to_string(rank) + " dimensions");
        if (level > 0 && ++seen[level - 1] > shape.dim(static_cast<int>(level) - 1)) return too_many(level - 1);
        seen[level++] = 0;
        next();
        break;
      case Tok::RightBrace:
        if (level == 0) return expected("'{' before the elements of an array");
        --level;
        if (seen[level] != shape.dim(static_cast<int>(level)))
          return complain("dimension " + std::to_string(level) + " of the literal has " +
                          std::to_string(shape.dim(static_cast<int>(level))) + " elements, but " +
                          std::to_string(seen[level]) + " are written");
        next();
        break;
      case Tok::Comma:
        if (level == 0) return expected("'{' before the elements of an array");
        next();
        break;
      case Tok::Dots:
        if (level != 1) return complain("'...' stands in the outermost braces only");
        if (options_.elided == ElidedConstants::Refuse)
          return complain("the constant's value was left out of the text, and nothing was chosen to stand for it");
        if (!claim_elided(shape)) return false;
        std::memset(to, 0, static_cast<size_t>(end - to));
        to = const_cast<uint8_t*>(end);
        seen[0] = shape.dim(0);
        next();
        break;
      default:
        if (level != rank) {
          if (is(Tok::Error) || is(Tok::End) || is(Tok::RightParen)) return expected("the elements of an array");
          return complain("the literal has " + std::to_string(rank) + " dimensions, but its elements stand in " +
                          std::to_string(level) + " braces");
        }
        if (++seen[rank - 1] > shape.dim(static_cast<int>(rank) - 1) || to == end) return too_many(rank - 1);
        if (!store_element(to)) return false;
        to += bytes;
    }
  } while (level > 0);
  return true;
}

// ---- elements ----

bool Parser::number(double& out) {
  switch (tok_.kind) {
    case Tok::Decimal:
      out = decimal_value(tok_.text).value_or(0);  // the lexer has seen that it is a number
      if (std::isinf(out)) return complain("the number is too large for f64");
      break;
    case Tok::Int:
      // "-0" is an integer to XLA; its sign is kept here.
      if (tok_.integer == 0)
        out = tok_.negative ? -0.0 : 0.0;
      else
        out = tok_.negative ? static_cast<double>(tok_.integer)
                            : static_cast<double>(static_cast<uint64_t>(tok_.integer));
      break;
    case Tok::NegInf:
      out = -std::numeric_limits<double>::infinity();
      break;
    case Tok::Nan: {
      const uint64_t payload = tok_.payload ? tok_.payload : uint64_t{1} << 51;
      out = std::bit_cast<double>(uint64_t{tok_.negative} << 63 | uint64_t{0x7FF} << 52 | payload);
      break;
    }
    default:
      if (!is_word(Word::Inf)) return expected("a number");
      out = std::numeric_limits<double>::infinity();
  }
  next();
  return true;
}

bool Parser::float_element(const FloatTarget& target, uint8_t* to) {
  return component(target, target.type, "", to);
}

bool Parser::component(const FloatTarget& target, Type shown, std::string_view which, uint8_t* to) {
  const char* begin = tok_.begin;
  const FloatFormat& format = target.format;
  const std::string_view type = type_info(shown).text;
  if (is(Tok::Nan)) {
    if (tok_.payload && !has_payload(format)) return complain(std::string(type) + " has no NaN with a payload");
    if (tok_.payload >> format.mantissa_bits && tok_.payload)
      return complain("the NaN payload is too large for " + std::string(type));
    const bool negative = tok_.negative;
    const uint64_t payload = tok_.payload;
    next();
    if (!has_payload(format)) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      store(encode_float(format, std::copysign(nan, negative ? -1.0 : 1.0)), target.bytes, to);
      return true;
    }
    const uint64_t exponent = ((uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
    const uint64_t mantissa = payload ? payload : uint64_t{1} << (format.mantissa_bits - 1);
    store(uint64_t{negative} << (format.bits() - 1) | exponent | mantissa, target.bytes, to);
    return true;
  }
  double value;
  if (!number(value)) return false;
  if (target.type == Type::F64) {
    std::memcpy(to, &value, 8);
    return true;
  }
  const uint64_t bits = encode_float(format, value);
  const double back = decode_float(format, bits);
  if (std::isfinite(value) && !std::isfinite(back) && (value > target.largest || value < target.lowest))
    return complain(begin, (which.empty() ? "value " : std::string(which) + " part ") + number_text(value) +
                               " is out of range for " + std::string(type) + ", [" + number_text(target.lowest) + ", " +
                               number_text(target.largest) + "]");
  store(bits, target.bytes, to);
  return true;
}

bool Parser::complex_element(Type type, uint8_t* to) {
  const FloatTarget& target = float_target(type == Type::C64 ? Type::F32 : Type::F64);
  if (!expect(Tok::LeftParen, " before a complex number")) return false;
  return component(target, type, "real", to) && expect(Tok::Comma, " between real and imaginary part") &&
         component(target, type, "imaginary", to + target.bytes) && expect(Tok::RightParen, " after a complex number");
}

bool Parser::integer_element(Type type, uint8_t* to) {
  if (type == Type::PRED && (is_word(Word::True) || is_word(Word::False))) {
    *to = is_word(Word::True);
    next();
    return true;
  }
  if (!is(Tok::Int)) return expected("an integer, as the literal's type is " + std::string(type_info(type).text));
  const TypeInfo& info = type_info(type);
  const int64_t value = tok_.integer;
  if (type == Type::PRED) {
    *to = value != 0;
    next();
    return true;
  }
  const int bits = info.bits;
  bool fits = true;
  std::string range;
  if (info.kind == Kind::Signed) {
    if (bits < 64) {
      const int64_t limit = int64_t{1} << (bits - 1);
      fits = value >= -limit && value < limit;
      range = "[-" + std::to_string(limit) + ", " + std::to_string(limit - 1) + "]";
    }
  } else if (bits < 64) {
    const uint64_t limit = (uint64_t{1} << bits) - 1;
    fits = static_cast<uint64_t>(value) <= limit;
    range = "[0, " + std::to_string(limit) + "]";
  }
  if (!fits)
    return complain("value " + std::string(tok_.text) + " is out of range for " + std::string(info.text) + ", " +
                    range);
  store(static_cast<uint64_t>(value), info.bytes(), to);
  next();
  return true;
}

// ---- constants({...}) ----

bool Parser::elided_literal(const Shape& shape, Literal& out) {
  // A constant without elements has lost nothing.
  if (options_.elided == ElidedConstants::Refuse && shape.byte_size() > 0)
    return complain("the constant's value was left out of the text, and nothing was chosen to stand for it");
  if (!claim_elided(shape)) return false;
  next();
  next();
  if (!expect(Tok::RightBrace, " after '...'")) return false;
  out = Literal::zeros(shape);
  if (shape.byte_size()) fill_elided(out);
  return true;
}

// Counts the memory of values that the text omits; returns false if it exceeds the limit.
bool Parser::claim_elided(const Shape& shape) {
  const int64_t bytes = shape.byte_size();
  if (bytes > options_.elided_limit || elided_bytes_ > options_.elided_limit - bytes)
    return complain("the constants that were left out of the text would take more than " +
                    std::to_string(options_.elided_limit) + " bytes");
  elided_bytes_ += bytes;
  return true;
}

void Parser::fill_elided(Literal& out) {
  const Type type = out.type();
  uint8_t* data = out.mutable_bytes();
  if (options_.elided == ElidedConstants::Counter) {
    const int bits = type == Type::PRED ? 1 : type_info(type).bits;
    const uint32_t mask = bits < 8 && !is_float(type) ? 0x01010101u * ((1u << bits) - 1) : ~0u;
    const int64_t words = out.byte_size() / 4;
    for (int64_t i = 0; i < words; ++i) {
      const uint32_t word = static_cast<uint32_t>(elided_count_++) & mask;
      std::memcpy(data + i * 4, &word, 4);
    }
    for (int64_t i = words * 4; i < out.byte_size(); ++i) data[i] = elided_byte_++ & static_cast<uint8_t>(mask);
  } else if (options_.elided == ElidedConstants::Random) {
    for (int64_t i = 0; i < out.element_count(); ++i) {
      const uint64_t x = mix(options_.seed * 0x9E3779B97F4A7C15ull + elided_count_++);
      const double unit = static_cast<double>(x >> 40) / 8388608.0 - 1;
      const auto small = static_cast<int64_t>((x >> 33) % 9);
      const Kind kind = kind_of(type);
      if (kind == Kind::Pred)
        data[i] = static_cast<uint8_t>(x >> 63);
      else if (kind == Kind::Signed)
        out.set_int(i, small - 4);
      else if (kind == Kind::Unsigned)
        out.set_int(i, small);
      else
        out.set_double(i, type == Type::F8E8M0FNU ? std::fabs(unit) : unit,
                       static_cast<double>(mix(x) >> 40) / 8388608.0 - 1);
    }
  }
  // Sub-byte signed integers are stored sign-extended.
  if (options_.elided == ElidedConstants::Counter && is_signed(type) && type_info(type).bits < 8)
    for (int64_t i = 0; i < out.element_count(); ++i) out.set_int(i, static_cast<int8_t>(data[i]));
}

}  // namespace collet::hlo::text
