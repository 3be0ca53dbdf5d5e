// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

// Checks that the operands have one shape; returns it with the dynamic dimensions of all.
Expected<Shape> joined(const InferInput& in, std::string_view label, Type type) {
  for (size_t i = 0; i < in.operands.size(); ++i) COLLET_TRY(expect_array(in, i));
  Shape out = with_dims_of(in.operand(0), type);
  for (size_t i = 1; i < in.operands.size(); ++i) {
    if (!dims_agree(out, in.operand(i)))
      return broken(in.op, label, "operand shapes differ: ", in.operand(0), " and ", in.operand(i),
                    " (there is no implicit broadcast)");
    if (out.has_dynamic() || in.operand(i).has_dynamic()) out = join_dims(out, in.operand(i), type);
  }
  return out;
}

Expected<Shape> infer_unary(const InferInput& in) {
  const Shape& operand = in.operand(0);
  COLLET_TRY(expect_array(in, 0, "operand 0"));
  const Type type = operand.type();
  switch (in.op) {
    case Op::ABS:
    case Op::SIGN:
      if (is_unsigned(type)) return broken(in.op, "", "operand 0 must be signed or complex, but is ", operand);
      return with_dims_of(operand, in.op == Op::ABS ? real_type(type) : type);
    case Op::REAL:
    case Op::IMAG:
      return with_dims_of(operand, real_type(type));
    case Op::IS_FINITE:
      return with_dims_of(operand, Type::PRED);
    default:
      return operand.without_layout();
  }
}

Expected<Shape> infer_binary(const InferInput& in) {
  const Shape& lhs = in.operand(0);
  const Shape& rhs = in.operand(1);
  for (size_t i = 0; i < 2; ++i) COLLET_TRY(expect_array(in, i));
  if (!types_agree(lhs.type(), rhs.type()))
    return broken(in.op, "C1", "element types differ: lhs is ", lhs, ", rhs is ", rhs);
  if (in.op == Op::COMPARE) return joined(in, "C2", Type::PRED);
  const Type type = wider_type(lhs.type(), rhs.type());
  if (in.op != Op::COMPLEX) return joined(in, "C1", type);
  if (lhs.type() != rhs.type() || (type != Type::F32 && type != Type::F64))
    return broken(in.op, "C1", "parts must be f32 or f64 alike, but are ", lhs, " and ", rhs);
  return joined(in, "C1", type == Type::F32 ? Type::C64 : Type::C128);
}

Expected<Shape> infer_clamp(const InferInput& in) {
  const Shape& low = in.operand(0);
  const Shape& operand = in.operand(1);
  const Shape& high = in.operand(2);
  COLLET_TRY(expect_array(in, 0, "min"));
  COLLET_TRY(expect_array(in, 1, "operand"));
  COLLET_TRY(expect_array(in, 2, "max"));
  if (!types_agree(low.type(), operand.type()) || !types_agree(high.type(), operand.type()))
    return broken(in.op, "C3", "element types differ: min is ", low, ", operand is ", operand, ", max is ", high);
  if (!low.is_scalar() && !dims_agree(low, operand))
    return broken(in.op, "C1", "min must be a scalar or shaped as the operand ", operand, ", but is ", low);
  if (!high.is_scalar() && !dims_agree(high, operand))
    return broken(in.op, "C2", "max must be a scalar or shaped as the operand ", operand, ", but is ", high);
  return operand.without_layout();
}

Expected<Shape> infer_select(const InferInput& in) {
  const Shape& choice = in.operand(0);
  const Shape& on_true = in.operand(1);
  const Shape& on_false = in.operand(2);
  COLLET_TRY(expect_array(in, 0, "the predicate"));
  COLLET_TRY(expect_array(in, 1, "on_true"));
  COLLET_TRY(expect_array(in, 2, "on_false"));
  if (choice.type() != Type::PRED) return broken(in.op, "", "the predicate must be of type pred, but is ", choice);
  if (!types_agree(on_true.type(), on_false.type()) || !dims_agree(on_true, on_false))
    return broken(in.op, "C2", "on_true is ", on_true, ", but on_false is ", on_false);
  const Shape out = join_dims(on_true, on_false, wider_type(on_true.type(), on_false.type()));
  if (choice.is_scalar()) return out;
  if (!dims_agree(choice, out))
    return broken(in.op, "C1", "the predicate must be a scalar or shaped as ", out, ", but is ", choice);
  return join_dims(out, choice, out.type());
}

Status verify_compare(const Instruction& instr, const Shape& lhs) {
  const auto& a = instr.as<CompareAttrs>();
  if (static_cast<uint32_t>(a.direction) > static_cast<uint32_t>(Direction::LT))
    return broken(instr.op, "", "no such direction: ", static_cast<int64_t>(a.direction));
  if (is_complex(lhs.type()) && a.direction != Direction::EQ && a.direction != Direction::NE)
    return broken(instr.op, "", "complex numbers are equal or not, but have no order: operands are ", lhs);
  // SIGNED, UNSIGNED and FLOAT only repeat the operands' type; if they contradict it, the operands' type decides.
  if (a.type != CompareType::TOTALORDER || is_float(lhs.type())) return ok_status();
  return broken(instr.op, "C3", "comparison type TOTALORDER does not fit operands of ", lhs);
}

}  // namespace

Expected<Shape> infer_elementwise(const InferInput& in) {
  switch (in.op) {
    case Op::CLAMP:
      return infer_clamp(in);
    case Op::SELECT:
      return infer_select(in);
    default:
      return in.operands.size() == 1 ? infer_unary(in) : infer_binary(in);
  }
}

Status verify_elementwise(const Module& module, const Instruction& instr) {
  if (instr.op == Op::COMPARE) return verify_compare(instr, module[instr.operand(0)].shape);
  return ok_status();
}

}  // namespace collet::hlo
