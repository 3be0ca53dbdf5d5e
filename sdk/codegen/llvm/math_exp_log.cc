// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "sdk/codegen/llvm/math.h"
#include "sdk/codegen/llvm/math_notation.h"

namespace collet::codegen::math {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLog2e = 1.44269504088896338700e+00;
constexpr double kLn2 = 6.93147180559945286227e-01;
// ln 2 as a sum whose first part has zeros at its end: n times it is exact.
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kLn2High32 = 0.693359375;
constexpr double kLn2Low32 = -2.12194440e-4;

/// e^r - 1 - r over r^2, |r| <= ln 2 / 2.
F exp_tail(F r) {
  if (!is_f64(r))
    return polynomial(
        r, {5.0000001201e-1, 1.6666665459e-1, 4.1665795894e-2, 8.3334519073e-3, 1.3981999507e-3, 1.9875691500e-4});
  return polynomial(r, {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
                        1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0});
}

/// x = n ln 2 + r, |n| below 2^20.
F reduce_exp(F x, F& n) {
  n = fma(x, x.k(kLog2e), whole_number(x)) - whole_number(x);
  if (is_f64(x)) return fma(-n, n.k(kLn2Low), fma(-n, n.k(kLn2High), x));
  return fma(-n, n.k(kLn2Low32), fma(-n, n.k(kLn2High32), x));
}

F exp_of(F x) {
  const bool f64 = is_f64(x);
  x = at_least(at_most(x, f64 ? 710.0 : 89.0), f64 ? -746.0 : -104.0);
  F n = x;
  F r = reduce_exp(x, n);
  F p = 1.0 + fma(r * r, exp_tail(r), r);
  return scale(p, n);
}

F expm1_of(F x) {
  const F original = x;
  x = at_least(at_most(x, 710.0), -60.0);
  F n = x;
  F r = reduce_exp(x, n);
  F q = fma(r * r, exp_tail(r), r);
  // 2^n q + 2^n - 1, as 2^n (q + (1 - 2^-n)).
  F back = scale(x.k(1.0), -at_most(n, 1000.0));
  F y = scale(q + (1.0 - back), n);
  return select(original == 0.0, original, y);
}

/// x = 2^e m with m in [sqrt(1/2), sqrt(2)), for positive normal x.
F split_exponent(F x, F& e) {
  Ir& ir = *x.ir;
  const bool f64 = is_f64(x);
  const uint64_t mantissa = f64 ? 52 : 23;
  llvm::Value* root_half = ki(x, f64 ? 0x3fe6a09e667f3bcdULL : 0x3f3504f3ULL);
  llvm::Value* i = ir.b.CreateSub(bits(x), root_half);
  llvm::Value* k = ir.b.CreateAShr(i, ki(x, mantissa));
  llvm::Value* m = ir.b.CreateSub(bits(x), ir.b.CreateShl(k, ki(x, mantissa)));
  e = {ir, ir.b.CreateSIToFP(k, x.v->getType())};
  return from_bits(x, m);
}

F fix_log(F x, F y) {
  y = select(x == kInfinity, x, y);
  y = select(x == 0.0, -kInfinity, y);
  y = select(x < 0.0, kNan, y);
  return select(is_nan(x), x, y);
}

/// log(1 + f) - f + f^2/2 over s, where s = f / (2 + f).
F log_tail(F s) {
  F z = s * s;
  return z * polynomial(z, {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                            2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                            1.479819860511658591e-01});
}

/// e ln 2 + log(1 + f) + correction.
F log_sum(F f, F e, F correction) {
  F s = f / (2.0 + f);
  F half = 0.5 * f * f;
  F low = fma(s, half + log_tail(s), fma(e, e.k(kLn2Low), correction));
  return fma(e, e.k(kLn2High), -((half - low) - f));
}

F log64(F x) {
  llvm::Value* tiny = x < 2.2250738585072014e-308;
  F scaled = select(tiny, x * 18014398509481984.0, x);
  F e = x;
  F m = split_exponent(scaled, e);
  e = select(tiny, e - 54.0, e);
  return fix_log(x, log_sum(m - 1.0, e, x.k(0.0)));
}

F log32(F x) {
  llvm::Value* tiny = x < 1.17549435e-38;
  F scaled = select(tiny, x * 33554432.0, x);
  F e = x;
  F m = split_exponent(scaled, e);
  e = select(tiny, e - 25.0, e);
  F f = m - 1.0;
  F z = f * f;
  F p = polynomial(f, {3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1, -1.6668057665e-1, 1.4249322787e-1,
                       -1.2420140846e-1, 1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2});
  F y = fma(f * z, p, e * kLn2Low32);
  y = fma(z, z.k(-0.5), y);
  return fix_log(x, fma(e, e.k(kLn2High32), f + y));
}

F log1p_of(F x) {
  F u = 1.0 + x;
  F e = x;
  F m = split_exponent(u, e);
  // What was lost when 1 + x was rounded; where nothing was scaled f is x itself.
  F lost = select(x > 1.0, 1.0 - (u - x), x - (u - 1.0));
  llvm::Value* plain = e == 0.0;
  F f = select(plain, x, m - 1.0);
  F correction = select(plain, 0.0, lost / u);
  F y = log_sum(f, e, correction);
  y = select(u == 0.0, -kInfinity, y);
  y = select(x == kInfinity, x, y);
  y = select(x < -1.0, kNan, y);
  y = select(x == 0.0, x, y);
  return select(is_nan(x), x, y);
}

/// log(x) of a positive normal x as a sum of two.
void log_double(F x, F e, F m, F& high, F& low) {
  F f = m - 1.0;
  F d = m + 1.0;
  F d_low = m - (d - 1.0);
  F s = f / d;
  F s_low = (exact_fma(-s, d, f) - s * d_low) / d;
  F z = s * s;
  F z_low = exact_fma(s, s, -z) + 2.0 * s * s_low;
  // 2 s + s^3 (2/3 + 2/5 s^2 + ...); the first two terms in double width.
  F tail = z * polynomial(z, {0.4, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21});
  constexpr double kThird = 2.0 / 3;
  constexpr double kThirdLow = 3.7007434154171882e-17;
  F c = kThird + tail;
  F c_low = (kThird - c) + tail + kThirdLow;
  F sz = s * z;
  F sz_low = exact_fma(s, z, -sz) + s * z_low + s_low * z;
  F t = sz * c;
  F t_low = exact_fma(sz, c, -t) + sz * c_low + sz_low * c;
  F base = 2.0 * s;
  F ml = base + t;
  F ml_low = ((base - ml) + t) + (2.0 * s_low + t_low);
  F big = e * kLn2High;
  high = big + ml;
  low = select(abs(big) > abs(ml), (big - high) + ml, (ml - high) + big) + (ml_low + e * kLn2Low);
  F sum = high + low;
  low = (high - sum) + low;
  high = sum;
  (void)x;
}

/// x^y for finite positive x, both f64.
F pow_positive(F x, F y) {
  llvm::Value* tiny = x < 2.2250738585072014e-308;
  F scaled = select(tiny, x * 18014398509481984.0, x);
  F e = x;
  F m = split_exponent(scaled, e);
  e = select(tiny, e - 54.0, e);
  F high = x;
  F low = x;
  log_double(scaled, e, m, high, low);
  y = at_least(at_most(y, 1e300), -1e300);
  F p = y * high;
  F p_low = exact_fma(y, high, -p) + y * low;
  llvm::Value* wild = abs(p) > 1000.0;
  p = select(wild, copysign(x.k(1000.0), p), p);
  p_low = select(wild, 0.0, p_low);
  F n = x;
  F clamped = at_least(at_most(p, 710.0), -746.0);
  p_low = select(clamped == p, p_low, 0.0);
  F r = reduce_exp(clamped, n) + p_low;
  F v = 1.0 + fma(r * r, exp_tail(r), r);
  return scale(v, n);
}

F pow_of(F x, F y, F positive) {
  Ir& ir = *x.ir;
  auto& b = ir.b;
  auto both = [&](llvm::Value* p, llvm::Value* q) { return b.CreateAnd(p, q); };
  F ay = abs(y);
  F ax = abs(x);
  const double whole_above = is_f64(x) ? 9007199254740992.0 : 16777216.0;
  llvm::Value* integer = F(ir, ir.unary(llvm::Intrinsic::floor, y.v)) == y;
  F halved = y * 0.5;
  llvm::Value* even = b.CreateOr(F(ir, ir.unary(llvm::Intrinsic::floor, halved.v)) == halved, ay >= whole_above);
  llvm::Value* odd = both(integer, b.CreateNot(even));
  llvm::Value* negative = b.CreateICmpSLT(bits(x), ki(x, 0));
  llvm::Value* flip = both(negative, odd);
  // |x|^y at 0 and infinity, and where y is infinite.
  llvm::Value* y_positive = y > 0.0;
  F zero_or_inf = select(y_positive, 0.0, x.k(kInfinity));
  F r = select(ax == 0.0, zero_or_inf, positive);
  F inf_or_zero = select(y_positive, kInfinity, x.k(0.0));
  r = select(ax == kInfinity, inf_or_zero, r);
  F grows = select(ax > 1.0, inf_or_zero, zero_or_inf);
  grows = select(ax == 1.0, 1.0, grows);
  r = select(ay == kInfinity, grows, r);
  llvm::Value* bad = both(both(x < 0.0, b.CreateNot(integer)), both(ax < x.k(kInfinity), ay < y.k(kInfinity)));
  r = select(bad, kNan, r);
  r = select(flip, -r, r);
  r = select(b.CreateOr(is_nan(x), is_nan(y)), kNan, r);
  r = select(y == 0.0, 1.0, r);
  return select(x == 1.0, 1.0, r);
}

}  // namespace

llvm::Value* exp(Ir& ir, llvm::Value* x) {
  return exp_of({ir, x}).v;
}

llvm::Value* expm1(Ir& ir, llvm::Value* x) {
  F v(ir, x);
  return is_f64(v) ? expm1_of(v).v : narrow(expm1_of(widen(v))).v;
}

llvm::Value* log(Ir& ir, llvm::Value* x) {
  F v(ir, x);
  return is_f64(v) ? log64(v).v : log32(v).v;
}

llvm::Value* log1p(Ir& ir, llvm::Value* x) {
  F v(ir, x);
  return is_f64(v) ? log1p_of(v).v : narrow(log1p_of(widen(v))).v;
}

llvm::Value* logistic(Ir& ir, llvm::Value* x) {
  F v(ir, x);
  F e = exp_of(-abs(v));
  return (select(v >= 0.0, 1.0, e) / (1.0 + e)).v;
}

llvm::Value* pow(Ir& ir, llvm::Value* x, llvm::Value* y) {
  F a(ir, x);
  F c(ir, y);
  F positive = a;
  if (is_f64(a)) {
    positive = pow_positive(abs(a), c);
  } else {
    // In f64 one product is accurate enough; 0 and infinity are put right below.
    F wide = widen(abs(a));
    positive = narrow(exp_of(widen(at_least(at_most(c, 1e30), -1e30)) * log64(wide)));
  }
  return pow_of(a, c, positive).v;
}

}  // namespace collet::codegen::math
