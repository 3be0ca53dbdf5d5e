// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/expand/arithmetic.h"
#include "hlo/passes/expand/expand.h"

namespace collet::hlo {
namespace {

Real rsqrt(Real x) {
  return 1 / root(x);
}

/// Narrower floats are computed in f32. The second rounding, to the narrow type, does little harm because the f32
/// result has many more bits.
template <Real (*function)(Real)>
InstrId unary(const ExpandInput& in) {
  if (!is_float(in.type())) return InstrId::None;
  const Real x(in.b, in.b.convert(in.operand(0), wide_float(in.type())));
  return in.b.convert(function(x).id, in.type());
}
template <Real (*function)(Real, Real)>
InstrId binary(const ExpandInput& in) {
  if (!is_float(in.type())) return InstrId::None;
  // f8e8m0fnu has no zero: a value that underflows in f32 may still round to its least number, 2^-127, so it is
  // computed in f64.
  const Type wide = in.type() == Type::F8E8M0FNU ? Type::F64 : wide_float(in.type());
  const Real x(in.b, in.b.convert(in.operand(0), wide)), y(in.b, in.b.convert(in.operand(1), wide));
  return in.b.convert(function(x, y).id, in.type());
}

// Exponentiation by repeated squaring. With a negative exponent only the bases 1 and -1 have results other than 0.
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
  return is_integer(in.type()) ? integer_power(in) : binary<&elementary::power<Real>>(in);
}

constexpr Expansion kTable[] = {
    {Op::EXPONENTIAL, &unary<&elementary::exp<Real>>},
    {Op::EXPONENTIAL_MINUS_ONE, &unary<&elementary::expm1<Real>>},
    {Op::LOG, &unary<&elementary::log<Real>>},
    {Op::LOG_PLUS_ONE, &unary<&elementary::log1p<Real>>},
    {Op::LOGISTIC, &unary<&elementary::logistic<Real>>},
    {Op::TANH, &unary<&elementary::tanh<Real>>},
    {Op::SINH, &unary<&elementary::sinh<Real>>},
    {Op::COSH, &unary<&elementary::cosh<Real>>},
    {Op::ASINH, &unary<&elementary::asinh<Real>>},
    {Op::ACOSH, &unary<&elementary::acosh<Real>>},
    {Op::ATANH, &unary<&elementary::atanh<Real>>},
    {Op::SINE, &unary<&elementary::sin<Real>>},
    {Op::COSINE, &unary<&elementary::cos<Real>>},
    {Op::TAN, &unary<&elementary::tan<Real>>},
    {Op::ASIN, &unary<&elementary::asin<Real>>},
    {Op::ACOS, &unary<&elementary::acos<Real>>},
    {Op::ATAN2, &binary<&elementary::atan2<Real>>},
    {Op::SQRT, &unary<&square_root>},
    {Op::RSQRT, &unary<&rsqrt>},
    {Op::CBRT, &unary<&elementary::cbrt<Real>>},
    {Op::ERF, &unary<&elementary::erf<Real>>},
    {Op::POWER, &power},
};

}  // namespace

Expected<bool> expand_math(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
