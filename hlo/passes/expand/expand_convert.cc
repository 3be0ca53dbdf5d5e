// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "hlo/passes/expand/expand.h"
#include "hlo/passes/expand/float_bits.h"

namespace collet::hlo {
namespace {

InstrId reduce_precision(const ExpandInput& in) {
  Builder& b = in.b;
  const auto& attrs = in.as<ReducePrecisionAttrs>();
  const InstrId x = in.operand(0);
  if (!is_ieee(in.type())) {
    // The rounding is done in f32, which represents every value of the type.
    auto* same = in.module.make<ReducePrecisionAttrs>();
    *same = attrs;
    same->exponent_bits = std::min<int64_t>(attrs.exponent_bits, 8);
    const InstrId wide = b.convert(x, Type::F32);
    return b.convert(b.op(Op::REDUCE_PRECISION, b.shape(wide), {wide}, same), in.type());
  }
  const FloatBits f(b, in.type());
  InstrId bits = f.bits(x);
  const auto number = [&](int64_t v) { return b.like_int(bits, v); };
  const int64_t dropped = f.format.mantissa_bits - attrs.mantissa_bits;
  if (dropped > 0) {
    // Rounds to nearest, ties to even. A carry out of the mantissa increments the exponent, which is the correct
    // result.
    const InstrId last = b.and_(b.shr(bits, dropped), number(1));
    const InstrId bias = b.add(last, number((int64_t{1} << (dropped - 1)) - 1));
    bits = b.and_(b.add(bits, bias), number(~((int64_t{1} << dropped) - 1)));
  }
  if (attrs.exponent_bits < f.format.exponent_bits) {
    const int64_t reduced_bias = (int64_t{1} << (attrs.exponent_bits - 1)) - 1;
    const int64_t largest = f.format.bias + reduced_bias, smallest = f.format.bias - reduced_bias;
    const InstrId exponent = b.and_(bits, number(f.exponent_mask())), sign = b.and_(bits, number(f.sign()));
    const InstrId over = b.compare(exponent, Direction::GT, number(largest << f.format.mantissa_bits));
    const InstrId under = b.compare(exponent, Direction::LE, number(smallest << f.format.mantissa_bits));
    bits = b.select(over, b.or_(sign, number(f.exponent_mask())), b.select(under, sign, bits));
  }
  const InstrId nan = attrs.mantissa_bits > 0 ? x : f.with_sign_of(b.like(x, INFINITY), x);
  return b.select(f.is_nan(x), nan, f.value(bits));
}

// Rounds the magnitude up by one unit where the random number is below the fraction that is cut off.
InstrId stochastic_convert(const ExpandInput& in) {
  Builder& b = in.b;
  const Type from = in.operand_shape(0).type();
  if (!is_float(from) || !is_integer(in.type())) return InstrId::None;
  const Type wide = wide_float(from);
  const int width = type_info(from).bits;
  const FloatBits f(b, wide);
  const InstrId x = b.convert(in.operand(0), wide), size = f.magnitude(x);
  const InstrId whole = b.unary(Op::FLOOR, size), part = b.sub(size, whole);
  const InstrId random = in.operand(1);
  const InstrId limit = b.convert(b.mul(part, b.like(part, std::ldexp(1.0, width))), b.type(random));
  const InstrId up = b.compare(random, Direction::LT, limit);
  const InstrId rounded = b.add(whole, b.select(up, b.like(x, 1), b.like(x, 0)));
  const InstrId finite = b.select(b.unary(Op::IS_FINITE, x), f.with_sign_of(rounded, x), x);
  return b.convert(finite, in.type());
}

constexpr Expansion kTable[] = {{Op::REDUCE_PRECISION, &reduce_precision},
                                {Op::STOCHASTIC_CONVERT, &stochastic_convert}};

}  // namespace

Expected<bool> expand_convert(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
