// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "sdk/codegen/llvm/math.h"
#include "sdk/codegen/llvm/math_notation.h"

namespace collet::codegen::math {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2 = 6.93147180559945286227e-01;

F call(Function f, F x) {
  return {*x.ir, f(*x.ir, x.v)};
}

/// Computes an f32 function in f64.
llvm::Value* in_f64(Ir& ir, llvm::Value* x, F (*f)(F)) {
  F v(ir, x);
  return is_f64(v) ? f(v).v : narrow(f(widen(v))).v;
}

F sinh_of(F x) {
  F a = abs(x);
  F e = call(expm1, at_most(a, 30.0));
  F small = 0.5 * (e + e / (e + 1.0));
  F h = call(exp, 0.5 * a);
  F large = (0.5 * h) * h;
  return copysign(select(a > 22.0, large, small), x);
}

F cosh_of(F x) {
  F a = abs(x);
  F e = call(exp, at_most(a, 30.0));
  F small = 0.5 * (e + 1.0 / e);
  F h = call(exp, 0.5 * a);
  F large = (0.5 * h) * h;
  return select(a > 22.0, large, small);
}

F tanh64(F x) {
  F a = abs(x);
  F e = call(expm1, 2.0 * at_most(a, 22.0));
  return copysign(e / (e + 2.0), x);
}

/// Near 0 an odd polynomial, elsewhere 1 - 2 / (e^2x + 1).
F tanh32(F x) {
  F a = abs(x);
  F e = call(exp, 2.0 * at_most(a, 10.0));
  F outer = 1.0 - 2.0 / (e + 1.0);
  F z = x * x;
  F p = polynomial(z, {-3.33332819422e-1, 1.33314422036e-1, -5.37397155531e-2, 2.06390887954e-2, -5.70498872745e-3});
  F inner = fma(a * z, p, a);
  return copysign(select(a < 0.625, inner, outer), x);
}

F asinh_of(F x) {
  F a = abs(x);
  F z = a * a;
  F moderate = call(log1p, a + z / (1.0 + root(1.0 + z)));
  F large = call(log, a) + kLn2;
  return copysign(select(a > 268435456.0, large, moderate), x);
}

F acosh_of(F x) {
  F t = x - 1.0;
  F moderate = call(log1p, t + root(2.0 * t + t * t));
  F large = call(log, x) + kLn2;
  F y = select(x > 268435456.0, large, moderate);
  return select(x < 1.0, kNan, y);
}

F atanh_of(F x) {
  F a = abs(x);
  F y = 0.5 * call(log1p, 2.0 * a / (1.0 - a));
  y = select(a > 1.0, kNan, y);
  return copysign(select(a == 1.0, kInfinity, y), x);
}

/// Positive normal f64, by a first guess from the exponent and three steps of Halley's.
F cbrt_of(F x) {
  Ir& ir = *x.ir;
  F a = abs(x);
  // Scaled by 2^54, so that neither squares nor doubles leave the range.
  llvm::Value* tiny = a < 1e-280;
  llvm::Value* huge = a > 1e280;
  F s = select(tiny, a * 0x1p54, select(huge, a * 0x1p-54, a));
  llvm::Value* i = ir.b.CreateAdd(ir.b.CreateUDiv(bits(s), ki(x, 3)), ki(x, 0x2a9f7893782da1ceULL));
  F r = from_bits(x, i);
  for (int k = 0; k < 3; ++k) {
    F cube = r * r * r;
    r = r * ((cube + 2.0 * s) / (2.0 * cube + s));
  }
  // One Newton step with the cube's error in view.
  F q = r * r;
  F q_low = exact_fma(r, r, -q);
  F error = exact_fma(q, r, -s) + q_low * r;
  r = r - error / (3.0 * q);
  r = select(tiny, r * 0x1p-18, select(huge, r * 0x1p18, r));
  r = select(ir.b.CreateOr(a == 0.0, a == kInfinity), a, r);
  return select(is_nan(x), x, copysign(r, x));
}

}  // namespace

llvm::Value* sinh(Ir& ir, llvm::Value* x) {
  return in_f64(ir, x, sinh_of);
}
llvm::Value* cosh(Ir& ir, llvm::Value* x) {
  return in_f64(ir, x, cosh_of);
}
llvm::Value* asinh(Ir& ir, llvm::Value* x) {
  return in_f64(ir, x, asinh_of);
}
llvm::Value* acosh(Ir& ir, llvm::Value* x) {
  return in_f64(ir, x, acosh_of);
}
llvm::Value* atanh(Ir& ir, llvm::Value* x) {
  return in_f64(ir, x, atanh_of);
}
llvm::Value* cbrt(Ir& ir, llvm::Value* x) {
  return in_f64(ir, x, cbrt_of);
}

llvm::Value* tanh(Ir& ir, llvm::Value* x) {
  F v(ir, x);
  return is_f64(v) ? tanh64(v).v : tanh32(v).v;
}

llvm::Value* sqrt(Ir& ir, llvm::Value* x) {
  return root({ir, x}).v;
}

llvm::Value* rsqrt(Ir& ir, llvm::Value* x) {
  return (1.0 / root({ir, x})).v;
}

llvm::Value* hypot(Ir& ir, llvm::Value* x, llvm::Value* y) {
  F a = abs({ir, x});
  F c = abs({ir, y});
  F r = a;
  if (is_f64(a)) {
    llvm::Value* swap = a < c;
    F high = select(swap, c, a);
    F low = select(swap, a, c);
    F q = low / high;
    r = high * root(fma(q, q, 1.0));
    r = select(high == 0.0, 0.0, r);
  } else {
    F wide_a = widen(a);
    F wide_c = widen(c);
    r = narrow(root(wide_a * wide_a + wide_c * wide_c));
  }
  r = select(ir.b.CreateOr(is_nan(a), is_nan(c)), kNan, r);
  return select(ir.b.CreateOr(a == kInfinity, c == kInfinity), kInfinity, r).v;
}

}  // namespace collet::codegen::math
