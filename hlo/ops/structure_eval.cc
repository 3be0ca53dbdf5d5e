// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/eval/families.h"

namespace collet::hlo {

Expected<Literal> evaluate_structure(const EvalInput& in) {
  switch (in.instr.op) {
    case Op::TUPLE: {
      std::vector<Literal> elements;
      for (Literal& operand : in.operands) elements.push_back(std::move(operand));
      return Literal::tuple(std::move(elements));
    }
    case Op::GET_TUPLE_ELEMENT: {
      const auto index = static_cast<size_t>(in.instr.as<TupleIndexAttrs>().index);
      if (index >= in.operand(0).elements().size()) return invalid_argument("get-tuple-element beyond the tuple");
      return in.operand(0).element(index);
    }
    case Op::CONSTANT:
      return in.module.literal(in.instr);
    case Op::PARTITION_ID:
      return Literal::scalar_int(Type::U32, in.context.partition());
    case Op::REPLICA_ID:
      return Literal::scalar_int(Type::U32, in.context.replica());
    case Op::AFTER_ALL:
      return Literal::token();
    case Op::PARAMETER:
      return internal_error("a parameter has its value from the caller");
    default:  // add-dependency, domain, opt-barrier
      return in.operand(0);
  }
}

}  // namespace collet::hlo
