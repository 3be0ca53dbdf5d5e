// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/scalar/complex_ops.h"

#include <collet/complex_functions.hpp>

#include "sdk/codegen/base/real_functions.h"
#include "sdk/codegen/llvm/scalar/math.h"
#include "sdk/codegen/llvm/scalar/math_notation.h"

namespace collet::codegen {
namespace math {

// What <collet/complex_functions.hpp> asks of its user. The functions are static rather than in an unnamed namespace, where
// lookup by arguments would not find them.

static F compute(elementary::Function f, F x) {
  const auto call = [&](math::Function g) { return F(*x.ir, g(*x.ir, x.v)); };
  switch (f) {
    case elementary::Function::kExp:
      return call(math::exp);
    case elementary::Function::kExpm1:
      return call(math::expm1);
    case elementary::Function::kLog:
      return call(math::log);
    case elementary::Function::kLog1p:
      return call(math::log1p);
    case elementary::Function::kSin:
      return call(math::sin);
    case elementary::Function::kSinh:
      return call(math::sinh);
    case elementary::Function::kCosh:
      return call(math::cosh);
  }
  return x;
}
static elementary::SineAndCosine<F> sine_and_cosine_of(F x) {
  llvm::Value* sine = nullptr;
  llvm::Value* cosine = nullptr;
  math::sincos(*x.ir, x.v, sine, cosine);
  return {{*x.ir, sine}, {*x.ir, cosine}};
}
static F length(F x, F y) {
  return {*x.ir, math::hypot(*x.ir, x.v, y.v)};
}
static F angle(F y, F x) {
  return {*x.ir, math::atan2(*x.ir, y.v, x.v)};
}

}  // namespace math

namespace {

using math::F;
using C = elementary::Complex<F>;

C arg(Ir& ir, const ScalarOp& op, size_t i = 0) {
  return {{ir, op.args[i].v}, {ir, op.args[i].im}};
}
Val val(C x) {
  return {x.re.v, x.im.v};
}
}  // namespace

Val complex_abs(Ir& ir, const ScalarOp& op) {
  const C x = arg(ir, op);
  return {length(x.re, x.im).v};
}
// Define an op that is a function of one or of two complex numbers.
#define COLLET_COMPLEX1(name, ...)       \
  Val name(Ir& ir, const ScalarOp& op) { \
    const C x = arg(ir, op);             \
    return val(__VA_ARGS__);             \
  }
#define COLLET_COMPLEX2(name, ...)       \
  Val name(Ir& ir, const ScalarOp& op) { \
    const C x = arg(ir, op);             \
    const C y = arg(ir, op, 1);          \
    return val(__VA_ARGS__);             \
  }
COLLET_COMPLEX2(complex_add, x + y)
COLLET_COMPLEX2(complex_subtract, x - y)
COLLET_COMPLEX2(complex_multiply, x* y)
COLLET_COMPLEX2(complex_divide, elementary::divide(x, y))
COLLET_COMPLEX1(complex_negate, -x)
Val complex_real(Ir&, const ScalarOp& op) {
  return {op.args[0].v};
}
Val complex_imag(Ir&, const ScalarOp& op) {
  return {op.args[0].im};
}
COLLET_COMPLEX1(complex_exp, elementary::exponential(x))
COLLET_COMPLEX1(complex_expm1, elementary::exponential_minus_one(x))
COLLET_COMPLEX1(complex_log, elementary::logarithm(x))
COLLET_COMPLEX1(complex_log1p, elementary::logarithm_plus_one(x))
COLLET_COMPLEX1(complex_sqrt, elementary::square_root(x))
COLLET_COMPLEX1(complex_sine, elementary::sine(x))
COLLET_COMPLEX1(complex_cosine, elementary::cosine(x))
COLLET_COMPLEX1(complex_sinh, elementary::hyperbolic_sine(x))
COLLET_COMPLEX1(complex_cosh, elementary::hyperbolic_cosine(x))
COLLET_COMPLEX1(complex_tanh, elementary::hyperbolic_tangent(x))
COLLET_COMPLEX1(complex_tan, elementary::tangent(x))
COLLET_COMPLEX1(complex_asin, complex_arc_sine(x))
COLLET_COMPLEX1(complex_acos, complex_arc_cosine(x))
COLLET_COMPLEX1(complex_asinh, complex_arc_hyperbolic_sine(x))
COLLET_COMPLEX1(complex_acosh, complex_arc_hyperbolic_cosine(x))
COLLET_COMPLEX1(complex_atanh, complex_arc_hyperbolic_tangent(x))
// The operands of atan2 are y, then x.
COLLET_COMPLEX2(complex_atan2, complex_arc_tangent(x, y))
COLLET_COMPLEX1(complex_logistic, elementary::logistic_of(x))
COLLET_COMPLEX1(complex_rsqrt, elementary::inverse_root(x))
COLLET_COMPLEX1(complex_sign, elementary::direction(x))
COLLET_COMPLEX2(complex_power, elementary::power_of(x, y))

}  // namespace collet::codegen
