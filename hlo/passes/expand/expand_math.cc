// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/expand/math.h"

#include <cmath>

#include "hlo/passes/expand/expand.h"

namespace collet::hlo {
namespace {

constexpr double kLn2 = 0.69314718055994530942;

Real sqrt_op(Real x) {
  return x.of(x.b->unary(Op::SQRT, x.id));
}

Real logistic_of(Real x) {
  const Real e = exp_of(-magnitude(x)), below = e + 1;
  return select(x.like(0) > x, e / below, 1.0 / below);
}
Real tanh_of(Real x) {
  const Real a = magnitude(x);
  const Real small = expm1_of(a * -2.0), large = expm1_of(minimum(a, 40) * 2.0);
  const Real value = select(a < 1, -small / (small + 2), 1.0 - 2.0 / (large + 2));
  return select(equal(x, 0), x, with_sign_of(select(is_nan(x), x, value), x));
}
Real sinh_of(Real x) {
  const Real a = magnitude(x), t = expm1_of(minimum(a, 40));
  const Real small = (t + t / (t + 1)) * 0.5;
  return select(equal(x, 0), x, with_sign_of(select(a < 30, small, half_exp_of(a)), x));
}
Real cosh_of(Real x) {
  const Real a = magnitude(x), e = half_exp_of(minimum(a, 40));
  return select(a < 30, e + 0.25 / e, half_exp_of(a));
}
Real asin_of(Real x) {
  return atan2_of(x, sqrt_op((1.0 - x) * (x + 1)));
}
Real acos_of(Real x) {
  return atan2_of(sqrt_op(1.0 - x), sqrt_op(x + 1)) * 2.0;
}
Real asinh_of(Real x) {
  const Real a = magnitude(x);
  const double huge = x.type() == Type::F64 ? 0x1p28 : 0x1p13;
  const Real inside = minimum(a, huge);
  const Real near = log1p_of(inside + inside * inside / (sqrt_op(inside * inside + 1) + 1));
  const Real value = select(a > huge, log_of(a) + kLn2, near);
  return select(equal(x, 0), x, with_sign_of(value, x));
}
Real acosh_of(Real x) {
  const double huge = x.type() == Type::F64 ? 0x1p28 : 0x1p13;
  const Real t = minimum(x, huge) - 1;
  const Real near = log1p_of(t + sqrt_op(t * 2.0 + t * t));
  return select(x < 1, NAN, select(x > huge, log_of(x) + kLn2, near));
}
Real atanh_of(Real x) {
  const Real a = magnitude(x), twice = a * 2.0;
  const Real far = log1p_of(twice / (1.0 - a)), near = log1p_of(twice + twice * a / (1.0 - a));
  return select(equal(x, 0), x, with_sign_of(select(a < 0.5, near, far) * 0.5, x));
}
Real rsqrt_of(Real x) {
  return 1.0 / sqrt_op(x);
}

/// In f32 for narrower floats: the result is then rounded once more, from a value that is nearly exact for it.
template <Real (*function)(Real)>
InstrId unary(const ExpandInput& in) {
  if (!is_float(in.type())) return InstrId::None;
  const Real x(in.b, in.b.convert(in.operand(0), wide_float(in.type())));
  return in.b.convert(function(x).id, in.type());
}
template <Real (*function)(Real, Real)>
InstrId binary(const ExpandInput& in) {
  if (!is_float(in.type())) return InstrId::None;
  // A type without zero: what underflows in f32 may still be its least number.
  const Type wide = in.type() == Type::F8E8M0FNU ? Type::F64 : wide_float(in.type());
  const Real x(in.b, in.b.convert(in.operand(0), wide)), y(in.b, in.b.convert(in.operand(1), wide));
  return in.b.convert(function(x, y).id, in.type());
}

// Square and multiply; a negative exponent leaves only 1 and -1.
InstrId integer_power(const ExpandInput& in) {
  Builder& b = in.b;
  InstrId base = in.operand(0), exponent = in.operand(1);
  const InstrId one = b.like_int(base, 1), zero = b.like_int(base, 0);
  const InstrId first_base = base, first_exponent = exponent;
  InstrId result = one;
  for (int bit = 0; bit < type_info(in.type()).bits; ++bit) {
    const InstrId odd = b.compare(b.and_(exponent, one), Direction::NE, zero);
    result = b.select(odd, b.mul(result, base), result);
    base = b.mul(base, base);
    exponent = b.shr(exponent, 1);
  }
  if (is_unsigned(in.type())) return result;
  const InstrId minus = b.like_int(first_base, -1);
  const InstrId odd = b.compare(b.and_(first_exponent, one), Direction::NE, zero);
  const InstrId alternating = b.select(odd, minus, one);
  const InstrId inverse = b.select(b.compare(first_base, Direction::EQ, one), one,
                                   b.select(b.compare(first_base, Direction::EQ, minus), alternating, zero));
  return b.select(b.compare(first_exponent, Direction::LT, zero), inverse, result);
}

InstrId power(const ExpandInput& in) {
  return is_integer(in.type()) ? integer_power(in) : binary<&power_of>(in);
}

constexpr Expansion kTable[] = {
    {Op::EXPONENTIAL, &unary<&exp_of>},   {Op::EXPONENTIAL_MINUS_ONE, &unary<&expm1_of>},
    {Op::LOG, &unary<&log_of>},           {Op::LOG_PLUS_ONE, &unary<&log1p_of>},
    {Op::LOGISTIC, &unary<&logistic_of>}, {Op::TANH, &unary<&tanh_of>},
    {Op::SINH, &unary<&sinh_of>},         {Op::COSH, &unary<&cosh_of>},
    {Op::ASINH, &unary<&asinh_of>},       {Op::ACOSH, &unary<&acosh_of>},
    {Op::ATANH, &unary<&atanh_of>},       {Op::SINE, &unary<&sine_of>},
    {Op::COSINE, &unary<&cosine_of>},     {Op::TAN, &unary<&tangent_of>},
    {Op::ASIN, &unary<&asin_of>},         {Op::ACOS, &unary<&acos_of>},
    {Op::ATAN2, &binary<&atan2_of>},      {Op::SQRT, &unary<&sqrt_of>},
    {Op::RSQRT, &unary<&rsqrt_of>},       {Op::CBRT, &unary<&cbrt_of>},
    {Op::ERF, &unary<&erf_of>},           {Op::POWER, &power},
};

}  // namespace

Expected<bool> expand_math(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
