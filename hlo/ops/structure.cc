// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

Expected<Shape> infer_get_tuple_element(const InferInput& in) {
  const Shape& operand = in.operand(0);
  const int64_t index = in.as<TupleIndexAttrs>().index;
  if (!operand.is_tuple()) return broken(in.op, "", "the operand must be a tuple, but is ", operand);
  if (index < 0 || static_cast<size_t>(index) >= operand.elements().size())
    return broken(in.op, "C1", "index ", index, " lies outside of ", operand);
  return operand.element(static_cast<size_t>(index)).without_layout();
}

Expected<Shape> infer_constant(const InferInput& in) {
  const uint32_t index = in.as<ConstantAttrs>().constant;
  if (index >= in.module.literal_limit()) return broken(in.op, "", "has no value");
  return in.module.literal(index).shape().without_layout();
}

}  // namespace

Expected<Shape> infer_structure(const InferInput& in) {
  switch (in.op) {
    case Op::AFTER_ALL:
      return Shape::token();
    case Op::ADD_DEPENDENCY:
      if (!in.operand(1).is_token()) return broken(in.op, "", "operand 1 must be a token, but is ", in.operand(1));
      return in.operand(0).without_layout();
    case Op::CONSTANT:
      return infer_constant(in);
    case Op::DOMAIN:
    case Op::OPT_BARRIER:
      return in.operand(0).without_layout();
    case Op::GET_TUPLE_ELEMENT:
      return infer_get_tuple_element(in);
    case Op::PARAMETER:
      if (!in.declared) return broken(in.op, "", "the parameter's shape must be stated");
      return in.declared->without_layout();
    case Op::PARTITION_ID:
    case Op::REPLICA_ID:
      return Shape::scalar(Type::U32);
    case Op::TUPLE: {
      std::vector<Shape> elements;
      for (const Shape* operand : in.operands) elements.push_back(operand->without_layout());
      return Shape::tuple(std::move(elements));
    }
    default:
      return unimplemented(concat("no shape inference for ", op_info(in.op).text));
  }
}

Status verify_structure(const Module& module, const Instruction& instr) {
  if (instr.op == Op::AFTER_ALL)
    for (size_t i = 0; i < instr.operands.size(); ++i)
      if (const Shape& operand = module[instr.operand(i)].shape; !operand.is_token())
        return broken(instr.op, "", "operand ", i, " must be a token, but is ", operand);
  return ok_status();
}

}  // namespace collet::hlo
