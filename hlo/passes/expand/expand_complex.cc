// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/expand/complex_pair.h"
#include "hlo/passes/expand/expand.h"

// Rewrites ops on complex values into ops on pairs of real values. Each op becomes real ops between `real`/`imag` of
// its operands and a `complex` of the results; simplify removes complex/real pairs that meet, so a chain of such ops
// needs none in between.

namespace collet::hlo {
namespace {

Pair parts(Builder& b, InstrId z) {
  if (is_complex(b.type(z))) return {{b, b.unary(Op::REAL, z)}, {b, b.unary(Op::IMAG, z)}};
  return {{b, z}, {b, b.like(z, 0)}};
}
InstrId join(Builder& b, Pair z) {
  return b.binary(Op::COMPLEX, z.re.id, z.im.id);
}
Real angle(Pair z) {
  return angle_of(z.im, z.re);
}

Pair one(Pair like) {
  return {like.re.like(1), like.re.like(0)};
}
Pair minus(Pair z) {
  return {-z.re, -z.im};
}

Pair exponential(Pair z) {
  const Real size = call(Op::EXPONENTIAL, z.re);
  // A real argument gives a real result, also if exp(z.re) is infinite (infinity * sine(0) would be NaN).
  return {size * call(Op::COSINE, z.im), select(z.im == 0, z.im, size * call(Op::SINE, z.im))};
}
Pair exponential_minus_one(Pair z) {
  const Real half = call(Op::SINE, z.im * 0.5);
  const Real grown = call(Op::EXPONENTIAL_MINUS_ONE, z.re), cosine = call(Op::COSINE, z.im);
  return {grown * cosine - half * half * 2.0, exponential(z).im};
}
Pair logarithm(Pair z) {
  // Near |z| = 1 the real part log|z| is computed from |z|^2 - 1, which avoids cancellation.
  const Real a = magnitude(z.re), c = magnitude(z.im), most = larger(a, c), least = smaller(a, c);
  const Real near = call(Op::LOG_PLUS_ONE, (most - 1) * (most + 1) + least * least) * 0.5;
  const BoolArray close = most > 0.5 && most < 2;
  return {select(close, near, call(Op::LOG, hypotenuse(z))), angle(z)};
}
Pair log_plus_one(Pair z) {
  const Pair u = {z.re + 1, z.im};
  const Real near = call(Op::LOG_PLUS_ONE, z.re * (z.re + 2) + z.im * z.im) * 0.5;
  const BoolArray close = magnitude(z.re) < 0.5 && magnitude(z.im) < 0.5;
  return {select(close, near, logarithm(u).re), angle(u)};
}
Pair sine(Pair z) {
  return {call(Op::SINE, z.re) * call(Op::COSH, z.im), call(Op::COSINE, z.re) * call(Op::SINH, z.im)};
}
Pair cosine(Pair z) {
  return {call(Op::COSINE, z.re) * call(Op::COSH, z.im), -(call(Op::SINE, z.re) * call(Op::SINH, z.im))};
}
Pair sinh(Pair z) {
  return {call(Op::SINH, z.re) * call(Op::COSINE, z.im), call(Op::COSH, z.re) * call(Op::SINE, z.im)};
}
Pair cosh(Pair z) {
  return {call(Op::COSH, z.re) * call(Op::COSINE, z.im), call(Op::SINH, z.re) * call(Op::SINE, z.im)};
}
// tanh(a + bi) = (sinh 2a + i sin 2b) / (cosh 2a + cos 2b); the denominator is computed as 2 (sinh^2 a + cos^2 b).
Pair tanh(Pair z) {
  const Real far = magnitude(z.re), a = smaller(far, far.like(20));
  const Real sh = call(Op::SINH, a), ch = call(Op::COSH, a), s = call(Op::SINE, z.im), c = call(Op::COSINE, z.im);
  const Real below = sh * sh + c * c;
  return {with_sign_of(magnitude(sh * ch / below), z.re), s * c / below};
}
Pair tangent(Pair z) {
  const Pair t = tanh({-z.im, z.re});
  return {t.im, -t.re};
}
Pair logistic(Pair z) {
  const Pair grown = exponential(minus(z)), sum = plus(one(z), grown);
  // Near the poles, 1 + exp(-z) is computed without cancellation: 1 + cos y = 2 cos^2(y / 2).
  const Real size = call(Op::EXPONENTIAL, -z.re), half = call(Op::COSINE, z.im * 0.5);
  const Real near = half * half * 2.0 * size - call(Op::EXPONENTIAL_MINUS_ONE, -z.re);
  return over(one(z), {select(magnitude(z.re) < 1, near, sum.re), sum.im});
}
Pair inverse_root(Pair z) {
  return over(one(z), square_root(z));
}
Pair direction(Pair z) {
  const Real size = hypotenuse(z);
  const BoolArray zero = size == 0;
  return {select(zero, 0, z.re / size), select(zero, 0, z.im / size)};
}
Pair power(Pair z, Pair w) {
  const Pair general = exponential(times(w, logarithm(z)));
  const BoolArray no_base = (z.re == 0) && (z.im == 0), no_exponent = (w.re == 0) && (w.im == 0);
  const Pair at_zero = {select(no_base, 0, general.re), select(no_base, 0, general.im)};
  return {select(no_exponent, 1, at_zero.re), select(no_exponent, 0, at_zero.im)};
}

template <Pair (*function)(Pair)>
InstrId unary(const ExpandInput& in) {
  if (!is_complex(in.type())) return InstrId::None;
  return join(in.b, function(parts(in.b, in.operand(0))));
}
template <Pair (*function)(Pair, Pair)>
InstrId binary(const ExpandInput& in) {
  if (!is_complex(in.type())) return InstrId::None;
  return join(in.b, function(parts(in.b, in.operand(0)), parts(in.b, in.operand(1))));
}
Pair difference(Pair x, Pair y) {
  return {x.re - y.re, x.im - y.im};
}

InstrId absolute(const ExpandInput& in) {
  if (!is_complex(in.operand_shape(0).type())) return InstrId::None;
  return hypotenuse(parts(in.b, in.operand(0))).id;
}

InstrId compare_parts(const ExpandInput& in) {
  if (!is_complex(in.operand_shape(0).type())) return InstrId::None;
  const Pair x = parts(in.b, in.operand(0)), y = parts(in.b, in.operand(1));
  const Direction d = in.as<CompareAttrs>().direction;
  const BoolArray re = compare(x.re, d, y.re), im = compare(x.im, d, y.im);
  return (d == Direction::EQ ? re && im : re || im).id;
}

InstrId convert(const ExpandInput& in) {
  Builder& b = in.b;
  const bool from = is_complex(in.operand_shape(0).type()), to = is_complex(in.type());
  if (!from && !to) return InstrId::None;
  if (!to) return b.convert(b.unary(Op::REAL, in.operand(0)), in.type());
  const Type part = real_type(in.type());
  if (!from) {
    const InstrId re = b.convert(in.operand(0), part);
    return b.binary(Op::COMPLEX, re, b.like(re, 0));
  }
  return b.binary(Op::COMPLEX, b.convert(b.unary(Op::REAL, in.operand(0)), part),
                  b.convert(b.unary(Op::IMAG, in.operand(0)), part));
}

// Applies the op to the real and the imaginary parts separately. This holds for ops that only move or add elements.
InstrId each_part(const ExpandInput& in) {
  Builder& b = in.b;
  if (!in.shape().is_array() || !is_complex(in.type())) return InstrId::None;
  InstrId out[2];
  for (int part = 0; part < 2; ++part) {
    std::vector<InstrId> operands;
    for (InstrId o : in.instr.operands)
      operands.push_back(is_complex(b.type(o)) ? b.unary(part == 0 ? Op::REAL : Op::IMAG, o) : o);
    out[part] = b.op(in.instr.op, in.shape().with_type(real_type(in.type())), operands, in.instr.attrs);
  }
  return b.binary(Op::COMPLEX, out[0], out[1]);
}

InstrId constant(const ExpandInput& in) {
  Builder& b = in.b;
  if (!in.shape().is_array() || !is_complex(in.type())) return InstrId::None;
  const Literal& value = in.module.literal(in.instr);
  Literal re = Literal::zeros(Shape::array(real_type(in.type()), in.shape().dims())), im = re;
  for (int64_t i = 0; i < value.element_count(); ++i) {
    re.set_double(i, value.as_double(i));
    im.set_double(i, value.imaginary(i));
  }
  return b.binary(Op::COMPLEX, b.constant(std::move(re)), b.constant(std::move(im)));
}

InstrId dot(const ExpandInput& in) {
  Builder& b = in.b;
  if (!is_complex(in.type())) return InstrId::None;
  const Pair x = parts(b, in.operand(0)), y = parts(b, in.operand(1));
  const auto& attrs = in.as<DotAttrs>();
  const Type part = real_type(in.type());
  const auto product = [&](Real p, Real q) { return b.dot(p.id, q.id, attrs, part); };
  return b.binary(Op::COMPLEX, b.sub(product(x.re, y.re), product(x.im, y.im)),
                  b.add(product(x.re, y.im), product(x.im, y.re)));
}

// A sum is reduced part by part. Other combiners, such as products, mix the parts and are not expanded.
InstrId reduce(const ExpandInput& in) {
  Builder& b = in.b;
  if (!in.shape().is_array() || !is_complex(in.type()) || in.instr.operands.size() != 2) return InstrId::None;
  const Computation& body = in.module[in.instr.called[0]];
  if (in.module[body.root].op != Op::ADD || body.order.size() != 3) return InstrId::None;
  const Pair x = parts(b, in.operand(0)), init = parts(b, in.operand(1));
  const Dims dims = in.as<DimensionsAttrs>().dimensions;
  return b.binary(Op::COMPLEX, b.reduce(x.re.id, init.re.id, dims, Op::ADD),
                  b.reduce(x.im.id, init.im.id, dims, Op::ADD));
}

constexpr Expansion kTable[] = {
    {Op::NEGATE, &unary<&minus>},
    {Op::SUBTRACT, &binary<&difference>},
    {Op::ADD, &binary<&plus>},
    {Op::MULTIPLY, &binary<&times>},
    {Op::DIVIDE, &binary<&over>},
    {Op::POWER, &binary<&power>},
    {Op::ABS, &absolute},
    {Op::SIGN, &unary<&direction>},
    {Op::EXPONENTIAL, &unary<&exponential>},
    {Op::EXPONENTIAL_MINUS_ONE, &unary<&exponential_minus_one>},
    {Op::LOG, &unary<&logarithm>},
    {Op::LOG_PLUS_ONE, &unary<&log_plus_one>},
    {Op::SQRT, &unary<&square_root>},
    {Op::RSQRT, &unary<&inverse_root>},
    {Op::SINE, &unary<&sine>},
    {Op::COSINE, &unary<&cosine>},
    {Op::TAN, &unary<&tangent>},
    {Op::SINH, &unary<&sinh>},
    {Op::COSH, &unary<&cosh>},
    {Op::TANH, &unary<&tanh>},
    {Op::LOGISTIC, &unary<&logistic>},
    {Op::ASIN, &unary<&arc_sine>},
    {Op::ACOS, &unary<&arc_cosine>},
    {Op::ASINH, &unary<&arc_sinh>},
    {Op::ACOSH, &unary<&arc_cosh>},
    {Op::ATANH, &unary<&arc_tanh>},
    {Op::ATAN2, &binary<&arc_tangent>},
    {Op::COMPARE, &compare_parts},
    {Op::CONVERT, &convert},
    {Op::CONSTANT, &constant},
    {Op::DOT, &dot},
    {Op::REDUCE, &reduce},
    {Op::SELECT, &each_part},
    {Op::BROADCAST, &each_part},
    {Op::RESHAPE, &each_part},
    {Op::TRANSPOSE, &each_part},
    {Op::SLICE, &each_part},
    {Op::PAD, &each_part},
    {Op::CONCATENATE, &each_part},
    {Op::REVERSE, &each_part},
    {Op::DYNAMIC_SLICE, &each_part},
    {Op::DYNAMIC_UPDATE_SLICE, &each_part},
    {Op::GATHER, &each_part},
};

}  // namespace

Expected<bool> expand_complex(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
