// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "conformance/cases/plain_answer.h"
#include "conformance/oracle/exact_sum.h"
#include "hlo/base/float_format.h"

namespace collet::conformance {
namespace {

int bits_of(Type type) {
  return hlo::type_info(type).bits;
}

// Returns the low `bits` bits of an integer, without sign extension.
uint64_t low_bits(int64_t value, int bits) {
  return bits == 64 ? static_cast<uint64_t>(value) : static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1);
}

int64_t least_of(Type type) {
  return static_cast<int64_t>(~uint64_t{0} << (bits_of(type) - 1));
}

template <typename Signed, typename Unsigned>
int64_t by_sign(Type type, int64_t a, int64_t b, Signed with_sign, Unsigned without) {
  if (hlo::is_signed(type)) return with_sign(a, b);
  return static_cast<int64_t>(without(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

int64_t divided(Type type, int64_t a, int64_t b) {
  if (b == 0) return -1;
  if (hlo::is_signed(type) && b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  return by_sign(type, a, b, [](int64_t x, int64_t y) { return x / y; }, [](uint64_t x, uint64_t y) { return x / y; });
}

int64_t remainder_of(Type type, int64_t a, int64_t b) {
  if (b == 0) return a;
  if (hlo::is_signed(type) && b == -1) return 0;
  return by_sign(type, a, b, [](int64_t x, int64_t y) { return x % y; }, [](uint64_t x, uint64_t y) { return x % y; });
}

bool is_less(Type type, int64_t a, int64_t b) {
  return hlo::is_signed(type) ? a < b : static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
}

// Integer power. A negative exponent gives 0, except for the bases 1 and -1.
uint64_t power_of(Type type, int64_t base, int64_t exponent) {
  uint64_t out = 1;
  if (hlo::is_signed(type) && exponent < 0) {
    if (base != 1 && base != -1) return 0;
    return base == -1 && exponent % 2 != 0 ? ~uint64_t{0} : 1;
  }
  auto factor = static_cast<uint64_t>(base);
  for (auto left = static_cast<uint64_t>(exponent); left != 0; left /= 2, factor *= factor)
    if (left % 2 != 0) out *= factor;
  return out;
}

// Computes an op on integers; returns false if `op` is not exact for them. set_int wraps the result around.
bool of_integers(Op op, Type type, int64_t a, int64_t b, int64_t& out) {
  const int bits = bits_of(type);
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  const uint64_t shift = low_bits(b, bits);
  const bool far = shift >= static_cast<uint64_t>(bits);
  const auto keep = [&](uint64_t value) { out = static_cast<int64_t>(value); };
  switch (op) {
    case Op::ADD:
      keep(x + y);
      return true;
    case Op::SUBTRACT:
      keep(x - y);
      return true;
    case Op::MULTIPLY:
      keep(x * y);
      return true;
    case Op::DIVIDE:
      out = divided(type, a, b);
      return true;
    case Op::REMAINDER:
      out = remainder_of(type, a, b);
      return true;
    case Op::MAXIMUM:
      out = is_less(type, a, b) ? b : a;
      return true;
    case Op::MINIMUM:
      out = is_less(type, b, a) ? b : a;
      return true;
    case Op::AND:
      keep(x & y);
      return true;
    case Op::OR:
      keep(x | y);
      return true;
    case Op::XOR:
      keep(x ^ y);
      return true;
    case Op::NOT:
      keep(~x);
      return true;
    case Op::NEGATE:
      keep(0 - x);
      return true;
    case Op::ABS:
      keep(a < 0 ? 0 - x : x);
      return true;
    case Op::SIGN:
      out = a > 0 ? 1 : a < 0 ? -1 : 0;
      return true;
    case Op::POPCNT:
      out = std::popcount(low_bits(a, bits));
      return true;
    case Op::COUNT_LEADING_ZEROS:
      out = std::countl_zero(low_bits(a, bits)) - (64 - bits);
      return true;
    case Op::POWER:
      keep(power_of(type, a, b));
      return true;
    case Op::SHIFT_LEFT:
      keep(far ? 0 : x << shift);
      return true;
    case Op::SHIFT_RIGHT_LOGICAL:
      keep(far ? 0 : low_bits(a, bits) >> shift);
      return true;
    case Op::SHIFT_RIGHT_ARITHMETIC: {
      const auto with_sign = static_cast<int64_t>(x << (64 - bits)) >> (64 - bits);
      out = with_sign >> (far ? 63 : shift);
      return true;
    }
    default:
      return false;
  }
}

bool of_preds(Op op, bool a, bool b, int64_t& out) {
  switch (op) {
    case Op::ADD:
    case Op::OR:
    case Op::MAXIMUM:
      out = a || b;
      return true;
    case Op::AND:
    case Op::MULTIPLY:
    case Op::MINIMUM:
      out = a && b;
      return true;
    case Op::XOR:
      out = a != b;
      return true;
    case Op::NOT:
      out = !a;
      return true;
    default:
      return false;
  }
}

// Compares; +0 is greater than -0.
bool is_below(double a, double b) {
  return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}

double rounded_to_even(double x) {
  const double down = std::floor(x), rest = x - down;
  const bool is_odd = std::fmod(down, 2) != 0;
  return std::copysign(rest > 0.5 || (rest == 0.5 && is_odd) ? down + 1 : down, x);
}

bool of_floats(Op op, double a, double b, double& out) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const bool has_nan = std::isnan(a) || std::isnan(b);
  switch (op) {
    case Op::MAXIMUM:
      out = has_nan ? kNan : is_below(a, b) ? b : a;
      return true;
    case Op::MINIMUM:
      out = has_nan ? kNan : is_below(b, a) ? b : a;
      return true;
    case Op::NEGATE:
      out = -a;
      return true;
    case Op::ABS:
      out = std::fabs(a);
      return true;
    case Op::SIGN:
      out = std::isnan(a) || a == 0 ? a : std::copysign(1, a);
      return true;
    case Op::FLOOR:
      out = std::floor(a);
      return true;
    case Op::CEIL:
      out = std::ceil(a);
      return true;
    case Op::ROUND_NEAREST_AFZ:
      // Rounds the magnitude half away from zero. This is exact, because a number with a fraction has unused bits.
      out = std::copysign(std::floor(std::fabs(a)) + (std::fabs(a) - std::floor(std::fabs(a)) >= 0.5 ? 1 : 0), a);
      if (!std::isfinite(a)) out = a;
      return true;
    case Op::ROUND_NEAREST_EVEN:
      out = std::isfinite(a) ? rounded_to_even(a) : a;
      return true;
    case Op::REMAINDER:
      out = std::fmod(a, b);
      return true;
    default:
      return false;
  }
}

bool holds(hlo::Direction direction, bool less, bool equal, bool unordered) {
  using enum hlo::Direction;
  switch (direction) {
    case EQ:
      return equal;
    case NE:
      return !equal;
    case LT:
      return less;
    case LE:
      return less || equal;
    case GT:
      return !unordered && !less && !equal;
    case GE:
      return !unordered && !less;
  }
  return false;
}

bool compares(const hlo::CompareAttrs& attrs, const Literal& x, const Literal& y, int64_t i) {
  if (hlo::is_complex(x.type())) {
    const bool equal = x.as_double(i) == y.as_double(i) && x.imaginary(i) == y.imaginary(i);
    return holds(attrs.direction, false, equal, false);
  }
  if (!hlo::is_float(x.type())) {
    const int64_t a = x.as_int(i), b = y.as_int(i);
    return holds(attrs.direction, is_less(x.type(), a, b), a == b, false);
  }
  if (attrs.type == hlo::CompareType::TOTALORDER) {
    const int64_t a = total_key(x, i), b = total_key(y, i);
    return holds(attrs.direction, a < b, a == b, false);
  }
  const double a = x.as_double(i), b = y.as_double(i);
  return holds(attrs.direction, a < b, a == b, std::isnan(a) || std::isnan(b));
}

// Rounds to nearest even with that many bits of mantissa. A number that is too large for the exponent becomes infinity,
// one that is too small for a normal number becomes zero. Denormals stay if the exponent has at least the `own` bits of
// the type.
double reduced_to(double value, int exponent_bits, int mantissa_bits, int own) {
  if (!std::isfinite(value) || value == 0) return value;
  const bool keeps = exponent_bits >= own;
  const int most = (1 << (std::min(exponent_bits, own) - 1)) - 1;
  const int exponent = keeps ? std::max(std::ilogb(value), 1 - most) : std::ilogb(value);
  constexpr int kLeastExponent =
      std::numeric_limits<double>::min_exponent - std::numeric_limits<double>::digits;  // of a subnormal number
  const double step = std::ldexp(1.0, std::max(exponent - mantissa_bits, kLeastExponent));
  const double rounded = mantissa_bits >= 52 ? value : rounded_to_even(value / step) * step;
  if (std::ilogb(rounded) > most) return std::copysign(std::numeric_limits<double>::infinity(), value);
  return !keeps && std::ilogb(rounded) < 1 - most ? std::copysign(0.0, value) : rounded;
}

// Converts an integer to an f64 that rounds to narrower formats as the integer does: if it is not exact, its last bit
// is set (rounding to odd).
double to_double(Type from, Type to, int64_t n) {
  const bool negative = hlo::is_signed(from) && n < 0;
  const uint64_t size = negative ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  const int drop = std::max(0, 11 - std::countl_zero(size | 1));
  double value = static_cast<double>(size);
  if (to != Type::F64 && drop > 0) {
    const uint64_t kept = size >> drop, lost = size & ((uint64_t{1} << drop) - 1);
    value = std::ldexp(static_cast<double>(kept | (lost != 0)), drop);
  }
  return negative ? -value : value;
}

int64_t to_integer(Type to, double value) {
  if (std::isnan(value)) return 0;
  const bool with_sign = hlo::is_signed(to);
  const double end = std::ldexp(1.0, bits_of(to) - (with_sign ? 1 : 0));
  if (value >= end) return with_sign ? static_cast<int64_t>(~static_cast<uint64_t>(least_of(to))) : -1;
  if (value <= (with_sign ? -end : 0)) return with_sign ? least_of(to) : 0;
  return with_sign ? static_cast<int64_t>(value) : static_cast<int64_t>(static_cast<uint64_t>(value));
}

void convert_element(Literal& out, const Literal& from, int64_t i) {
  const Type a = from.type(), b = out.type();
  const bool is_float = hlo::is_float(a) || hlo::is_complex(a);
  if (b == Type::PRED) {
    const bool is_zero = is_float ? from.as_double(i) == 0 && from.imaginary(i) == 0 : from.as_int(i) == 0;
    out.set_int(i, !is_zero);
  } else if (is_float && (hlo::is_float(b) || hlo::is_complex(b))) {
    out.set_double(i, from.as_double(i), from.imaginary(i));
  } else if (is_float) {
    out.set_int(i, to_integer(b, from.as_double(i)));
  } else if (hlo::is_float(b) || hlo::is_complex(b)) {
    out.set_double(i, to_double(a, hlo::real_type(b), from.as_int(i)));
  } else {
    out.set_int(i, from.as_int(i));
  }
}

// To integers: toward zero, and away from it where the random bits, as a number r of b bits, are less than floor(f * 2^b) for the
// fraction f that was cut off.
bool stochastic_convert(Literal& out, const Literal& from, const Literal& random) {
  if (!hlo::is_float(from.type()) || !hlo::is_integer(out.type())) return false;
  const int bits = bits_of(random.type());
  for (int64_t i = 0; i < out.element_count(); ++i) {
    const double value = from.as_double(i), size = std::fabs(value);
    if (!std::isfinite(value)) {
      out.set_int(i, to_integer(out.type(), value));
      continue;
    }
    const double whole = std::floor(size), share = std::floor(std::ldexp(size - whole, bits));
    const bool is_away = static_cast<double>(low_bits(random.as_int(i), bits)) < share;
    out.set_int(i, to_integer(out.type(), std::copysign(is_away ? whole + 1 : whole, value)));
  }
  return true;
}

template <Op kOp>
void integers(Literal& out, int64_t to, const Literal& a, int64_t i, const Literal& b, int64_t j) {
  int64_t value = 0;
  of_integers(kOp, a.type(), a.as_int(i), b.as_int(j), value);
  out.set_int(to, value);
}
template <Op kOp>
void preds(Literal& out, int64_t to, const Literal& a, int64_t i, const Literal& b, int64_t j) {
  int64_t value = 0;
  of_preds(kOp, a.as_int(i) != 0, b.as_int(j) != 0, value);
  out.set_int(to, value);
}
template <Op kOp>
void floats(Literal& out, int64_t to, const Literal& a, int64_t i, const Literal& b, int64_t j) {
  double value = 0;
  of_floats(kOp, a.as_double(i), b.as_double(j), value);
  out.set_double(to, value);
}

// The exact sum of two f64, rounded once to the type of the result.
template <>
void floats<Op::ADD>(Literal& out, int64_t to, const Literal& a, int64_t i, const Literal& b, int64_t j) {
  ExactSum sum;
  sum.add(a.as_double(i));
  sum.add(b.as_double(j));
  const ExactResult result = sum.result();
  out.set_double(to, out.type() == Type::F64 ? result.value : result.rounded_to_odd());
}

template <Op kOp>
PlainFunction function_for(Type type) {
  int64_t integer = 0;
  double real = 0;
  if (type == Type::PRED) return of_preds(kOp, false, false, integer) ? preds<kOp> : nullptr;
  if (hlo::is_integer(type)) return of_integers(kOp, type, 1, 1, integer) ? integers<kOp> : nullptr;
  return hlo::is_float(type) && (kOp == Op::ADD || of_floats(kOp, 1, 1, real)) ? floats<kOp> : nullptr;
}

}  // namespace

bool has_total_order(const Literal& value) {
  const FloatSpecials specials = float_format(static_cast<uint32_t>(value.type())).specials;
  if (specials != FloatSpecials::FNUZ && specials != FloatSpecials::E8M0) return true;
  for (int64_t i = 0; i < value.element_count(); ++i)
    if (std::isnan(value.as_double(i))) return false;
  return true;
}

int64_t total_key(const Literal& value, int64_t i) {
  const int bits = bits_of(value.type());
  uint64_t raw = 0;
  const auto bytes = static_cast<size_t>((bits + 7) / 8);
  std::memcpy(&raw, value.bytes() + static_cast<size_t>(i) * bytes, bytes);
  raw = low_bits(static_cast<int64_t>(raw), bits);
  if (float_format(static_cast<uint32_t>(value.type())).specials == FloatSpecials::E8M0)
    return static_cast<int64_t>(raw);
  const uint64_t sign = uint64_t{1} << (bits - 1), magnitude = raw & (sign - 1);
  return raw & sign ? -1 - static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
}

PlainFunction plain_function(Op op, Type type) {
  switch (op) {
#define COLLET_PLAIN(OP) \
  case Op::OP:           \
    return function_for<Op::OP>(type);
    COLLET_PLAIN(ADD)
    COLLET_PLAIN(SUBTRACT)
    COLLET_PLAIN(MULTIPLY)
    COLLET_PLAIN(DIVIDE)
    COLLET_PLAIN(REMAINDER)
    COLLET_PLAIN(MAXIMUM)
    COLLET_PLAIN(MINIMUM)
    COLLET_PLAIN(AND)
    COLLET_PLAIN(OR)
    COLLET_PLAIN(XOR)
    COLLET_PLAIN(NOT)
    COLLET_PLAIN(POWER)
    COLLET_PLAIN(NEGATE)
    COLLET_PLAIN(ABS)
    COLLET_PLAIN(SIGN)
    COLLET_PLAIN(POPCNT)
    COLLET_PLAIN(COUNT_LEADING_ZEROS)
    COLLET_PLAIN(SHIFT_LEFT)
    COLLET_PLAIN(SHIFT_RIGHT_LOGICAL)
    COLLET_PLAIN(SHIFT_RIGHT_ARITHMETIC)
    COLLET_PLAIN(FLOOR)
    COLLET_PLAIN(CEIL)
    COLLET_PLAIN(ROUND_NEAREST_AFZ)
    COLLET_PLAIN(ROUND_NEAREST_EVEN)
#undef COLLET_PLAIN
    default:
      return nullptr;
  }
}

std::optional<Literal> plain_elements(const Instruction& instr, std::span<const Literal* const> operands) {
  return plain_elements(instr, instr.shape, operands);
}

std::optional<Literal> plain_elements(const Instruction& instr, const Shape& shape,
                                      std::span<const Literal* const> operands) {
  if (!shape.is_array() || operands.empty()) return std::nullopt;
  Literal out = Literal::zeros(shape);
  const int64_t count = out.element_count();
  const Literal& a = *operands[0];
  const Type type = a.type();
  // A scalar operand is used for all elements.
  const auto number = [](const Literal& value, int64_t i) { return value.shape().rank() == 0 ? 0 : i; };
  const auto have_all = [&](size_t from) {
    for (size_t k = from; k < operands.size(); ++k)
      if (operands[k]->element_count() != count) return false;
    return true;
  };
  if (instr.op == Op::SELECT) {
    if (!have_all(1)) return std::nullopt;
    for (int64_t i = 0; i < count; ++i) copy_element(out, i, *operands[a.bytes()[number(a, i)] != 0 ? 1 : 2], i);
    return out;
  }
  if (instr.op == Op::CLAMP) {
    const PlainFunction most = plain_function(Op::MAXIMUM, type), least = plain_function(Op::MINIMUM, type);
    if (most == nullptr) return std::nullopt;
    for (int64_t i = 0; i < count; ++i) {
      most(out, i, a, number(a, i), *operands[1], i);
      least(out, i, *operands[2], number(*operands[2], i), out, i);
    }
    return out;
  }
  if (!have_all(0)) return std::nullopt;
  if (instr.op == Op::COMPARE) {
    const auto& attrs = instr.as<hlo::CompareAttrs>();
    // Complex numbers have no order.
    const bool is_ordered = attrs.direction != hlo::Direction::EQ && attrs.direction != hlo::Direction::NE;
    if (is_ordered && hlo::is_complex(operands[0]->type())) return std::nullopt;
    if (attrs.type == hlo::CompareType::TOTALORDER &&
        (!hlo::is_float(type) || !has_total_order(a) || !has_total_order(*operands[1])))
      return std::nullopt;
    for (int64_t i = 0; i < count; ++i) out.set_int(i, compares(attrs, a, *operands[1], i));
    return out;
  }
  if (instr.op == Op::CONVERT) {
    if (hlo::is_complex(type) && !hlo::is_complex(out.type())) return std::nullopt;
    for (int64_t i = 0; i < count; ++i) convert_element(out, a, i);
    return out;
  }
  if (instr.op == Op::STOCHASTIC_CONVERT)
    return stochastic_convert(out, a, *operands[1]) ? std::optional(std::move(out)) : std::nullopt;
  if (instr.op == Op::NEGATE && hlo::is_complex(type)) {
    for (int64_t i = 0; i < count; ++i) out.set_double(i, -a.as_double(i), -a.imaginary(i));
    return out;
  }
  if (instr.op == Op::COMPLEX || instr.op == Op::REAL || instr.op == Op::IMAG) {
    for (int64_t i = 0; i < count; ++i)
      instr.op == Op::COMPLEX ? out.set_double(i, a.as_double(i), operands[1]->as_double(i))
                              : out.set_double(i, instr.op == Op::REAL ? a.as_double(i) : a.imaginary(i));
    return out;
  }
  if (instr.op == Op::REDUCE_PRECISION) {
    const auto& attrs = instr.as<hlo::ReducePrecisionAttrs>();
    const FloatFormat format = float_format(static_cast<uint32_t>(type));
    if (format.specials != FloatSpecials::IEEE) return std::nullopt;
    const int own = format.exponent_bits;
    for (int64_t i = 0; i < count; ++i)
      out.set_double(i, reduced_to(a.as_double(i), static_cast<int>(attrs.exponent_bits),
                                   static_cast<int>(attrs.mantissa_bits), own));
    return out;
  }
  if (instr.op == Op::IS_FINITE) {
    for (int64_t i = 0; i < count; ++i) out.set_int(i, std::isfinite(a.as_double(i)));
    return out;
  }
  const PlainFunction function = plain_function(instr.op, type);
  if (function == nullptr || out.type() != type) return std::nullopt;
  const Literal& b = *operands[operands.size() > 1 ? 1 : 0];
  for (int64_t i = 0; i < count; ++i) function(out, i, a, i, b, i);
  return out;
}

}  // namespace collet::conformance
