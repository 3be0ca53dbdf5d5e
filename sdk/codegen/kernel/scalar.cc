// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/kernel/scalar.h"

#include <collet/codegen/kernel.h>
#include <collet/program.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/kernel/float_format.h"
#include "sdk/codegen/kernel/literal.h"

namespace collet::codegen {
namespace {

using Wide = long double;
using Complex = std::complex<Wide>;

// Cases of the switches below. Each sets the result of one op, and either returns true or sets `r` and leaves the
// switch.
#define COLLET_GIVES(OPCODE, ...) \
  case COLLET_OP_##OPCODE:        \
    out = __VA_ARGS__;            \
    return true
#define COLLET_SETS(OPCODE, ...) \
  case COLLET_OP_##OPCODE:       \
    r = __VA_ARGS__;             \
    break

bool is_signed(uint32_t type) {
  return collet_type_kind(type) == COLLET_KIND_SIGNED;
}

uint64_t low(uint64_t bits, int width) {
  return width >= 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

int64_t extend(uint64_t bits, int width) {
  return static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
}

Element of_pred(bool x) {
  return {x ? uint64_t{1} : 0, 0};
}

bool holds(int64_t direction, bool less, bool equal, bool greater) {
  switch (direction) {
    case COLLET_DIRECTION_EQ:
      return equal;
    case COLLET_DIRECTION_NE:
      return !equal;
    case COLLET_DIRECTION_GE:
      return greater || equal;
    case COLLET_DIRECTION_GT:
      return greater;
    case COLLET_DIRECTION_LE:
      return less || equal;
    default:
      return less;
  }
}

// Integers.

uint64_t integer_power(uint64_t base, int64_t exponent, bool has_sign, int width) {
  if (has_sign && exponent < 0) {
    const int64_t x = extend(base, width);
    if (x == 1) return 1;
    return x != -1 ? 0 : exponent % 2 == 0 ? 1 : base;
  }
  uint64_t out = 1;
  for (uint64_t rest = low(static_cast<uint64_t>(exponent), width); rest != 0; rest >>= 1, base *= base) {
    if (rest & 1) out *= base;
  }
  return out;
}

/// Shift amounts are unsigned; amounts of `width` or more shift out all bits.
uint64_t integer_shift(uint32_t opcode, uint64_t x, uint64_t amount, int width) {
  const bool out = amount >= static_cast<uint64_t>(width);
  switch (opcode) {
    case COLLET_OP_SHIFT_LEFT:
      return out ? 0 : x << amount;
    case COLLET_OP_SHIFT_RIGHT_LOGICAL:
      return out ? 0 : low(x, width) >> amount;
    default:
      return static_cast<uint64_t>(extend(x, width) >> std::min<uint64_t>(amount, static_cast<uint64_t>(width) - 1));
  }
}

bool integer_op(const ElementOp& op, Element& out) {
  const uint32_t type = op.types[0];
  const int width = type_bits(type);
  const bool has_sign = is_signed(type);
  const int64_t sx = integer_of_element(type, op.args[0]);
  const int64_t sy = op.args.size() > 1 ? integer_of_element(type, op.args[1]) : 0;
  const auto x = static_cast<uint64_t>(sx);
  const auto y = static_cast<uint64_t>(sy);
  const auto less = [has_sign](uint64_t p, uint64_t q) {
    return has_sign ? static_cast<int64_t>(p) < static_cast<int64_t>(q) : p < q;
  };
  const auto largest = [&](uint64_t p, uint64_t q) { return less(p, q) ? q : p; };
  const auto least = [&](uint64_t p, uint64_t q) { return less(q, p) ? q : p; };
  uint64_t r = 0;
  switch (op.opcode) {
    COLLET_SETS(ABS, has_sign && sx < 0 ? 0 - x : x);
    COLLET_SETS(ADD, x + y);
    COLLET_SETS(AND, x & y);
    COLLET_SETS(CLAMP, least(largest(x, y), static_cast<uint64_t>(integer_of_element(type, op.args[2]))));
    COLLET_GIVES(COMPARE, of_pred(holds(op.a, less(x, y), x == y, less(y, x))));
    COLLET_SETS(COUNT_LEADING_ZEROS, static_cast<uint64_t>(std::countl_zero(low(x, width)) - (64 - width)));
    COLLET_SETS(DIVIDE, y == 0 ? ~uint64_t{0} : !has_sign ? x / y : sy == -1 ? 0 - x : static_cast<uint64_t>(sx / sy));
    COLLET_SETS(MAXIMUM, largest(x, y));
    COLLET_SETS(MINIMUM, least(x, y));
    COLLET_SETS(MULTIPLY, x * y);
    COLLET_SETS(NEGATE, 0 - x);
    COLLET_SETS(NOT, ~x);
    COLLET_SETS(OR, x | y);
    COLLET_SETS(POPCNT, static_cast<uint64_t>(std::popcount(low(x, width))));
    COLLET_SETS(POWER, integer_power(x, sy, has_sign, width));
    COLLET_SETS(REMAINDER, y == 0 ? x : !has_sign ? x % y : sy == -1 ? 0 : static_cast<uint64_t>(sx % sy));
    case COLLET_OP_SHIFT_LEFT:
    case COLLET_OP_SHIFT_RIGHT_ARITHMETIC:
      COLLET_SETS(SHIFT_RIGHT_LOGICAL, integer_shift(op.opcode, x, low(y, width), width));
      COLLET_SETS(SIGN, x == 0 ? 0 : has_sign && sx < 0 ? ~uint64_t{0} : 1);
      COLLET_SETS(SUBTRACT, x - y);
      COLLET_SETS(XOR, x ^ y);
    default:
      return false;
  }
  out = element_of_integer(op.type, r);
  return true;
}

bool pred_op(const ElementOp& op, Element& out) {
  const bool x = op.args[0][0] != 0;
  const bool y = op.args.size() > 1 && op.args[1][0] != 0;
  switch (op.opcode) {
    case COLLET_OP_ADD:
    case COLLET_OP_OR:
      COLLET_GIVES(MAXIMUM, of_pred(x || y));
    case COLLET_OP_AND:
    case COLLET_OP_MULTIPLY:
      COLLET_GIVES(MINIMUM, of_pred(x && y));
    case COLLET_OP_SUBTRACT:
      COLLET_GIVES(XOR, of_pred(x != y));
      COLLET_GIVES(NOT, of_pred(!x));
      COLLET_GIVES(CLAMP, of_pred((x || y) && op.args[2][0] != 0));
      COLLET_GIVES(COMPARE, of_pred(holds(op.a, !x && y, x == y, x && !y)));
      COLLET_GIVES(SELECT, x ? op.args[1] : op.args[2]);
    default:
      return false;
  }
}

// Floats.

/// Returns an integer that orders the elements of a float type totally: -NaN, -infinity, ..., -0, +0, ..., NaN.
int64_t total_order(uint32_t type, const Element& x) {
  const FloatFormat f = float_format(type);
  const int width = f.exponent_bits + f.mantissa_bits;
  const uint64_t bits = low(x[0], width + 1);
  if (f.specials == FloatFormat::E8M0) return static_cast<int64_t>(bits);
  const auto magnitude = static_cast<int64_t>(low(bits, width));
  const bool negative = (bits >> width & 1) != 0;
  if (f.specials == FloatFormat::FNUZ && negative && magnitude == 0) return INT64_MAX;
  return negative ? -magnitude - 1 : magnitude;
}

template <typename T>
bool float_compare(const ElementOp& op, T x, T y) {
  if (op.b != COLLET_COMPARE_TOTALORDER) return holds(op.a, x < y, x == y, x > y);
  const int64_t p = total_order(op.types[0], op.args[0]);
  const int64_t q = total_order(op.types[1], op.args[1]);
  return holds(op.a, p < q, p == q, p > q);
}

/// Computes the ops that IEEE 754 rounds correctly, in type T itself.
template <typename T>
bool exact_float_op(const ElementOp& op, T x, T y, T z, T& out) {
  switch (op.opcode) {
    COLLET_GIVES(ABS, std::fabs(x));
    COLLET_GIVES(ADD, x + y);
    COLLET_GIVES(CEIL, std::ceil(x));
    COLLET_GIVES(CLAMP, ieee_minimum(ieee_maximum(x, y), z));
    COLLET_GIVES(DIVIDE, x / y);
    COLLET_GIVES(FLOOR, std::floor(x));
    COLLET_GIVES(IMAG, 0);
    COLLET_GIVES(MAXIMUM, ieee_maximum(x, y));
    COLLET_GIVES(MINIMUM, ieee_minimum(x, y));
    COLLET_GIVES(MULTIPLY, x * y);
    COLLET_GIVES(NEGATE, -x);
    COLLET_GIVES(REAL, x);
    COLLET_GIVES(REMAINDER, std::fmod(x, y));
    COLLET_GIVES(ROUND_NEAREST_AFZ, std::round(x));
    COLLET_GIVES(ROUND_NEAREST_EVEN, std::nearbyint(x));
    COLLET_GIVES(SIGN, std::isnan(x) || x == 0 ? x : std::copysign(T{1}, x));
    COLLET_GIVES(SQRT, std::sqrt(x));
    COLLET_GIVES(SUBTRACT, x - y);
    default:
      return false;
  }
}

Wide logistic(Wide x) {
  return 1 / (1 + std::exp(-x));
}

/// Near its poles, whose real part is 0, the sum would lose most of its digits.
Complex logistic(Complex x) {
  if (std::abs(x.real()) > 1) return Wide{1} / (Wide{1} + std::exp(-x));
  const Complex half = x / Wide{2};
  return std::exp(half) / (Wide{2} * std::cosh(half));
}

/// Computes the elementary functions that are defined for complex numbers as well.
template <typename N>
bool function_of(uint32_t opcode, N x, N y, N& out) {
  switch (opcode) {
    COLLET_GIVES(ACOS, std::acos(x));
    COLLET_GIVES(ACOSH, std::acosh(x));
    COLLET_GIVES(ASIN, std::asin(x));
    COLLET_GIVES(ASINH, std::asinh(x));
    COLLET_GIVES(ATANH, std::atanh(x));
    COLLET_GIVES(COSH, std::cosh(x));
    COLLET_GIVES(COSINE, std::cos(x));
    COLLET_GIVES(EXPONENTIAL, std::exp(x));
    COLLET_GIVES(LOG, std::log(x));
    COLLET_GIVES(LOGISTIC, logistic(x));
    COLLET_GIVES(POWER, std::pow(x, y));
    COLLET_GIVES(RSQRT, N(1) / std::sqrt(x));
    COLLET_GIVES(SINE, std::sin(x));
    COLLET_GIVES(SINH, std::sinh(x));
    COLLET_GIVES(TAN, std::tan(x));
    COLLET_GIVES(TANH, std::tanh(x));
    default:
      return false;
  }
}

/// Computes elementary functions with more bits than the result has.
bool elementary(uint32_t opcode, Wide x, Wide y, Wide& out) {
  switch (opcode) {
    COLLET_GIVES(ATAN2, std::atan2(x, y));
    COLLET_GIVES(CBRT, std::cbrt(x));
    COLLET_GIVES(ERF, std::erf(x));
    COLLET_GIVES(EXPONENTIAL_MINUS_ONE, std::expm1(x));
    COLLET_GIVES(LOG_PLUS_ONE, std::log1p(x));
    default:
      return function_of(opcode, x, y, out);
  }
}

/// Rounds the mantissa to nearest, ties to even. Numbers that are then too large become infinity, and those that are
/// too small zero. Formats with infinities are rounded in their own encoding, others as f32.
Element reduce_precision(const ElementOp& op) {
  const uint32_t type = op.types[0];
  const FloatFormat own = float_format(type);
  const FloatFormat f = own.specials == FloatFormat::IEEE ? own : float_format(COLLET_TYPE_F32);
  const bool as_f32 = own.specials != FloatFormat::IEEE;
  const uint64_t bits = as_f32 ? element_of_real(COLLET_TYPE_F32, real_of_element(type, op.args[0]))[0] : op.args[0][0];
  const uint64_t sign_mask = uint64_t{1} << (f.mantissa_bits + f.exponent_bits);
  const uint64_t magnitude = bits & (sign_mask - 1);
  const uint64_t infinity = ((uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits;
  const auto to_exponent = static_cast<int>(op.a);
  const auto to_mantissa = static_cast<int>(op.b);
  uint64_t r = magnitude;
  if (magnitude > infinity) {
    r = to_mantissa == 0 ? infinity : magnitude;
  } else {
    if (to_mantissa < f.mantissa_bits) {
      const int cut = f.mantissa_bits - to_mantissa;
      r += (uint64_t{1} << (cut - 1)) - 1 + (magnitude >> cut & 1);
      r &= ~((uint64_t{1} << cut) - 1);
    }
    if (to_exponent < f.exponent_bits) {
      const int to_bias = (1 << (to_exponent - 1)) - 1;
      const uint64_t too_large = static_cast<uint64_t>(f.bias + to_bias + 1) << f.mantissa_bits;
      const uint64_t least = static_cast<uint64_t>(f.bias - to_bias + 1) << f.mantissa_bits;
      r = r >= too_large ? infinity : r < least ? 0 : r;
    }
  }
  r |= bits & sign_mask;
  return as_f32 ? element_of_real(type, real_of_element(COLLET_TYPE_F32, {r, 0})) : Element{r, 0};
}

/// Rounds stochastically. To an integer: the magnitude grows by one if the fraction exceeds the random number. To a
/// float: the random bits are added below the last place, and the bits below it are cut off.
Element stochastic_convert(const ElementOp& op) {
  const uint32_t from = op.types[0];
  const int random_width = type_bits(op.types[1]);
  const uint64_t random = op.args[1][0];
  const Wide x = real_of_element(from, op.args[0]);
  if (collet_type_kind(op.type) != COLLET_KIND_FLOAT) {
    const Wide size = std::fabs(x);
    const Wide whole = std::floor(size);
    // The fraction scaled to the range of the random numbers, which is exact in f64.
    const auto limit = static_cast<double>(size - whole) * std::ldexp(1.0, random_width);
    const bool up = static_cast<Wide>(random) < std::floor(static_cast<Wide>(limit));
    return element_of_real(op.type, std::copysign(up ? whole + 1 : whole, x));
  }
  const bool f64 = from == COLLET_TYPE_F64;
  const uint32_t wide_type = f64 ? COLLET_TYPE_F64 : COLLET_TYPE_F32;
  const int mantissa = f64 ? 52 : 23;
  const int to_mantissa = float_format(op.type).mantissa_bits;
  if (to_mantissa >= mantissa || std::isnan(x)) return element_of_real(op.type, x);
  const int cut = mantissa - to_mantissa;
  uint64_t noise = random;
  if (random_width > cut && random_width <= (f64 ? 64 : 32)) noise >>= random_width - cut;
  noise &= (uint64_t{1} << cut) - 1;
  const uint64_t bits = element_of_real(wide_type, x)[0] + noise;
  return element_of_real(op.type, real_of_element(wide_type, {bits & ~((uint64_t{1} << cut) - 1), 0}));
}

template <typename T>
bool float_op(const ElementOp& op, Element& out) {
  const uint32_t type = op.types[0];
  const auto arg = [&op](size_t i) {
    return i < op.args.size() ? static_cast<T>(real_of_element(op.types[i], op.args[i])) : T{0};
  };
  const T x = arg(0);
  switch (op.opcode) {
    COLLET_GIVES(REDUCE_PRECISION, reduce_precision(op));
    COLLET_GIVES(STOCHASTIC_CONVERT, stochastic_convert(op));
    COLLET_GIVES(COMPARE, of_pred(float_compare(op, x, arg(1))));
    COLLET_GIVES(IS_FINITE, of_pred(std::isfinite(x)));
    COLLET_GIVES(COMPLEX, element_of_complex(op.type, {x, arg(1)}));
    default:
      break;
  }
  T exact = 0;
  if (exact_float_op(op, x, arg(1), arg(2), exact)) {
    out = element_of_real(type, exact);
    return true;
  }
  Wide wide = 0;
  if (!elementary(op.opcode, x, arg(1), wide)) return false;
  out = element_of_real(type, static_cast<T>(wide));
  return true;
}

// Complex numbers.

Complex complex_expm1(Complex x) {
  const Wide half = std::sin(x.imag() / 2);
  return {std::expm1(x.real()) * std::cos(x.imag()) - 2 * half * half, std::exp(x.real()) * std::sin(x.imag())};
}

Complex complex_log1p(Complex x) {
  const Wide a = x.real();
  const Wide b = x.imag();
  return {std::log1p(a * (2 + a) + b * b) / 2, std::atan2(b, 1 + a)};
}

Complex complex_atan2(Complex x, Complex y) {
  const Complex i(0, 1);
  return -i * std::log((y + i * x) / std::sqrt(x * x + y * y));
}

bool complex_function(uint32_t opcode, Complex x, Complex y, Complex& out) {
  switch (opcode) {
    COLLET_GIVES(ADD, x + y);
    COLLET_GIVES(ATAN2, complex_atan2(x, y));
    COLLET_GIVES(DIVIDE, x / y);
    COLLET_GIVES(EXPONENTIAL_MINUS_ONE, complex_expm1(x));
    COLLET_GIVES(LOG_PLUS_ONE, complex_log1p(x));
    COLLET_GIVES(MULTIPLY, x * y);
    COLLET_GIVES(NEGATE, -x);
    COLLET_GIVES(SIGN, x == Complex(0) ? x : x / std::abs(x));
    COLLET_GIVES(SQRT, std::sqrt(x));
    COLLET_GIVES(SUBTRACT, x - y);
    default:
      return function_of(opcode, x, y, out);
  }
}

/// Returns the larger or smaller complex number; they are ordered by their real parts, then by their imaginary parts.
Element complex_extreme(const ElementOp& op, bool largest) {
  const Complex x = complex_of_element(op.type, op.args[0]);
  const Complex y = complex_of_element(op.type, op.args[1]);
  const bool greater = x.real() > y.real() || (x.real() == y.real() && x.imag() > y.imag());
  const bool less = x.real() < y.real() || (x.real() == y.real() && x.imag() < y.imag());
  return (largest ? greater : less) ? op.args[0] : op.args[1];
}

bool complex_op(const ElementOp& op, Element& out) {
  const uint32_t type = op.types[0];
  const Complex x = complex_of_element(type, op.args[0]);
  const Complex y = op.args.size() > 1 ? complex_of_element(type, op.args[1]) : Complex(0);
  switch (op.opcode) {
    COLLET_GIVES(ABS, element_of_real(op.type, std::hypot(x.real(), x.imag())));
    COLLET_GIVES(REAL, element_of_real(op.type, x.real()));
    COLLET_GIVES(IMAG, element_of_real(op.type, x.imag()));
    COLLET_GIVES(COMPARE, of_pred((x == y) == (op.a == COLLET_DIRECTION_EQ)));
    case COLLET_OP_MAXIMUM:
      COLLET_GIVES(MINIMUM, complex_extreme(op, op.opcode == COLLET_OP_MAXIMUM));
    default:
      break;
  }
  Complex r;
  if (!complex_function(op.opcode, x, y, r)) return false;
  out = element_of_complex(op.type, r);
  return true;
}

// Conversions.

Element convert(uint32_t from, uint32_t to, const Element& x) {
  if (from == to) return x;
  const uint32_t kind = collet_type_kind(from);
  const uint32_t to_kind = collet_type_kind(to);
  if (kind == COLLET_KIND_COMPLEX) {
    const Complex z = complex_of_element(from, x);
    if (to_kind == COLLET_KIND_COMPLEX) return element_of_complex(to, z);
    if (to_kind == COLLET_KIND_PRED) return of_pred(z.real() != 0 || z.imag() != 0);
    return element_of_real(to, z.real());
  }
  if (kind != COLLET_KIND_FLOAT && to_kind != COLLET_KIND_FLOAT && to_kind != COLLET_KIND_COMPLEX) {
    return element_of_integer(to, static_cast<uint64_t>(integer_of_element(from, x)));
  }
  const Wide number = real_of_element(from, x);
  if (to_kind == COLLET_KIND_PRED) return of_pred(number != 0);
  if (to_kind == COLLET_KIND_COMPLEX) return element_of_complex(to, number);
  return element_of_real(to, number);
}

Element bitcast(uint32_t to, const Element& x) {
  const uint32_t kind = collet_type_kind(to);
  if (kind == COLLET_KIND_FLOAT) return {low(x[0], type_bits(to)), 0};
  return kind == COLLET_KIND_COMPLEX ? x : element_of_integer(to, x[0]);
}

}  // namespace

int64_t integer_of_element(uint32_t type, const Element& x) {
  const int width = 8 * static_cast<int>(collet_type_bytes(type));
  return is_signed(type) ? extend(x[0], width) : static_cast<int64_t>(low(x[0], width));
}

Element element_of_integer(uint32_t type, uint64_t bits) {
  if (type == COLLET_TYPE_PRED) return of_pred(bits != 0);
  const int width = type_bits(type);
  if (is_signed(type)) bits = static_cast<uint64_t>(extend(bits, width));
  return {low(is_signed(type) ? bits : low(bits, width), 8 * static_cast<int>(collet_type_bytes(type))), 0};
}

long double real_of_element(uint32_t type, const Element& x) {
  switch (collet_type_kind(type)) {
    case COLLET_KIND_FLOAT:
      if (type == COLLET_TYPE_F64) return std::bit_cast<double>(x[0]);
      if (type == COLLET_TYPE_F32) return std::bit_cast<float>(static_cast<uint32_t>(x[0]));
      return decode_float(x[0], float_format(type));
    case COLLET_KIND_SIGNED:
      return static_cast<Wide>(integer_of_element(type, x));
    default:
      return static_cast<Wide>(static_cast<uint64_t>(integer_of_element(type, x)));
  }
}

Element element_of_real(uint32_t type, long double x) {
  if (type == COLLET_TYPE_F64) return {std::bit_cast<uint64_t>(static_cast<double>(x)), 0};
  if (type == COLLET_TYPE_F32) return {std::bit_cast<uint32_t>(static_cast<float>(x)), 0};
  if (collet_type_kind(type) == COLLET_KIND_FLOAT) return {encode_float(x, float_format(type)), 0};
  if (std::isnan(x)) return {};
  const int digits = type_bits(type) - (is_signed(type) ? 1 : 0);
  const Wide above = std::ldexp(Wide{1}, digits);
  if (x >= above) return element_of_integer(type, digits == 0 ? 0 : ~uint64_t{0} >> (64 - digits));
  if (is_signed(type)) {
    if (x <= -above) return element_of_integer(type, uint64_t{1} << digits);
    return element_of_integer(type, static_cast<uint64_t>(static_cast<int64_t>(x)));
  }
  return element_of_integer(type, x <= 0 ? 0 : static_cast<uint64_t>(x));
}

std::complex<long double> complex_of_element(uint32_t type, const Element& x) {
  if (type == COLLET_TYPE_C128) return {std::bit_cast<double>(x[0]), std::bit_cast<double>(x[1])};
  if (type == COLLET_TYPE_C64) {
    return {std::bit_cast<float>(static_cast<uint32_t>(x[0])), std::bit_cast<float>(static_cast<uint32_t>(x[0] >> 32))};
  }
  return real_of_element(type, x);
}

Element element_of_complex(uint32_t type, std::complex<long double> x) {
  const uint32_t half = half_type(type);
  const uint64_t re = element_of_real(half, x.real())[0];
  const uint64_t im = element_of_real(half, x.imag())[0];
  if (type == COLLET_TYPE_C64) return {re | im << 32, 0};
  return type == COLLET_TYPE_C128 ? Element{re, im} : Element{re, 0};
}

bool evaluate_element(const ElementOp& op, Element& out) {
  if (op.types.empty() || op.types.size() != op.args.size() || !has_elementwise(op.opcode, op.types[0])) return false;
  if (op.opcode == COLLET_OP_CONVERT) {
    out = convert(op.types[0], op.type, op.args[0]);
    return true;
  }
  if (op.opcode == COLLET_OP_BITCAST_CONVERT) {
    out = bitcast(op.type, op.args[0]);
    return true;
  }
  switch (collet_type_kind(op.types[0])) {
    case COLLET_KIND_PRED:
      return pred_op(op, out);
    case COLLET_KIND_SIGNED:
    case COLLET_KIND_UNSIGNED:
      return integer_op(op, out);
    case COLLET_KIND_FLOAT:
      return op.types[0] == COLLET_TYPE_F64 ? float_op<double>(op, out) : float_op<float>(op, out);
    case COLLET_KIND_COMPLEX:
      return complex_op(op, out);
    default:
      return false;
  }
}

}  // namespace collet::codegen
