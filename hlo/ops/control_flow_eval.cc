// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ops/eval/families.h"

namespace collet::hlo {
namespace {

Expected<Literal> evaluate_while(const EvalInput& in) {
  const CompId condition = in.instr.called[0], body = in.instr.called[1];
  std::vector<Literal> state{std::move(in.operands[0])};
  for (;;) {
    if (in.context.cancelled()) return Status(Code::Cancelled, "cancelled in a while loop");
    std::vector<Literal> seen = state;
    COLLET_ASSIGN(Literal again, in.context.call(condition, seen));
    seen.clear();
    if (again.element_count() != 1 || again.type() != Type::PRED)
      return invalid_argument("a while condition must return pred[]");
    if (!again.bytes()[0]) return std::move(state[0]);
    COLLET_ASSIGN(state[0], in.context.call(body, state));
  }
}

Expected<Literal> evaluate_conditional(const EvalInput& in) {
  const Literal& selector = in.operand(0);
  const auto branches = static_cast<int64_t>(in.instr.called.size());
  if (selector.element_count() != 1 || branches == 0) return invalid_argument("a conditional needs a scalar selector");
  int64_t branch = selector.type() == Type::PRED ? (selector.bytes()[0] ? 0 : 1) : selector.as_int(0);
  if (branch < 0 || branch >= branches) branch = branches - 1;
  const auto b = static_cast<size_t>(branch);
  return in.context.call(in.instr.called[b], in.operands.subspan(b + 1, 1));
}

}  // namespace

Expected<Literal> evaluate_control_flow(const EvalInput& in) {
  switch (in.instr.op) {
    case Op::WHILE:
      return evaluate_while(in);
    case Op::CONDITIONAL:
      return evaluate_conditional(in);
    default:  // call, fusion
      return in.context.call(in.instr.called[0], in.operands);
  }
}

}  // namespace collet::hlo
