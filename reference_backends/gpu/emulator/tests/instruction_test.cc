// SPDX-License-Identifier: Apache-2.0
// Tests each instruction by itself on special and random numbers, and compares with the host's arithmetic.
#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>

#include "reference_backends/gpu/emulator/tests/gpu.h"
#include "reference_backends/gpu/emulator/tests/ptxas.h"

namespace collet::gpu::testing_only {
namespace {

using U = uint64_t;
__extension__ typedef unsigned __int128 U128;

float f32(U v) {
  return std::bit_cast<float>(static_cast<uint32_t>(v));
}
double f64(U v) {
  return std::bit_cast<double>(v);
}
U of(float v) {
  return std::bit_cast<uint32_t>(v);
}
U of(double v) {
  return std::bit_cast<U>(v);
}
int32_t s32(U v) {
  return static_cast<int32_t>(v);
}
uint32_t u32(U v) {
  return static_cast<uint32_t>(v);
}
int64_t s64(U v) {
  return static_cast<int64_t>(v);
}
int16_t s16(U v) {
  return static_cast<int16_t>(v);
}
U low(int64_t v) {
  return static_cast<uint32_t>(v);
}

/// Returns the value of an f16 or bf16 number from a table of all values, independently of the emulator's conversions.
double half_value(uint32_t bits, bool is_bf16) {
  const int mantissa = is_bf16 ? 7 : 10, bias = is_bf16 ? 127 : 15, top = is_bf16 ? 255 : 31;
  const int exponent = static_cast<int>(bits >> mantissa) & top;
  const double fraction = bits & ((1u << mantissa) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == top) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
  return sign * std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
}

/// Returns the nearest f16 or bf16 number, which is found by bisection over all of them; ties go to the even one.
uint32_t nearest_half(double value, bool is_bf16) {
  if (std::isnan(value)) return 0x7fff;
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  const uint32_t infinity = is_bf16 ? 0x7f80 : 0x7c00;
  uint32_t below = 0, above = infinity;  // values increase with their bits
  while (above - below > 1) {
    const uint32_t middle = (below + above) / 2;
    (half_value(middle, is_bf16) <= magnitude ? below : above) = middle;
  }
  if (half_value(below, is_bf16) == magnitude) return sign | below;
  const double end =
      above == infinity ? 2 * half_value(below, is_bf16) - half_value(below - 1, is_bf16) : half_value(above, is_bf16);
  const double to_low = magnitude - half_value(below, is_bf16), to_high = end - magnitude;
  if (std::isinf(magnitude)) return sign | infinity;
  return sign | (to_low < to_high || (to_low == to_high && !(below & 1)) ? below : above);
}

double f8_value(uint32_t bits, bool is_e4m3) {
  if (!is_e4m3) return half_value((bits & 0xff) << 8, false);
  const int exponent = static_cast<int>(bits >> 3 & 15);
  const double fraction = bits & 7, sign = bits & 0x80 ? -1 : 1;
  if ((bits & 0x7f) == 0x7f) return NAN;
  return sign * (exponent ? std::ldexp(1 + fraction / 8, exponent - 7) : std::ldexp(fraction, -9));
}

/// Returns the nearest finite f8 number of all; ties go to the even one.
uint32_t nearest_f8(double value, bool is_e4m3) {
  if (std::isnan(value)) return 0x7f;
  const uint32_t largest = is_e4m3 ? 0x7e : 0x7b;
  const double magnitude = std::min(std::fabs(value), f8_value(largest, is_e4m3));
  uint32_t best = 0;
  for (uint32_t bits = 1; bits <= largest; ++bits) {
    const double now = std::fabs(f8_value(bits, is_e4m3) - magnitude),
                 before = std::fabs(f8_value(best, is_e4m3) - magnitude);
    if (now < before || (now == before && !(bits & 1))) best = bits;
  }
  return best | (std::signbit(value) ? 0x80 : 0);
}

/// Computes with the low and the high 16 bits apart.
U each_half(U a, U b, U (*f)(U, U)) {
  return (f(a & 0xffff, b & 0xffff) & 0xffff) | (f(a >> 16 & 0xffff, b >> 16 & 0xffff) & 0xffff) << 16;
}

/// An instruction to test: its text with $d, $a, $b, $c for registers, the types of those registers, and a function
/// that computes the expected result.
struct Case {
  const char* text;
  const char* types;  ///< types of the registers in the order "d a b c"
  std::function<U(U, U, U)> expected;
  /// Largest error in units in the last place of f32; 0: the bits must be equal, except that any NaN equals any other.
  double tolerance = 0;
  const char* group = "all";
};

template <typename T>
T rounded(int mode, const std::function<T()>& f) {
  std::fesetround(mode);
  volatile T r = f();
  std::fesetround(FE_TONEAREST);
  return r;
}

U flush(U v) {
  return (v & 0x7f800000) ? v : v & 0x80000000;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      // Integers.
      {"add.s32 $d, $a, $b;", "b32 b32 b32", [](U a, U b, U) { return low(s64(a + b)); }},
      {"add.sat.s32 $d, $a, $b;", "b32 b32 b32",
       [](U a, U b, U) { return low(std::clamp<int64_t>(int64_t{s32(a)} + s32(b), INT32_MIN, INT32_MAX)); }},
      {"add.u16 $d, $a, $b;", "b16 b16 b16", [](U a, U b, U) { return (a + b) & 0xffff; }},
      {"sub.s64 $d, $a, $b;", "b64 b64 b64", [](U a, U b, U) { return a - b; }},
      {"{ .reg .b32 t; add.cc.u32 t, $a, $b; addc.u32 $d, $c, 0; }", "b32 b32 b32 b32",
       [](U a, U b, U c) { return low(s64(u32(c) + ((U{u32(a)} + u32(b)) >> 32))); }},
      {"{ .reg .b32 t; sub.cc.u32 t, $a, $b; subc.u32 $d, $c, 0; }", "b32 b32 b32 b32",
       [](U a, U b, U c) { return low(s64(u32(c) - (u32(a) < u32(b)))); }},
      {"mul.lo.s32 $d, $a, $b;", "b32 b32 b32", [](U a, U b, U) { return low(s64(u32(a) * u32(b))); }},
      {"mul.hi.s32 $d, $a, $b;", "b32 b32 b32", [](U a, U b, U) { return low(int64_t{s32(a)} * s32(b) >> 32); }},
      {"mul.hi.u64 $d, $a, $b;", "b64 b64 b64",
       [](U a, U b, U) { return static_cast<U>(static_cast<U128>(a) * b >> 64); }},
      {"mul.wide.s32 $d, $a, $b;", "b64 b32 b32", [](U a, U b, U) { return static_cast<U>(int64_t{s32(a)} * s32(b)); }},
      {"mul.wide.u16 $d, $a, $b;", "b32 b16 b16", [](U a, U b, U) { return (a & 0xffff) * (b & 0xffff); }},
      {"mad.lo.u32 $d, $a, $b, $c;", "b32 b32 b32 b32", [](U a, U b, U c) { return low(s64(u32(a) * u32(b) + u32(c))); }},
      {"mad.wide.u32 $d, $a, $b, $c;", "b64 b32 b32 b64", [](U a, U b, U c) { return U{u32(a)} * u32(b) + c; }},
      {"mad.hi.s32 $d, $a, $b, $c;", "b32 b32 b32 b32",
       [](U a, U b, U c) { return low((int64_t{s32(a)} * s32(b) >> 32) + s32(c)); }},
      {"sad.s32 $d, $a, $b, $c;", "b32 b32 b32 b32",
       [](U a, U b, U c) { return low(s64(u32(c) + (s32(a) < s32(b) ? u32(b) - u32(a) : u32(a) - u32(b)))); }},
      {"div.s32 $d, $a, $b;", "b32 b32 b32",
       [](U a, U b, U) { return s32(b) ? low(int64_t{s32(a)} / s32(b)) : U{UINT32_MAX}; }},
      {"rem.u64 $d, $a, $b;", "b64 b64 b64", [](U a, U b, U) { return b ? a % b : a; }},
      {"rem.s32 $d, $a, $b;", "b32 b32 b32", [](U a, U b, U) { return s32(b) ? low(int64_t{s32(a)} % s32(b)) : a & UINT32_MAX; }},
      {"abs.s32 $d, $a;", "b32 b32", [](U a, U, U) { return low(std::abs(int64_t{s32(a)})); }},
      {"neg.s64 $d, $a;", "b64 b64", [](U a, U, U) { return 0 - a; }},
      {"min.s32 $d, $a, $b;", "b32 b32 b32", [](U a, U b, U) { return low(std::min(s32(a), s32(b))); }},
      {"max.u64 $d, $a, $b;", "b64 b64 b64", [](U a, U b, U) { return std::max(a, b); }},
      {"min.s16 $d, $a, $b;", "b16 b16 b16", [](U a, U b, U) { return U{static_cast<uint16_t>(std::min(s16(a), s16(b)))}; }},
      {"popc.b64 $d, $a;", "b32 b64", [](U a, U, U) { return static_cast<U>(std::popcount(a)); }},
      {"clz.b32 $d, $a;", "b32 b32", [](U a, U, U) { return static_cast<U>(std::countl_zero(u32(a))); }},
      {"bfind.u32 $d, $a;", "b32 b32", [](U a, U, U) { return low(31 - std::countl_zero(u32(a))); }},
      {"bfind.s32 $d, $a;", "b32 b32", [](U a, U, U) { return low(31 - std::countl_zero(s32(a) < 0 ? ~u32(a) : u32(a))); }},
      {"bfind.shiftamt.u64 $d, $a;", "b32 b64",
       [](U a, U, U) { return a ? static_cast<U>(std::countl_zero(a)) : U{UINT32_MAX}; }},
      {"brev.b32 $d, $a;", "b32 b32",
       [](U a, U, U) {
         U r = 0;
         for (int i = 0; i < 32; ++i) r |= (a >> i & 1) << (31 - i);
         return r;
       }},
      {"bfe.u32 $d, $a, 5, 9;", "b32 b32", [](U a, U, U) { return u32(a) >> 5 & 511; }},
      {"bfe.s32 $d, $a, 28, 9;", "b32 b32", [](U a, U, U) { return low(s32(a) >> 28); }},
      {"bfe.s32 $d, $a, 5, 9;", "b32 b32", [](U a, U, U) { return low(s32(u32(a) << 18) >> 23); }},
      {"bfe.s64 $d, $a, 40, 0;", "b64 b64", [](U, U, U) { return U{0}; }},
      {"bfi.b32 $d, $a, $b, 4, 8;", "b32 b32 b32", [](U a, U b, U) { return (u32(b) & ~0xff0u) | (u32(a) & 0xff) << 4; }},
      {"dp4a.s32.s32 $d, $a, $b, $c;", "b32 b32 b32 b32",
       [](U a, U b, U c) {
         int64_t sum = s32(c);
         for (int i = 0; i < 4; ++i) sum += static_cast<int8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i));
         return low(sum);
       }},
      {"and.b64 $d, $a, $b;", "b64 b64 b64", [](U a, U b, U) { return a & b; }},
      {"or.b16 $d, $a, $b;", "b16 b16 b16", [](U a, U b, U) { return (a | b) & 0xffff; }},
      {"xor.b32 $d, $a, $b;", "b32 b32 b32", [](U a, U b, U) { return u32(a ^ b); }},
      {"not.b32 $d, $a;", "b32 b32", [](U a, U, U) { return u32(~a); }},
      {"cnot.b32 $d, $a;", "b32 b32", [](U a, U, U) { return U{u32(a) == 0}; }},
      {"lop3.b32 $d, $a, $b, $c, 0xE8;", "b32 b32 b32 b32", [](U a, U b, U c) { return u32((a & b) | (b & c) | (a & c)); }},
      {"shl.b32 $d, $a, $b;", "b32 b32 b32", [](U a, U b, U) { return u32(b) < 32 ? u32(a << u32(b)) : 0; }},
      {"shr.u64 $d, $a, $b;", "b64 b64 b32", [](U a, U b, U) { return u32(b) < 64 ? a >> u32(b) : 0; }},
      {"shr.s32 $d, $a, $b;", "b32 b32 b32", [](U a, U b, U) { return low(s32(a) >> std::min(u32(b), 31u)); }},
      {"shr.s16 $d, $a, 20;", "b16 b16", [](U a, U, U) { return U{static_cast<uint16_t>(s16(a) >> 15)}; }},
      {"shf.l.wrap.b32 $d, $a, $b, $c;", "b32 b32 b32 b32",
       [](U a, U b, U c) { return u32(((U{u32(b)} << 32 | u32(a)) << (c & 31)) >> 32); }},
      {"shf.r.clamp.b32 $d, $a, $b, $c;", "b32 b32 b32 b32",
       [](U a, U b, U c) { return u32((U{u32(b)} << 32 | u32(a)) >> std::min(u32(c), 32u)); }},
      {"prmt.b32 $d, $a, $b, 0x5410;", "b32 b32 b32", [](U a, U b, U) { return u32((a & 0xffff) | (b & 0xffff) << 16); }},
      {"prmt.b32 $d, $a, $b, 0x00f8;", "b32 b32 b32",
       [](U a, U b, U) {
         const U sign0 = a & 0x80 ? 0xff : 0, sign7 = b & 0x80000000 ? 0xff : 0;
         return sign0 | sign7 << 8 | (a & 0xff) << 16 | (a & 0xff) << 24;
       }},
      {"{ .reg .pred p; setp.lt.s32 p, $a, $b; selp.b32 $d, $a, $b, p; }", "b32 b32 b32",
       [](U a, U b, U) { return low(std::min(s32(a), s32(b))); }},
      {"{ .reg .pred p, q; setp.hi.and.u32 p|q, $a, $b, 1; selp.b32 $d, 1, 0, q; }", "b32 b32 b32",
       [](U a, U b, U) { return U{u32(a) <= u32(b)}; }},
      {"set.le.u32.f32 $d, $a, $b;", "b32 f32 f32", [](U a, U b, U) { return f32(a) <= f32(b) ? U{UINT32_MAX} : 0; }},
      {"set.ltu.f32.f32 $d, $a, $b;", "f32 f32 f32", [](U a, U b, U) { return of(f32(a) >= f32(b) ? 0.f : 1.f); }},
      {"{ .reg .pred p; setp.neu.f64 p, $a, $b; selp.b32 $d, 1, 0, p; }", "b32 f64 f64",
       [](U a, U b, U) { return U{f64(a) != f64(b)}; }},
      {"{ .reg .pred p; setp.nan.f32 p, $a, $b; selp.b32 $d, 1, 0, p; }", "b32 f32 f32",
       [](U a, U b, U) { return U{std::isnan(f32(a)) || std::isnan(f32(b))}; }},
      {"slct.b32.s32 $d, $a, $b, $c;", "b32 b32 b32 b32", [](U a, U b, U c) { return u32(s32(c) >= 0 ? a : b); }},
      {"mov.b64 $d, {$a, $b};", "b64 b32 b32", [](U a, U b, U) { return u32(a) | U{u32(b)} << 32; }},
      {"{ .reg .b32 x, y; mov.b64 {x, y}, $a; mov.b32 $d, y; }", "b32 b64", [](U a, U, U) { return a >> 32; }},
      {"{ .reg .b16 x, y; mov.b32 {x, y}, $a; mov.b32 $d, {y, x}; }", "b32 b32", [](U a, U, U) { return U{u32(a) >> 16 | u32(a) << 16}; }},
      // f32 and f64.
      {"add.rn.f32 $d, $a, $b;", "f32 f32 f32", [](U a, U b, U) { return of(f32(a) + f32(b)); }},
      {"add.rz.f32 $d, $a, $b;", "f32 f32 f32",
       [](U a, U b, U) { return of(rounded<float>(FE_TOWARDZERO, [&] { volatile float x = f32(a), y = f32(b); return x + y; })); }},
      {"sub.rp.f64 $d, $a, $b;", "f64 f64 f64",
       [](U a, U b, U) { return of(rounded<double>(FE_UPWARD, [&] { volatile double x = f64(a), y = f64(b); return x - y; })); }},
      {"add.ftz.f32 $d, $a, $b;", "f32 f32 f32", [](U a, U b, U) { return flush(of(f32(flush(a)) + f32(flush(b)))); }},
      {"mul.rn.f32 $d, $a, $b;", "f32 f32 f32", [](U a, U b, U) { return of(f32(a) * f32(b)); }},
      {"mul.sat.f32 $d, $a, $b;", "f32 f32 f32",
       [](U a, U b, U) { const float r = f32(a) * f32(b); return of(r > 0 ? std::min(r, 1.f) : 0.f); }},
      {"fma.rn.f32 $d, $a, $b, $c;", "f32 f32 f32 f32", [](U a, U b, U c) { return of(std::fma(f32(a), f32(b), f32(c))); }},
      {"fma.rn.f64 $d, $a, $b, $c;", "f64 f64 f64 f64", [](U a, U b, U c) { return of(std::fma(f64(a), f64(b), f64(c))); }},
      {"{ .reg .f32 t; mul.rn.f32 t, $a, $b; add.rn.f32 $d, t, $c; }", "f32 f32 f32 f32",
       [](U a, U b, U c) { volatile float t = f32(a) * f32(b); return of(t + f32(c)); }},
      {"div.rn.f32 $d, $a, $b;", "f32 f32 f32", [](U a, U b, U) { return of(f32(a) / f32(b)); }},
      {"div.rn.f64 $d, $a, $b;", "f64 f64 f64", [](U a, U b, U) { return of(f64(a) / f64(b)); }},
      {"rcp.rn.f32 $d, $a;", "f32 f32", [](U a, U, U) { return of(1.f / f32(a)); }},
      {"sqrt.rn.f32 $d, $a;", "f32 f32", [](U a, U, U) { return of(std::sqrt(f32(a))); }},
      {"sqrt.rn.f64 $d, $a;", "f64 f64", [](U a, U, U) { return of(std::sqrt(f64(a))); }},
      {"rsqrt.approx.f32 $d, $a;", "f32 f32", [](U a, U, U) { return of(static_cast<float>(1 / std::sqrt(double{f32(a)}))); }, 2},
      {"ex2.approx.f32 $d, $a;", "f32 f32", [](U a, U, U) { return of(std::exp2(f32(a))); }, 2},
      {"ex2.approx.ftz.f32 $d, $a;", "f32 f32", [](U a, U, U) { return flush(of(std::exp2(f32(flush(a))))); }, 2},
      {"lg2.approx.f32 $d, $a;", "f32 f32", [](U a, U, U) { return of(std::log2(f32(a))); }, 2},
      {"tanh.approx.f32 $d, $a;", "f32 f32", [](U a, U, U) { return of(std::tanh(f32(a))); }, 2},
      {"sin.approx.f32 $d, $a;", "f32 f32", [](U a, U, U) { return of(std::sin(f32(a))); }, 2},
      {"cos.approx.f32 $d, $a;", "f32 f32", [](U a, U, U) { return of(std::cos(f32(a))); }, 2},
      {"abs.f32 $d, $a;", "f32 f32", [](U a, U, U) { return u32(a) & 0x7fffffff; }},
      {"neg.f64 $d, $a;", "f64 f64", [](U a, U, U) { return a ^ U{1} << 63; }},
      {"copysign.f32 $d, $a, $b;", "f32 f32 f32", [](U a, U b, U) { return (u32(a) & 0x80000000) | (u32(b) & 0x7fffffff); }},
      {"{ .reg .pred p; testp.subnormal.f32 p, $a; selp.b32 $d, 1, 0, p; }", "b32 f32",
       [](U a, U, U) { return U{std::fpclassify(f32(a)) == FP_SUBNORMAL}; }},
      {"min.f32 $d, $a, $b;", "f32 f32 f32",
       [](U a, U b, U) {
         const float x = f32(a), y = f32(b);
         if (x == 0 && y == 0) return std::signbit(x) ? of(x) : of(y);
         return of(std::fmin(x, y));
       }},
      {"max.NaN.f32 $d, $a, $b;", "f32 f32 f32",
       [](U a, U b, U) {
         const float x = f32(a), y = f32(b);
         if (std::isnan(x) || std::isnan(y)) return U{0x7fffffff};
         if (x == 0 && y == 0) return std::signbit(x) ? of(y) : of(x);
         return of(std::fmax(x, y));
       }},
      // Conversions.
      {"cvt.s64.s32 $d, $a;", "b64 b32", [](U a, U, U) { return static_cast<U>(int64_t{s32(a)}); }},
      {"cvt.u32.u8 $d, $a;", "b32 b32", [](U a, U, U) { return a & 0xff; }},
      {"cvt.s32.s8 $d, $a;", "b32 b32", [](U a, U, U) { return low(static_cast<int8_t>(a)); }},
      {"cvt.sat.u8.s32 $d, $a;", "b32 b32", [](U a, U, U) { return static_cast<U>(std::clamp(s32(a), 0, 255)); }},
      {"cvt.rn.f32.s32 $d, $a;", "f32 b32", [](U a, U, U) { return of(static_cast<float>(s32(a))); }},
      {"cvt.rn.f32.u64 $d, $a;", "f32 b64", [](U a, U, U) { return of(static_cast<float>(a)); }},
      {"cvt.rz.f32.u64 $d, $a;", "f32 b64",
       [](U a, U, U) {
         const int drop = std::max(0, 40 - std::countl_zero(a | 1));
         return of(static_cast<float>(a >> drop << drop));
       }},
      {"cvt.rn.f64.s64 $d, $a;", "f64 b64", [](U a, U, U) { return of(static_cast<double>(s64(a))); }},
      {"cvt.rzi.s32.f32 $d, $a;", "b32 f32",
       [](U a, U, U) {
         const float v = f32(a);
         if (std::isnan(v)) return U{0};
         return low(v >= 0x1p31f ? INT32_MAX : v < -0x1p31f ? INT32_MIN : static_cast<int32_t>(v));
       }},
      {"cvt.rni.s64.f32 $d, $a;", "b64 f32",
       [](U a, U, U) {
         const float v = f32(a);
         if (std::isnan(v)) return U{1} << 63;
         return v >= 0x1p63f ? U{INT64_MAX} : v < -0x1p63f ? U{1} << 63 : static_cast<U>(std::llrint(v));
       }},
      {"cvt.rzi.u32.f64 $d, $a;", "b32 f64",
       [](U a, U, U) {
         const double v = f64(a);
         if (std::isnan(v)) return U{0x80000000};
         return v >= 0x1p32 ? U{UINT32_MAX} : v <= 0 ? 0 : static_cast<U>(v);
       }},
      {"cvt.rmi.f32.f32 $d, $a;", "f32 f32", [](U a, U, U) { return of(std::floor(f32(a))); }},
      {"cvt.rn.f32.f64 $d, $a;", "f32 f64", [](U a, U, U) { return of(static_cast<float>(f64(a))); }},
      {"cvt.f64.f32 $d, $a;", "f64 f32", [](U a, U, U) { return of(double{f32(a)}); }},
      {"cvt.rn.f16.f32 $d, $a;", "b16 f32", [](U a, U, U) { return U{nearest_half(f32(a), false)}; }},
      {"cvt.rn.f16.f64 $d, $a;", "b16 f64", [](U a, U, U) { return U{nearest_half(f64(a), false)}; }},
      {"cvt.rn.bf16.f32 $d, $a;", "b16 f32", [](U a, U, U) { return U{nearest_half(f32(a), true)}; }},
      {"cvt.f32.f16 $d, $a;", "f32 b16", [](U a, U, U) { return of(static_cast<float>(half_value(a & 0xffff, false))); }},
      {"cvt.f32.bf16 $d, $a;", "f32 b16", [](U a, U, U) { return of(static_cast<float>(half_value(a & 0xffff, true))); }},
      {"cvt.rn.f16x2.f32 $d, $a, $b;", "b32 f32 f32",
       [](U a, U b, U) { return U{nearest_half(f32(b), false)} | U{nearest_half(f32(a), false)} << 16; }},
      {"cvt.rn.relu.bf16x2.f32 $d, $a, $b;", "b32 f32 f32",
       [](U a, U b, U) {
         const auto half = [](float v) { return v < 0 || v == 0 ? 0 : nearest_half(v, true); };
         return U{half(f32(b))} | U{half(f32(a))} << 16;
       }},
      {"cvt.rna.tf32.f32 $d, $a;", "b32 f32",
       [](U a, U, U) { return std::isnan(f32(a)) ? U{0x7fffffff} : std::isinf(f32(a)) ? a : ((u32(a) + 0x1000) & 0xffffe000); }},
      {"cvt.rn.f16.s32 $d, $a;", "b16 b32", [](U a, U, U) { return U{nearest_half(s32(a), false)}; }},
      // f16 and bf16.
      {"add.rn.f16 $d, $a, $b;", "b16 b16 b16",
       [](U a, U b, U) { return U{nearest_half(half_value(a & 0xffff, false) + half_value(b & 0xffff, false), false)}; }},
      {"mul.rn.f16 $d, $a, $b;", "b16 b16 b16",
       [](U a, U b, U) { return U{nearest_half(half_value(a & 0xffff, false) * half_value(b & 0xffff, false), false)}; }},
      {"fma.rn.bf16 $d, $a, $b, $c;", "b16 b16 b16 b16",
       [](U a, U b, U c) {
         // long double with its 64 bits is exact if the exponents are close; otherwise the smaller summand only breaks
         // ties.
         const long double p = static_cast<long double>(half_value(a & 0xffff, true)) * half_value(b & 0xffff, true);
         const long double s = p + half_value(c & 0xffff, true);
         const auto d = static_cast<double>(s);
         if (s != d && !std::isnan(d) && !std::isinf(d)) {
           const double odd = std::bit_cast<U>(d) & 1 ? d : std::nextafter(d, s > d ? INFINITY : -INFINITY);
           return U{nearest_half(odd, true)};
         }
         return U{nearest_half(d, true)};
       }},
      {"neg.bf16x2 $d, $a;", "b32 b32", [](U a, U, U) { return u32(a) ^ 0x80008000u; }},
      {"sub.f16x2 $d, $a, $b;", "b32 b32 b32",
       [](U a, U b, U) {
         U r = 0;
         for (int i = 0; i < 2; ++i) {
           r |= U{nearest_half(half_value(a >> (16 * i) & 0xffff, false) - half_value(b >> (16 * i) & 0xffff, false), false)} << (16 * i);
         }
         return r;
       }},
      {"max.NaN.f16 $d, $a, $b;", "b16 b16 b16",
       [](U a, U b, U) {
         const double x = half_value(a & 0xffff, false), y = half_value(b & 0xffff, false);
         if (std::isnan(x) || std::isnan(y)) return U{0x7fff};
         if (x == 0 && y == 0) return (a & b) & 0xffff;
         return (x > y ? a : b) & 0xffff;
       }},
      {"{ .reg .pred p; setp.lt.f16 p, $a, $b; selp.b32 $d, 1, 0, p; }", "b32 b16 b16",
       [](U a, U b, U) { return U{half_value(a & 0xffff, false) < half_value(b & 0xffff, false)}; }},
      // Pairs of integers of 16 bits.
      {"add.u16x2 $d, $a, $b;", "b32 b32 b32",
       [](U a, U b, U) { return each_half(a, b, [](U x, U y) { return x + y; }); }, 0, "pairs"},
      {"max.u16x2 $d, $a, $b;", "b32 b32 b32",
       [](U a, U b, U) { return each_half(a, b, [](U x, U y) { return std::max(x, y); }); }, 0, "pairs"},
      {"min.s16x2 $d, $a, $b;", "b32 b32 b32",
       [](U a, U b, U) { return each_half(a, b, [](U x, U y) { return U(uint16_t(std::min(s16(x), s16(y)))); }); }, 0, "pairs"},
      {"max.relu.s16x2 $d, $a, $b;", "b32 b32 b32",
       [](U a, U b, U) {
         return each_half(a, b, [](U x, U y) { return U(uint16_t(std::max({s16(x), s16(y), int16_t{0}}))); });
       }, 0, "pairs"},
      // The 8-bit floating-point formats.
      {"cvt.rn.satfinite.e4m3x2.f32 $d, $a, $b;", "b16 f32 f32",
       [](U a, U b, U) { return U{nearest_f8(f32(b), true)} | U{nearest_f8(f32(a), true)} << 8; }, 0, "f8"},
      {"cvt.rn.satfinite.e5m2x2.f32 $d, $a, $b;", "b16 f32 f32",
       [](U a, U b, U) { return U{nearest_f8(f32(b), false)} | U{nearest_f8(f32(a), false)} << 8; }, 0, "f8"},
      {"cvt.rn.f16x2.e4m3x2 $d, $a;", "b32 b16",
       [](U a, U, U) {
         return U{nearest_half(f8_value(a & 255, true), false)} | U{nearest_half(f8_value(a >> 8 & 255, true), false)} << 16;
       },
       0, "f8"},
      {"cvt.rn.f16x2.e5m2x2 $d, $a;", "b32 b16",
       [](U a, U, U) {
         return U{nearest_half(f8_value(a & 255, false), false)} | U{nearest_half(f8_value(a >> 8 & 255, false), false)} << 16;
       },
       0, "f8"},
  };
  return list;
}

const std::vector<U> kPatterns = {
    0,
    1,
    2,
    31,
    32,
    33,
    63,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0x3c00,
    0x3c01,
    0x0001,
    0x8001,
    0x7c00,
    0xfc00,
    0x7e00,
    0x3f80,
    0xbf80,
    0x7f80,
    0xffff,
    0x12345678,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x3f800000,
    0xbf800000,
    0x3f7fffff,
    0x40490fdb,
    0xc2f6e979,
    0x7f7fffff,
    0x7f800000,
    0xff800000,
    0x7fc00000,
    0x00000001,
    0x807fffff,
    0x00800000,
    0x4b000001,
    0x4f000000,
    0xcf000000,
    0x5f000000,
    0x3b8ffe00,
    0x477ff000,
    0x33800001,
    0x3ff0000000000000,
    0xbff8000000000000,
    0x400921fb54442d18,
    0x7fefffffffffffff,
    0x7ff0000000000000,
    0x7ff8000000000000,
    0x0000000000000001,
    0x41dfffffffe00000,
    0x43f0000000000000,
    0x8000000000000000,
    0xffffffffffffffff,
    0x123456789abcdef0,
    0x47efffffe0000001,
    0x3ff0000010000000,
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string w; in >> w;) out.push_back(w);
  return out;
}

/// Returns a module with a kernel for each case of a group: out[t] = f(in[3 t], in[3 t + 1], in[3 t + 2]).
std::string module_text(const std::string& group, int sm) {
  std::string text = ptx_header(sm);
  for (size_t i = 0; i < cases().size(); ++i) {
    const Case& c = cases()[i];
    if (c.group != group) continue;
    const auto types = words(c.types);
    text += ".visible .entry c" + std::to_string(i) + "(.param .u64 from, .param .u64 to, .param .u32 count) {\n";
    text += "  .reg .b64 p, q;\n  .reg .b32 i, n, k;\n  .reg .pred beyond;\n";
    for (size_t j = 0; j < types.size(); ++j) text += "  .reg ." + types[j] + " v" + std::to_string(j) + ";\n";
    text += "  .reg .b64 result;\n";
    text +=
        "  mov.u32 i, %tid.x;\n  mov.u32 k, %ctaid.x;\n  mad.lo.u32 i, k, 128, i;\n  ld.param.u32 n, [count];\n"
        "  setp.ge.u32 beyond, i, n;\n  @beyond ret;\n  ld.param.u64 p, [from];\n"
        "  mad.wide.u32 p, i, 24, p;\n  ld.param.u64 q, [to];\n  mad.wide.u32 q, i, 8, q;\n";
    for (size_t j = 1; j < types.size(); ++j) {
      text += "  ld.global." + types[j] + " v" + std::to_string(j) + ", [p+" + std::to_string(8 * (j - 1)) + "];\n";
    }
    std::string line = c.text;
    const char* const names[] = {"$d", "$a", "$b", "$c"};
    for (size_t j = 0; j < types.size(); ++j) {
      for (size_t at; (at = line.find(names[j])) != std::string::npos;) line.replace(at, 2, "v" + std::to_string(j));
    }
    text += "  " + line + "\n  mov.b64 result, 0;\n  st.global.b64 [q], result;\n  st.global." + types[0] +
            " [q], v0;\n  ret;\n}\n";
  }
  return text;
}

class InstructionTest : public GpuTest {
 protected:
  void run_group(const std::string& group, int sm) {
    std::vector<U> in;
    uint64_t random = 7;
    for (const U a : kPatterns) {
      for (const U b : kPatterns) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        in.insert(in.end(), {a, b, kPatterns[(random >> 33) % kPatterns.size()]});
      }
    }
    const uint32_t n = static_cast<uint32_t>(in.size() / 3);
    size_t first = 0;
    while (first < cases().size() && cases()[first].group != group) ++first;
    ASSERT_NE(load(module_text(group, sm), ("c" + std::to_string(first)).c_str()), nullptr) << log;
    const CUdeviceptr p = upload(in), out = allocated(n * 8);
    for (size_t i = 0; i < cases().size(); ++i) {
      const Case& c = cases()[i];
      if (c.group != group) continue;
      CUfunction f = nullptr;
      ASSERT_EQ(d.cuModuleGetFunction(&f, module, ("c" + std::to_string(i)).c_str()), CUDA_SUCCESS);
      ASSERT_EQ(run(f, (n + 127) / 128, 128, 0, p, out, n), CUDA_SUCCESS) << finding();
      const auto got = download<U>(out, n);
      const std::string type = words(c.types)[0];
      int wrong = 0;
      for (uint32_t j = 0; j < n && wrong < 5; ++j) {
        const U want = c.expected(in[3 * j], in[3 * j + 1], in[3 * j + 2]);
        bool same = got[j] == want;
        if (type == "f32" && !same) {
          const float x = f32(got[j]), y = f32(want);
          same = (std::isnan(x) && std::isnan(y)) ||
                 (c.tolerance > 0 &&
                  std::fabs(double{x} - y) <= c.tolerance * std::fmax(std::fabs(y) * 0x1p-23, 0x1p-149));
        }
        if (type == "f64" && !same) same = std::isnan(f64(got[j])) && std::isnan(f64(want));
        EXPECT_TRUE(same) << c.text << std::hex << " of 0x" << in[3 * j] << " 0x" << in[3 * j + 1] << " 0x"
                          << in[3 * j + 2] << " gives 0x" << got[j] << ", and not 0x" << want;
        wrong += !same;
      }
    }
  }
};

TEST_F(InstructionTest, AreThoseOfTheHost) {
  run_group("all", 80);
}

TEST_F(InstructionTest, ComputeWithPairsOf16Bits) {
  run_group("pairs", 90);
}

TEST_F(InstructionTest, ConvertTheFormatsOf8Bits) {
  run_group("f8", 89);
}

TEST_F(InstructionTest, AreLegal) {
  if (find_ptxas().empty()) GTEST_SKIP() << "no ptxas on this machine";
  EXPECT_EQ(assemble(module_text("all", 80), 80), "");
  EXPECT_EQ(assemble(module_text("f8", 89), 89), "");
  EXPECT_EQ(assemble(module_text("pairs", 90), 90), "");
}

}  // namespace
}  // namespace collet::gpu::testing_only
