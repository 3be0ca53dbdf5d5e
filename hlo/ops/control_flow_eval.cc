// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "hlo/ops/eval/families.h"

namespace collet::hlo {
namespace {

/// True if no instruction in the computation, or in those that it calls, has a side effect.
bool is_pure(const Module& module, CompId computation, int depth = 0) {
  if (depth > 64) return false;
  for (InstrId id : module[computation].order) {
    const Instruction& instr = module[id];
    if (has_side_effect(instr.op) || instr.op == Op::CUSTOM_CALL) return false;
    for (CompId called : instr.called)
      if (!is_pure(module, called, depth + 1)) return false;
  }
  return true;
}

// A loop without effects whose body returns its state unchanged would never end. XLA may assume that such loops end, so
// the unchanged state is returned as the result. The state is compared after 2^k iterations only, so that the check
// costs little.
Expected<Literal> evaluate_while(const EvalInput& in) {
  const CompId condition = in.instr.called[0], body = in.instr.called[1];
  std::vector<Literal> state{std::move(in.operands[0])};
  for (uint64_t trip = 1;; ++trip) {
    if (in.context.cancelled()) return Status(Code::Cancelled, "cancelled in a while loop");
    std::vector<Literal> seen = state;
    COLLET_ASSIGN(Literal again, in.context.call(condition, seen));
    seen.clear();
    if (again.element_count() != 1 || again.type() != Type::PRED)
      return invalid_argument("a while condition must return pred[]");
    if (!again.bytes()[0]) return std::move(state[0]);
    const bool looks = trip >= 1024 && std::has_single_bit(trip);
    const Literal before = looks ? state[0] : Literal();
    COLLET_ASSIGN(state[0], in.context.call(body, state));
    if (looks && state[0] == before && is_pure(in.module, body) && is_pure(in.module, condition))
      return std::move(state[0]);
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
