// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/source/scalar_text.h"

#include <collet/program.h>
#include <collet/types.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/base/real_functions.h"
#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/kernel/float_format.h"
#include "sdk/codegen/source/math_text.h"

namespace collet::codegen::source {
namespace {

using C = elementary::Complex<F>;

/// An op and its operands.
struct Op {
  uint32_t opcode = 0;
  uint32_t result_type = 0;
  std::span<const uint32_t> types;
  std::span<const Val> args;
  int64_t a = 0;
  int64_t b = 0;
};
using Emit = Val (*)(Function&, const Op&);

bool is_signed(uint32_t type) {
  return collet_type_kind(type) == COLLET_KIND_SIGNED;
}
bool is_integer(uint32_t type) {
  return is_signed(type) || collet_type_kind(type) == COLLET_KIND_UNSIGNED;
}
int width_of(uint32_t type) {
  return 8 * static_cast<int>(collet_type_bytes(type));
}
std::string unsigned_type(int width) {
  return "uint" + std::to_string(width) + "_t";
}
/// Returns the name of a type, for names of helpers.
std::string name_of(uint32_t type) {
  return collet_type_name(type);
}
F real(Function& f, const Op& op, size_t i = 0) {
  return {&f, op.args[i].v};
}
C composite(Function& f, const Op& op, size_t i = 0) {
  return {{&f, op.args[i].v}, {&f, op.args[i].im}};
}
Val val(F x) {
  return {x.v};
}
Val val(C x) {
  return {x.re.v, x.im.v};
}
Val val(Mask p) {
  return {p.v};
}

/// Replaces each `$` and a letter in `text` by what `names` has for the letter.
std::string filled(std::string text, const std::vector<std::pair<char, std::string>>& names) {
  for (const auto& [letter, name] : names) {
    const std::string key = std::string("$") + letter;
    for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + name.size()))
      text.replace(at, 2, name);
  }
  return text;
}

// Integers.

Id integer(Function& f, uint32_t type, int64_t x) {
  if (is_signed(type) || width_of(type) < 32) return f.constant(value_type(type), text_of_integer(x));
  const auto bits = static_cast<uint64_t>(x);
  // A literal has the first type that holds it, and its operands have that type.
  const bool is_short = width_of(type) == 64 && bits <= 0xffffffff;
  return f.constant(value_type(type), (is_short ? "(uint64_t)" : "") + std::to_string(bits) + "u");
}

/// Wraps the value of a sub-byte type around.
Id wrapped(Function& f, Id x, uint32_t type) {
  const int bits = type_bits(type);
  if (!is_integer(type) || bits >= 8) return x;
  const std::string& wrap = f.unit.helper("wrap_" + name_of(type), [&] {
    return filled(is_signed(type) ? "static inline int8_t wrap_$N(int8_t x) {\n"
                                    "  return (int8_t)((int8_t)(uint8_t)((uint8_t)x << $B) >> $B);\n}\n"
                                  : "static inline uint8_t wrap_$N(uint8_t x) {\n  return x & (0xff >> $B);\n}\n",
                  {{'N', name_of(type)}, {'B', std::to_string(8 - bits)}});
  });
  return f.call(value_type(type), wrap, {x});
}

/// Returns x op y, modulo the width of the type.
Id wrapping(Function& f, uint32_t type, const std::string& op, Id x, Id y) {
  const int width = width_of(type);
  const std::string own = value_type(type);
  if (width >= 32) {
    const std::string word = unsigned_type(width);
    return f.cast(own, f.binary(word, op, f.cast(word, x), f.cast(word, y)));
  }
  // Narrower ones are promoted to int, in which only products of u16 may overflow.
  const bool overflows = op == "*" && width == 16 && !is_signed(type);
  return f.cast(own, f.binary("int", op, overflows ? f.cast("uint32_t", x) : x, y));
}

/// Calls a helper that the text defines: $T is the type, $U the unsigned one, $N its name in HLO, $W its width.
Val integer_helper(Function& f, const Op& op, const std::string& name, const char* text) {
  const uint32_t type = op.types[0];
  const std::string own = value_type(type), word = unsigned_type(width_of(type));
  // The HLO name of the C type: sub-byte types share the helpers of bytes.
  const std::string called = name + "_" + (own[0] == 'u' ? "u" : "s") + std::to_string(width_of(type));
  f.unit.helper(called, [&] {
    return filled(text, {{'F', called}, {'T', own}, {'U', word}, {'W', std::to_string(width_of(type))}});
  });
  std::vector<Id> args;
  for (const Val& x : op.args) args.push_back(x.v);
  return {f.call(own, called, args)};
}

Val int_add(Function& f, const Op& op) {
  return {wrapping(f, op.types[0], "+", op.args[0].v, op.args[1].v)};
}
Val int_sub(Function& f, const Op& op) {
  return {wrapping(f, op.types[0], "-", op.args[0].v, op.args[1].v)};
}
Val int_mul(Function& f, const Op& op) {
  return {wrapping(f, op.types[0], "*", op.args[0].v, op.args[1].v)};
}
Val int_neg(Function& f, const Op& op) {
  return {wrapping(f, op.types[0], "-", integer(f, op.types[0], 0), op.args[0].v)};
}
Val int_abs(Function& f, const Op& op) {
  const Id x = op.args[0].v;
  if (!is_signed(op.types[0])) return {x};
  return {f.select(f.binary("bool", "<", x, integer(f, op.types[0], 0)), int_neg(f, op).v, x)};
}
Val bit_op(Function& f, const Op& op, const char* sign) {
  const std::string own = value_type(op.types[0]);
  const bool promoted = op.types[0] != COLLET_TYPE_PRED && width_of(op.types[0]) < 32;
  const Id both = f.binary(promoted ? "int" : own, sign, op.args[0].v, op.args[1].v);
  return {f.cast(own, both)};
}
Val bit_and(Function& f, const Op& op) {
  return bit_op(f, op, "&");
}
Val bit_or(Function& f, const Op& op) {
  return bit_op(f, op, "|");
}
Val bit_xor(Function& f, const Op& op) {
  return bit_op(f, op, "^");
}
Val bit_not(Function& f, const Op& op) {
  const std::string own = value_type(op.types[0]);
  if (own == "bool") return {f.value(own, "!$p0", {op.args[0].v}, Level::kUnary)};
  return {f.value(own, "(" + own + ")~$p0", {op.args[0].v}, Level::kUnary)};
}
Val int_divide(Function& f, const Op& op) {
  return integer_helper(f, op, "divide",
                        is_signed(op.types[0]) ? "static inline $T $F($T x, $T y) {\n"
                                                 "  return y == 0 ? -1 : y == -1 ? ($T)(0u - ($U)x) : ($T)(x / y);\n}\n"
                                               : "static inline $T $F($T x, $T y) {\n"
                                                 "  return y == 0 ? ($T)~($T)0 : ($T)(x / y);\n}\n");
}
Val int_remainder(Function& f, const Op& op) {
  return integer_helper(f, op, "remainder",
                        is_signed(op.types[0])
                            ? "static inline $T $F($T x, $T y) {\n"
                              "  return y == 0 ? x : y == -1 ? ($T)0 : ($T)(x % y);\n}\n"
                            : "static inline $T $F($T x, $T y) {\n  return y == 0 ? x : ($T)(x % y);\n}\n");
}
template <bool kMax>
Val int_extreme(Function& f, const Op& op) {
  const Id x = op.args[0].v, y = op.args[1].v;
  return {f.select(f.binary("bool", kMax ? ">" : "<", x, y), x, y)};
}
template <bool kMax>
Val pred_extreme(Function& f, const Op& op) {
  return kMax ? bit_or(f, op) : bit_and(f, op);
}
Val int_sign(Function& f, const Op& op) {
  const Id x = op.args[0].v, zero = integer(f, op.types[0], 0);
  const std::string own = value_type(op.types[0]);
  const Id above = f.binary("int", ">", x, zero);
  return {f.cast(own, is_signed(op.types[0]) ? f.binary("int", "-", above, f.binary("int", "<", x, zero)) : above)};
}
/// Returns the bits of an integer, without the sign extension of a sub-byte type.
Id low_bits(Function& f, const Op& op) {
  const int bits = type_bits(op.types[0]);
  if (bits >= 8) return op.args[0].v;
  const Id mask = f.constant("int", std::to_string((1 << bits) - 1));
  return f.cast(value_type(op.types[0]), f.binary("int", "&", op.args[0].v, mask));
}
Val int_clz(Function& f, const Op& op) {
  const Val low{low_bits(f, op)};
  const Op of_low{op.opcode, op.result_type, op.types, {&low, 1}};
  const Val zeros = integer_helper(f, of_low, "leading_zeros",
                                   "static inline $T $F($T x) {\n  $U rest = ($U)x;\n  int n = $W;\n"
                                   "  for (; rest != 0; rest >>= 1) --n;\n  return ($T)n;\n}\n");
  const int unused = width_of(op.types[0]) - type_bits(op.types[0]);
  return unused == 0 ? zeros : Val{wrapping(f, op.types[0], "-", zeros.v, integer(f, op.types[0], unused))};
}
Val int_popcnt(Function& f, const Op& op) {
  const Val low{low_bits(f, op)};
  return integer_helper(f, {op.opcode, op.result_type, op.types, {&low, 1}}, "ones",
                        "static inline $T $F($T x) {\n  $U rest = ($U)x;\n  int n = 0;\n"
                        "  for (; rest != 0; rest &= ($U)(rest - 1)) ++n;\n  return ($T)n;\n}\n");
}
Val int_power(Function& f, const Op& op) {
  // The factors have at least 32 bits, because narrower ones would be promoted to int.
  const bool wide = width_of(op.types[0]) == 64;
  const std::string word = wide ? "uint64_t" : "uint32_t";
  const std::string loop = "  " + word + " result = 1, square = (" + word + ")x;\n" +
                           "  for ($U rest = ($U)y; rest != 0; rest >>= 1, square *= square) {\n"
                           "    if (rest & 1) result *= square;\n  }\n  return ($T)result;\n}\n";
  const std::string negative =
      is_signed(op.types[0]) ? "  if (y < 0) return x == 1 ? 1 : x != -1 ? 0 : y & 1 ? x : 1;\n" : "";
  return integer_helper(f, op, "power", ("static inline $T $F($T x, $T y) {\n" + negative + loop).c_str());
}

enum class Shift : uint8_t { kLeft, kRightArithmetic, kRightLogical };
template <Shift kShift>
Val shift(Function& f, const Op& op) {
  // Amounts are unsigned; amounts of the type's width or more shift out all bits.
  const uint32_t type = op.types[0];
  const int bits = type_bits(type);
  const std::string own = value_type(type), word = unsigned_type(width_of(type));
  const char* const kNames[] = {"shift_left_", "shift_right_", "shift_right_logical_"};
  const std::string name = kNames[static_cast<size_t>(kShift)] + name_of(type);
  f.unit.helper(name, [&] {
    const std::string mask = bits < 8 ? " & " + std::to_string((1 << bits) - 1) : "";
    std::string text = "static inline $T $F($T x, $T y) {\n  const $U n = ($U)y" + mask + ";\n";
    if (kShift == Shift::kLeft) text += "  return n < $B ? ($T)(($U)x << n) : ($T)0;\n}\n";
    if (kShift == Shift::kRightLogical) text += "  return n < $B ? ($T)((($U)x" + mask + ") >> n) : ($T)0;\n}\n";
    if (kShift == Shift::kRightArithmetic) {
      const std::string by = std::to_string(width_of(type) - bits);
      const std::string sign = "(" + word.substr(1) + ")(" + word + ")((" + word + ")x << " + by + ")";
      text += "  return ($T)(" + (bits < 8 ? "(" + sign + " >> " + by + ")" : "(" + word.substr(1) + ")x") +
              " >> (n < $B ? n : $L));\n}\n";
    }
    return filled(text,
                  {{'F', name}, {'T', own}, {'U', word}, {'B', std::to_string(bits)}, {'L', std::to_string(bits - 1)}});
  });
  return {f.call(own, name, {op.args[0].v, op.args[1].v})};
}

constexpr const char* kComparisons[] = {"==", "!=", ">=", ">", "<=", "<"};

Val int_compare(Function& f, const Op& op) {
  return {f.binary("bool", kComparisons[op.a], op.args[0].v, op.args[1].v)};
}

// Floats.

Val float_add(Function& f, const Op& op) {
  return val(real(f, op) + real(f, op, 1));
}
Val float_sub(Function& f, const Op& op) {
  return val(real(f, op) - real(f, op, 1));
}
Val float_mul(Function& f, const Op& op) {
  return val(real(f, op) * real(f, op, 1));
}
Val float_div(Function& f, const Op& op) {
  return val(real(f, op) / real(f, op, 1));
}
Val float_neg(Function& f, const Op& op) {
  return val(-real(f, op));
}
Val identity(Function&, const Op& op) {
  return op.args[0];
}
Val zero_of(Function& f, const Op& op) {
  return val(real(f, op).like(0));
}

namespace id {
enum Name : uint8_t { fabs, ceil, floor, roundeven };
}
template <id::Name kName>
Val intrinsic(Function& f, const Op& op) {
  constexpr const char* kNames[] = {"fabs", "ceil", "floor", "rint"};
  return val(real(f, op).call(kNames[kName]));
}
Val float_round_away(Function& f, const Op& op) {
  return val(real(f, op).call("round"));
}
Val float_remainder(Function& f, const Op& op) {
  return val(remainder_of(real(f, op), real(f, op, 1)));
}
Val float_finite(Function& f, const Op& op) {
  return val(magnitude(real(f, op)) < elementary::kInfinity);
}
Val float_sign(Function& f, const Op& op) {
  const F x = real(f, op);
  return val(select(x == 0 || is_nan(x), x, with_sign_of(x.like(1), x)));
}
/// A maximum or minimum where NaN wins and -0 is less than +0.
template <bool kMax>
Val float_extreme(Function& f, const Op& op) {
  const F x = real(f, op);
  const std::string name = std::string(kMax ? "max" : "min") + (x.wide() ? "_f64" : "_f32");
  f.unit.helper(name, [&] {
    Function g(f.unit);
    const F a(&g, g.constant(x.type(), "x")), b(&g, g.constant(x.type(), "y"));
    const F r = select((kMax ? a > b : a < b) || is_nan(a), a, b);
    const Bits joined{&g, g.binary(x.wide() ? "uint64_t" : "uint32_t", kMax ? "&" : "|", bits(a).v, bits(b).v)};
    g.statement("return $a0;", {select(a == b, from_bits(a, joined), r).v});
    return g.print("static inline " + x.type() + " " + name + "(" + x.type() + " x, " + x.type() + " y)");
  });
  return {f.call(x.type(), name, {x.v, op.args[1].v})};
}
template <Emit kMin, Emit kMax>
Val clamp(Function& f, const Op& op) {  // min(max(low, x), high)
  const uint32_t types[2] = {op.types[1], op.types[1]};
  const Val first[2] = {op.args[0], op.args[1]};
  const Val second[2] = {kMax(f, {COLLET_OP_MAXIMUM, op.result_type, types, first}), op.args[2]};
  return kMin(f, {COLLET_OP_MINIMUM, op.result_type, types, second});
}
/// Returns an integer that orders floats totally.
Id total_order(Function& f, F x) {
  const Bits i = bits(x);
  const Bits flip{&f, f.binary(i.type(), ">>", (i >> (x.wide() ? 63 : 31)).v, f.constant("int", "1"))};
  return (i ^ flip).as_signed();
}
Val float_compare(Function& f, const Op& op) {
  const F x = real(f, op), y = real(f, op, 1);
  if (op.b != COLLET_COMPARE_TOTALORDER) return int_compare(f, op);
  return {f.binary("bool", kComparisons[op.a], total_order(f, x), total_order(f, y))};
}

namespace math {
// Functions of math_text.cc, besides the root and 1 / root.
enum Name : uint8_t {
  acos,
  acosh,
  asin,
  asinh,
  atan2,
  atanh,
  cbrt,
  cos,
  cosh,
  erf,
  exp,
  expm1,
  hypot,
  log,
  log1p,
  logistic,
  pow,
  rsqrt,
  sin,
  sinh,
  sqrt,
  tan,
  tanh
};
constexpr const char* kNames[] = {"acos", "acosh", "asin", "asinh", "atan2", "atanh", "cbrt",  "cos",
                                  "cosh", "erf",   "exp",  "expm1", "hypot", "log",   "log1p", "logistic",
                                  "pow",  "rsqrt", "sin",  "sinh",  "sqrt",  "tan",   "tanh"};
static_assert(std::size(kNames) == tanh + 1);
}  // namespace math

template <math::Name kName>
Val unary(Function& f, const Op& op) {
  const F x = real(f, op);
  if (kName == math::sqrt) return val(root(x));
  return val(kName == math::rsqrt ? 1.0 / root(x) : call_function(math::kNames[kName], x));
}
template <math::Name kName>
Val binary(Function& f, const Op& op) {
  const F x = real(f, op), y = real(f, op, 1);
  if (kName == math::pow) {
    for (const double known : {0.5, -0.5, 1.5}) {
      if (y.like(known).v == y.v) return val(power_of(x, y, known));
    }
  }
  return val(call_function(math::kNames[kName], x, y));
}

// Conversions.

/// Returns p ? constant : i and similar choices with less text.
Bits choose(Id p, Bits i, Bits j) {
  return select(Mask{i.f, p}, i, j);
}
Id unsigned_compare(Bits i, const char* op, uint64_t c) {
  return i.f->binary("bool", op, i.v, i.like(static_cast<int64_t>(c)).v);
}

/// Writes the function that rounds an f32 to the bits of a narrow float type: to nearest, ties to even, those of E8M0 up.
std::string make_encode(Unit& unit, uint32_t type, const std::string& name) {
  if (type == COLLET_TYPE_F16 && unit.target.half_conversion && unit.language.bits_of_half)
    return "static inline uint16_t " + name + "(float x) {\n" + unit.language.bits_of_half + "}\n";
  const FloatFormat format = float_format(type);
  Function f(unit);
  const F x(&f, f.constant("float", "x"));
  const int m = format.mantissa_bits, shift = 23 - m;
  const Bits i = bits(x);
  const auto k = [&](uint64_t c) { return i.like(static_cast<int64_t>(c)); };
  // Logical shifts: `>>` of Bits keeps the sign.
  const auto right = [&](Bits j, int n) {
    return Bits{&f, f.binary("uint32_t", ">>", j.v, f.constant("int", std::to_string(n)))};
  };
  const Bits sign = right(i, 31), magnitude = i & 0x7fffffff;
  const Id nan = unsigned_compare(magnitude, ">", 0x7f800000);
  const Bits odd = right(magnitude, shift) & 1;
  const Bits nearest = right(magnitude + ((int64_t{1} << (shift - 1)) - 1) + odd, shift);
  const uint32_t top = (1U << (format.exponent_bits + m)) - 1, infinity = ((1U << format.exponent_bits) - 1) << m;
  const int sign_shift = format.exponent_bits + m;
  Bits y = nearest;
  if (type == COLLET_TYPE_BF16) {
    // The exponents of bf16 are those of f32: rounding the bits as an integer gives the nearest number, or infinity.
    const Bits upper = right(i, 16);
    const Bits rounded =
        right(i + (upper & 1) + 0x7fff, 16);  // named, so that the text has one order with each compiler of ours
    const Bits quiet = (upper & 0x8000) | 0x7fc0;
    y = select(is_nan(x), quiet, rounded);
  } else if (format.specials == FloatFormat::E8M0) {
    // Ties are rounded up. The numbers below 2^-126 have no implicit bit: half of a unit in the last place is half as much there.
    const Bits half = choose(unsigned_compare(magnitude, ">=", 0x800000), k(0x400000), k(0x200000));
    const Bits power = right(magnitude + half, 23);
    const Mask bad = Mask{&f, nan} || Mask{&f, unsigned_compare(power, ">=", 255)} || sign == 1 || magnitude == 0;
    y = select(bad, k(0xff), power);
  } else {
    y = nearest - (int64_t{127 - format.bias} << m);
    if (format.bias != 127) {
      // Numbers below the smallest normal one are multiples of its unit in the last place: adding 2^23 such units rounds them.
      const F tiny = from_bits(x, magnitude) * std::ldexp(1.0, format.bias - 1 + m) + 8388608.0;
      y = choose(unsigned_compare(magnitude, "<", static_cast<uint64_t>(128 - format.bias) << 23),
                 bits(tiny) - 0x4b000000, y);
    }
    const bool ieee = format.specials == FloatFormat::IEEE;
    const uint32_t largest = ieee ? infinity - 1 : format.specials == FloatFormat::FN ? top - 1 : top;
    const Mask over = Mask{&f, f.binary("bool", ">", y.as_signed(), f.integer(largest))} ||
                      Mask{&f, unsigned_compare(magnitude, ">=", 0x7f800000)};
    y = select(over, k(ieee ? infinity : top), y);
    const Bits high = sign << sign_shift;
    if (format.specials == FloatFormat::FINITE) {
      // A NaN without an encoding becomes -0.
      y = choose(nan, k(uint64_t{1} << sign_shift), y | high);
    } else if (format.specials == FloatFormat::FNUZ) {
      const Bits signed_y = y | high, nonzero = choose(unsigned_compare(y, "==", 0), k(0), signed_y);
      y = select(Mask{&f, nan} || over, k(uint64_t{1} << sign_shift), nonzero);
    } else {
      Bits of_nan = k(ieee ? infinity | (1U << (m - 1)) : top);
      if (ieee) {  // keeps the bits of NaN
        const Bits payload = right(magnitude, shift) & ((int64_t{1} << m) - 1);
        of_nan = choose(unsigned_compare(payload, "==", 0), of_nan, payload | k(infinity));
      }
      y = choose(nan, of_nan, y) | high;
    }
  }
  f.statement("return (" + memory_type(type) + ")$u0;", {y.v});
  return f.print("static inline " + memory_type(type) + " " + name + "(float x)");
}

/// Writes the function that converts the bits of a narrow float to an f32.
std::string make_decode(Unit& unit, uint32_t type, const std::string& name) {
  if (type == COLLET_TYPE_F16 && unit.target.half_conversion && unit.language.of_half_bits)
    return "static inline float " + name + "(uint32_t i) {\n" + unit.language.of_half_bits + "}\n";
  const FloatFormat format = float_format(type);
  Function f(unit);
  const int m = format.mantissa_bits, sign_shift = format.exponent_bits + m;
  const Bits i{&f, f.constant("uint32_t", "i")};
  const F like(&f, f.constant("float", "0.0f"));
  const auto k = [&](uint64_t c) { return i.like(static_cast<int64_t>(c)); };
  const uint32_t top = (1U << sign_shift) - 1, infinity = ((1U << format.exponent_bits) - 1) << m;
  Bits y = i;
  if (type == COLLET_TYPE_BF16) {
    y = i << 16;
  } else if (format.specials == FloatFormat::E8M0) {
    y = choose(unsigned_compare(i, "==", 0), k(0x00400000), i << 23);
    y = choose(unsigned_compare(i, "==", 0xff), k(0x7fc00000), y);
  } else {
    const Bits magnitude = i & int64_t{top};
    const Bits sign{&f, f.value("uint32_t", "$u0 >> " + std::to_string(sign_shift) + " << 31", {i.v}, Level::kBits)};
    y = (magnitude << (23 - m)) + (int64_t{127 - format.bias} << 23);
    if (format.bias != 127) {
      const F small = F(&f, f.cast("float", magnitude.v)) * std::ldexp(1.0, 1 - format.bias - m);
      y = choose(unsigned_compare(magnitude, "<", uint64_t{1} << m), bits(small), y);
    }
    if (format.specials == FloatFormat::IEEE) {
      y = choose(unsigned_compare(magnitude, ">=", infinity), (magnitude << (23 - m)) | 0x7f800000, y);
    } else if (format.specials == FloatFormat::FN) {
      y = choose(unsigned_compare(magnitude, "==", top), k(0x7fc00000), y);
    }
    y = y | sign;
    if (format.specials == FloatFormat::FNUZ)
      y = choose(unsigned_compare(i, "==", uint64_t{1} << sign_shift), k(0x7fc00000), y);
  }
  f.statement("return $a0;", {from_bits(like, y).v});
  return f.print("static inline float " + name + "(uint32_t i)");
}

Id encoded(Function& f, Id x, uint32_t type) {
  const std::string name = name_of(type) + "_of_f32";
  f.unit.helper(name, [&] { return make_encode(f.unit, type, name); });
  return f.call(memory_type(type), name, {x});
}
Id decoded(Function& f, Id bits, uint32_t type) {
  const std::string name = "f32_of_" + name_of(type);
  f.unit.helper(name, [&] { return make_decode(f.unit, type, name); });
  return f.call("float", name, {bits});
}

/// Converts f64 to f32 by rounding to odd, so that a later rounding to a type with at most 21 bits gives the correctly
/// rounded result.
Id rounded_to_odd(Function& f, Id x) {
  f.unit.helper("odd_f32", [&]() -> std::string {
    bits_of(f.unit, false);
    of_bits(f.unit, false);
    return "/* Rounds to one of the neighbours in f32: to the one whose significand is odd. */\n"
           "static inline float odd_f32(double x) {\n"
           "  const float nearest = (float)x;\n"
           "  const uint32_t i = bits_of_f32(nearest);\n"
           "  if ((i & 1) != 0 || nearest == x || x != x) return nearest;\n"
           "  return f32_of_bits(fabs(nearest) < fabs(x) ? i + 1 : i - 1);\n}\n";
  });
  return f.call("float", "odd_f32", {x});
}

/// Converts a float to an integer, toward zero. Values out of range are clamped; NaN becomes 0.
Id clamped(Function& f, Id x, uint32_t to) {
  const bool wide = f.type_of(x) == "double";
  const std::string name = name_of(to) + (wide ? "_of_f64" : "_of_f32");
  f.unit.helper(name, [&] {
    const int digits = type_bits(to) - (is_signed(to) ? 1 : 0);
    const std::string from = f.type_of(x), above = text_of_number(std::ldexp(1.0, digits), from);
    const uint64_t most = digits == 0 ? 0 : ~uint64_t{0} >> (64 - digits);
    const std::string top = std::to_string(most) + (!is_signed(to) && digits >= 32 ? "u" : "");
    const std::string rest = is_signed(to) ? "x > -" + above + " ? (" + value_type(to) +
                                                 ")x : x != x ? 0 : " + text_of_integer(-static_cast<int64_t>(most) - 1)
                                           : "x > 0 ? (" + value_type(to) + ")x : 0";
    return "static inline " + value_type(to) + " " + name + "(" + from + " x) {\n  return x >= " + above + " ? " + top +
           " : " + rest + ";\n}\n";
  });
  return f.call(value_type(to), name, {x});
}

Id real_to_real(Function& f, Id x, uint32_t from, uint32_t to) {
  const uint32_t to_kind = collet_type_kind(to);
  const bool from_float = collet_type_kind(from) == COLLET_KIND_FLOAT;
  if (from == to) return x;
  if (to_kind == COLLET_KIND_PRED) return f.value("bool", "$s0 != 0", {x}, Level::kCompare);
  if (!from_float && to_kind != COLLET_KIND_FLOAT) return wrapped(f, f.cast(value_type(to), x), to);
  if (!from_float) {
    if (!is_narrow_float(to)) return f.cast(value_type(to), x);
    if (width_of(from) <= 16) return rounded(f, to, {f.cast("float", x)}).v;
    if (width_of(from) == 64) {
      // Truncates to 53 significant bits, which f64 holds exactly. The last bit is set if a bit that was cut off was set.
      const std::string name = "cut_" + name_of(from);
      f.unit.helper(name, [&] {
        const std::string word = value_type(from);
        return "static inline " + word + " " + name + "(" + word + " x) {\n  const " + word + " most = (" + word +
               ")1 << 53;\n  if (" + (is_signed(from) ? "x >= -most && " : "") + "x <= most) return x;\n  return (" +
               word + ")((x & ~(" + word + ")0xfff) | ((x & 0xfff) != 0 ? 0x800 : 0));\n}\n";
      });
      x = f.call(value_type(from), name, {x});
    }
    return rounded(f, to, {rounded_to_odd(f, f.cast("double", x))}).v;
  }
  if (to_kind != COLLET_KIND_FLOAT) return clamped(f, x, to);
  if (!is_narrow_float(to)) return f.cast(value_type(to), x);
  return rounded(f, to, {from == COLLET_TYPE_F64 ? rounded_to_odd(f, x) : x}).v;
}

Val converted(Function& f, const Val& x, uint32_t from, uint32_t to) {
  const bool from_complex = collet_type_kind(from) == COLLET_KIND_COMPLEX;
  const bool to_complex = collet_type_kind(to) == COLLET_KIND_COMPLEX;
  if (from_complex && collet_type_kind(to) == COLLET_KIND_PRED) return val(!(F(&f, x.v) == 0) || !(F(&f, x.im) == 0));
  const Id re = real_to_real(f, x.v, half_type(from), half_type(to));
  if (!to_complex) return {re};
  return {re, from_complex ? real_to_real(f, x.im, half_type(from), half_type(to)) : F(&f, re).like(0).v};
}

Val scalar_convert(Function& f, const Op& op) {
  return converted(f, op.args[0], op.types[0], op.result_type);
}

Val scalar_bitcast(Function& f, const Op& op) {
  const uint32_t from = op.types[0], to = op.result_type;
  if (collet_type_kind(from) == COLLET_KIND_COMPLEX) return op.args[0];
  const auto is_wide_float = [](uint32_t t) { return t == COLLET_TYPE_F32 || t == COLLET_TYPE_F64; };
  Id stored = is_wide_float(from) ? bits(F(&f, op.args[0].v)).v : to_memory(f, op.args[0].v, from);
  if (!is_wide_float(to)) return {from_memory(f, f.cast(memory_type(to), stored), to)};
  stored = f.cast(unsigned_type(width_of(to)), stored);
  return {f.call(value_type(to), of_bits(f.unit, to == COLLET_TYPE_F64), {stored})};
}

Val scalar_reduce_precision(Function& f, const Op& op) {
  // Formats with infinities are rounded in their own bits, so that their subnormal numbers are rounded correctly.
  const uint32_t type = op.types[0];
  const bool narrow = is_narrow_float(type) && float_format(type).specials == FloatFormat::IEEE;
  const FloatFormat own = float_format(narrow || !is_narrow_float(type) ? type : uint32_t{COLLET_TYPE_F32});
  const F x = real(f, op);
  const Bits i = narrow ? Bits{&f, f.cast("uint32_t", encoded(f, x.v, type))} : bits(x);
  const auto k = [&](uint64_t c) { return i.like(static_cast<int64_t>(c)); };
  const int to_exponent = static_cast<int>(op.a), to_mantissa = static_cast<int>(op.b), m = own.mantissa_bits;
  const uint64_t sign_mask = uint64_t{1} << (m + own.exponent_bits), infinity = ((uint64_t{1} << own.exponent_bits) - 1)
                                                                                << m;
  const Bits sign = i & static_cast<int64_t>(sign_mask), magnitude = i & static_cast<int64_t>(sign_mask - 1);
  Bits r = magnitude;
  if (to_mantissa < m) {
    const int cut = m - to_mantissa;
    const Bits odd = Bits{&f, f.binary(i.type(), ">>", magnitude.v, f.constant("int", std::to_string(cut)))} & 1;
    r = magnitude + static_cast<int64_t>((uint64_t{1} << (cut - 1)) - 1) + odd;
    r = r & static_cast<int64_t>(sign_mask - (uint64_t{1} << cut));
  }
  if (to_exponent < own.exponent_bits) {
    const int to_bias = (1 << (to_exponent - 1)) - 1;
    r = choose(unsigned_compare(r, ">=", static_cast<uint64_t>(own.bias + to_bias + 1) << m), k(infinity), r);
    r = choose(unsigned_compare(r, "<", static_cast<uint64_t>(own.bias - to_bias + 1) << m), k(0), r);
  }
  r = select(is_nan(x), to_mantissa == 0 ? k(infinity) : magnitude, r);
  const Bits y = r | sign;
  return {narrow ? decoded(f, y.v, type) : from_bits(x, y).v};
}

Val scalar_stochastic_convert(Function& f, const Op& op) {
  const F x = real(f, op);
  const Id random = op.args[1].v;
  const int random_width = type_bits(op.types[1]);
  if (is_integer(op.result_type)) {
    // The magnitude is truncated, and increased by one if the fraction exceeds the random number.
    const F size = magnitude(x), whole = floor(size), fraction = size - whole;
    const F limit = F(&f, f.cast("double", fraction.v)) * std::ldexp(1.0, random_width);
    const Id up = f.binary("bool", "<", random, clamped(f, limit.v, op.types[1]));
    const F rounded = with_sign_of(select(Mask{&f, up}, whole + 1, whole), x);
    return {
        real_to_real(f, rounded.v, x.wide() ? uint32_t{COLLET_TYPE_F64} : uint32_t{COLLET_TYPE_F32}, op.result_type)};
  }
  // To a narrower float: the random bits are added below the last place, then the rest is cut off.
  const int to_mantissa = float_format(op.result_type).mantissa_bits, mantissa = x.wide() ? 52 : 23;
  if (to_mantissa >= mantissa) return {real_to_real(f, x.v, op.types[0], op.result_type)};
  const int cut = mantissa - to_mantissa;
  const Bits i = bits(x);
  Bits noise{&f, f.cast(i.type(), random)};
  if (random_width > cut && random_width <= (x.wide() ? 64 : 32))
    noise = {&f, f.binary(i.type(), ">>", noise.v, f.constant("int", std::to_string(random_width - cut)))};
  noise = noise & ((int64_t{1} << cut) - 1);
  const Bits sum = (i + noise) & ~((int64_t{1} << cut) - 1);
  const F y = select(is_nan(x), x, from_bits(x, sum));
  return {real_to_real(f, y.v, op.types[0], op.result_type)};
}

Val make_complex(Function&, const Op& op) {
  return {op.args[0].v, op.args[1].v};
}
Val select_op(Function& f, const Op& op) {
  const Val &x = op.args[1], &y = op.args[2];
  return {f.select(op.args[0].v, x.v, y.v), x.im == kNoId ? kNoId : f.select(op.args[0].v, x.im, y.im)};
}

// Complex numbers.

Val complex_abs(Function& f, const Op& op) {
  return val(call_function("hypot", real(f, op), F(&f, op.args[0].im)));
}
Val complex_add(Function& f, const Op& op) {
  return val(composite(f, op) + composite(f, op, 1));
}
Val complex_subtract(Function& f, const Op& op) {
  return val(composite(f, op) - composite(f, op, 1));
}
Val complex_multiply(Function& f, const Op& op) {
  return val(composite(f, op) * composite(f, op, 1));
}
Val complex_negate(Function& f, const Op& op) {
  return val(-composite(f, op));
}
Val complex_real(Function&, const Op& op) {
  return {op.args[0].v};
}
Val complex_imag(Function&, const Op& op) {
  return {op.args[0].im};
}
Val complex_compare(Function& f, const Op& op) {
  const C x = composite(f, op), y = composite(f, op, 1);
  const Mask equal = x.re == y.re && x.im == y.im;
  return val(op.a == COLLET_DIRECTION_EQ ? equal : !equal);
}
/// The lexicographically greater or lesser number.
template <bool kMax>
Val complex_extreme(Function& f, const Op& op) {
  const C x = composite(f, op), y = composite(f, op, 1);
  const Mask beats = kMax ? x.re > y.re : x.re < y.re, then = kMax ? x.im > y.im : x.im < y.im;
  return val(elementary::choose(beats || (x.re == y.re && then), x, y));
}
// Defines functions of one or of two complex numbers.
#define COLLET_COMPLEX1(op_name, name)                 \
  Val op_name(Function& f, const Op& op) {             \
    return val(call_function(name, composite(f, op))); \
  }
#define COLLET_COMPLEX2(op_name, name)                                      \
  Val op_name(Function& f, const Op& op) {                                  \
    return val(call_function(name, composite(f, op), composite(f, op, 1))); \
  }
COLLET_COMPLEX2(complex_divide, "divide")
COLLET_COMPLEX2(complex_atan2, "atan2")
COLLET_COMPLEX2(complex_power, "pow")
COLLET_COMPLEX1(complex_exp, "exp")
COLLET_COMPLEX1(complex_expm1, "expm1")
COLLET_COMPLEX1(complex_log, "log")
COLLET_COMPLEX1(complex_log1p, "log1p")
COLLET_COMPLEX1(complex_sqrt, "sqrt")
COLLET_COMPLEX1(complex_sine, "sin")
COLLET_COMPLEX1(complex_cosine, "cos")
COLLET_COMPLEX1(complex_sinh, "sinh")
COLLET_COMPLEX1(complex_cosh, "cosh")
COLLET_COMPLEX1(complex_tanh, "tanh")
COLLET_COMPLEX1(complex_tan, "tan")
COLLET_COMPLEX1(complex_asin, "asin")
COLLET_COMPLEX1(complex_acos, "acos")
COLLET_COMPLEX1(complex_asinh, "asinh")
COLLET_COMPLEX1(complex_acosh, "acosh")
COLLET_COMPLEX1(complex_atanh, "atanh")
COLLET_COMPLEX1(complex_logistic, "logistic")
COLLET_COMPLEX1(complex_rsqrt, "rsqrt")
COLLET_COMPLEX1(complex_sign, "sign")

constexpr Emit none = nullptr;
constexpr Emit pred_clamp = clamp<bit_and, bit_or>;
constexpr Emit int_clamp = clamp<int_extreme<false>, int_extreme<true>>;
constexpr Emit float_clamp = clamp<float_extreme<false>, float_extreme<true>>;

/// A row of kernel/elementwise.def.
struct Row {
  uint32_t opcode;
  Emit pred, integer, real, complex;
  bool rounds;
};
constexpr Row kRows[] = {
#define COLLET_ELEMENTWISE(OPCODE, pred, integer, real, complex, rounds, expensive) \
  {COLLET_OP_##OPCODE, pred, integer, real, complex, rounds},
#include "sdk/codegen/kernel/elementwise.def"
#undef COLLET_ELEMENTWISE
};

const Row& row_of(uint32_t opcode) {
  size_t at = 0;
  while (kRows[at].opcode != opcode) ++at;  // the verifier accepts no other ops
  return kRows[at];
}

}  // namespace

std::string value_type(uint32_t type) {
  if (type == COLLET_TYPE_PRED) return "bool";
  if (is_integer(type)) return (is_signed(type) ? "int" : "uint") + std::to_string(width_of(type)) + "_t";
  return half_type(type) == COLLET_TYPE_F64 ? "double" : "float";
}

std::string memory_type(uint32_t type) {
  return type == COLLET_TYPE_PRED || is_narrow_float(type) ? unsigned_type(width_of(type)) : value_type(type);
}

Id from_memory(Function& f, Id stored, uint32_t type) {
  if (type == COLLET_TYPE_PRED) return f.value("bool", "$s0 != 0", {stored}, Level::kCompare);
  return is_narrow_float(type) ? decoded(f, stored, type) : stored;
}

Id to_memory(Function& f, Id value, uint32_t type) {
  return is_narrow_float(type) ? encoded(f, value, type) : value;
}

Val literal(Function& f, uint32_t type, const std::array<uint64_t, 2>& bits) {
  const auto number = [&](uint64_t raw) {
    const uint32_t half = half_type(type);
    if (half == COLLET_TYPE_F64 || half == COLLET_TYPE_F32) {
      const bool wide = half == COLLET_TYPE_F64;
      const double x = wide ? std::bit_cast<double>(raw) : std::bit_cast<float>(static_cast<uint32_t>(raw));
      if (!std::isnan(x)) return f.number(x, value_type(type));
      const uint64_t all = wide ? raw : raw & 0xffffffff;
      return f.constant(value_type(type), of_bits(f.unit, wide) + "(" + std::to_string(all) + "u)");
    }
    const double x = decode_float(raw, float_format(type));
    if (!std::isnan(x)) return f.number(x, "float");
    return decoded(f, f.constant("uint32_t", std::to_string(raw & 0xffff) + "u"), type);
  };
  switch (collet_type_kind(type)) {
    case COLLET_KIND_PRED:
      return {f.constant("bool", (bits[0] & 0xff) != 0 ? "true" : "false")};
    case COLLET_KIND_FLOAT:
      return {number(bits[0])};
    case COLLET_KIND_COMPLEX:
      return {number(bits[0]), number(type == COLLET_TYPE_C64 ? bits[0] >> 32 : bits[1])};
    default: {
      const int unused = 64 - width_of(type);
      const uint64_t high = bits[0] << unused;
      return {integer(f, type,
                      is_signed(type) ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused))};
    }
  }
}

Val rounded(Function& f, uint32_t type, const Val& x) {
  return is_narrow_float(type) ? Val{decoded(f, encoded(f, x.v, type), type)} : x;
}

Val scalar_op(Function& f, const Expr& e, const std::vector<Val>& args, const std::vector<uint32_t>& types) {
  const Row& row = row_of(e.opcode);
  const Val r = of_kind(row, types[0])(f, {e.opcode, e.type, types, args, e.a, e.b});
  if (row.rounds && is_narrow_float(e.type)) return rounded(f, e.type, r);
  if (is_integer(e.type) && e.opcode != COLLET_OP_CONVERT) return {wrapped(f, r.v, e.type)};
  return r;
}

Val combine(Function& f, uint32_t combine, uint32_t type, const Val& x, const Val& y) {
  if (combine == COLLET_COMBINE_FIRST) return x;
  if (combine == COLLET_COMBINE_SECOND) return y;
  const uint32_t types[2] = {type, type};
  const Val args[2] = {x, y};
  const uint32_t opcode = combine_opcode(combine);
  const Val r = of_kind(row_of(opcode), type)(f, {opcode, type, types, args});
  return is_integer(type) ? Val{wrapped(f, r.v, type)} : r;
}

Val identity(Function& f, uint32_t combine, uint32_t type) {
  const uint32_t kind = collet_type_kind(type);
  const bool has_floats = kind == COLLET_KIND_FLOAT || kind == COLLET_KIND_COMPLEX;
  const auto number = [&](double x) { return f.number(x, value_type(type)); };
  const Id zero = kind == COLLET_KIND_COMPLEX ? number(0) : kNoId;
  const int digits = type == COLLET_TYPE_PRED ? 1 : type_bits(type) - (is_signed(type) ? 1 : 0);
  const uint64_t most = digits == 0 ? 0 : ~uint64_t{0} >> (64 - digits);
  const auto exact = [&](int64_t x) -> Val {
    if (type == COLLET_TYPE_PRED) return {f.constant("bool", x != 0 ? "true" : "false")};
    return {integer(f, type, x)};
  };
  switch (combine) {
    case COLLET_COMBINE_MULTIPLY:
      return has_floats ? Val{number(1), zero} : exact(1);
    case COLLET_COMBINE_MINIMUM:
      return has_floats ? Val{number(elementary::kInfinity)} : exact(static_cast<int64_t>(most));
    case COLLET_COMBINE_MAXIMUM:
      return has_floats ? Val{number(-elementary::kInfinity)}
                        : exact(is_signed(type) ? -static_cast<int64_t>(most) - 1 : 0);
    case COLLET_COMBINE_AND:
      return exact(is_signed(type) ? -1 : static_cast<int64_t>(most));
    case COLLET_COMBINE_ADD:
      return has_floats ? Val{number(-0.0), zero == kNoId ? kNoId : number(-0.0)} : exact(0);
    default:
      return has_floats ? Val{number(0), zero} : exact(0);
  }
}

}  // namespace collet::codegen::source
