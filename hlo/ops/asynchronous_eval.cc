// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/eval/families.h"

namespace collet::hlo {
namespace {

/// Appends zeros for the elements that `shape` has beyond `known`: contexts and states, whose contents no instruction
/// reads.
Literal with_state(std::vector<Literal> known, const Shape& shape) {
  for (size_t i = known.size(); i < shape.elements().size(); ++i) known.push_back(Literal::zeros(shape.element(i)));
  return Literal::tuple(std::move(known));
}

}  // namespace

// The start op computes the result; update and done ops only pass it on.
Expected<Literal> evaluate_asynchronous(const EvalInput& in) {
  const Shape& shape = in.instr.shape;
  switch (in.instr.op) {
    case Op::ASYNC_START: {
      std::vector<Literal> operands(in.operands.begin(), in.operands.end());
      std::vector<Literal> arguments = operands;
      COLLET_ASSIGN(Literal result, in.context.call(in.instr.called[0], arguments));
      return with_state({Literal::tuple(std::move(operands)), std::move(result)}, shape);
    }
    case Op::ASYNC_UPDATE:
      return in.operand(0);
    case Op::ASYNC_DONE:
      if (in.operand(0).elements().size() < 2) return invalid_argument("async-done needs what async-start gave");
      return in.operand(0).element(1);
    case Op::COPY_START: {
      const Literal& value = in.operand(0);
      return with_state({value, value}, shape);
    }
    default:  // copy-done
      if (in.operand(0).elements().empty()) return invalid_argument("copy-done needs what copy-start gave");
      return in.operand(0).element(0);
  }
}

}  // namespace collet::hlo
