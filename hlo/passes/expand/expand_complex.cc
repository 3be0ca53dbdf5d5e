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

Pair minus(Pair z) {
  return -z;
}
Pair plus(Pair x, Pair y) {
  return x + y;
}
Pair difference(Pair x, Pair y) {
  return x - y;
}
Pair times(Pair x, Pair y) {
  return x * y;
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
InstrId absolute(const ExpandInput& in) {
  if (!is_complex(in.operand_shape(0).type())) return InstrId::None;
  const Pair z = parts(in.b, in.operand(0));
  return length(z.re, z.im).id;
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
  if (in.type() == Type::PRED) {
    const InstrId re = b.unary(Op::REAL, in.operand(0)), im = b.unary(Op::IMAG, in.operand(0));
    return b.or_(b.compare(re, Direction::NE, b.like(re, 0)), b.compare(im, Direction::NE, b.like(im, 0)));
  }
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
  const Instruction& root = in.module[body.root];
  if (root.op != Op::ADD || body.order.size() != 3 || root.operand(0) == root.operand(1)) return InstrId::None;
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
    {Op::DIVIDE, &binary<&elementary::divide<Real>>},
    {Op::POWER, &binary<&elementary::power_of<Real>>},
    {Op::ABS, &absolute},
    {Op::SIGN, &unary<&elementary::direction<Real>>},
    {Op::EXPONENTIAL, &unary<&elementary::exponential<Real>>},
    {Op::EXPONENTIAL_MINUS_ONE, &unary<&elementary::exponential_minus_one<Real>>},
    {Op::LOG, &unary<&elementary::logarithm<Real>>},
    {Op::LOG_PLUS_ONE, &unary<&elementary::logarithm_plus_one<Real>>},
    {Op::SQRT, &unary<&elementary::square_root<Real>>},
    {Op::RSQRT, &unary<&elementary::inverse_root<Real>>},
    {Op::SINE, &unary<&elementary::sine<Real>>},
    {Op::COSINE, &unary<&elementary::cosine<Real>>},
    {Op::TAN, &unary<&elementary::tangent<Real>>},
    {Op::SINH, &unary<&elementary::hyperbolic_sine<Real>>},
    {Op::COSH, &unary<&elementary::hyperbolic_cosine<Real>>},
    {Op::TANH, &unary<&elementary::hyperbolic_tangent<Real>>},
    {Op::LOGISTIC, &unary<&elementary::logistic_of<Real>>},
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
