// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/evaluate.h"

#include <string>

#include "hlo/ops/eval/families.h"

namespace collet::hlo {

Expected<std::vector<std::vector<Literal>>> EvalContext::exchange(const Instruction& instr,
                                                                  std::span<const int64_t> group,
                                                                  std::span<const Literal> operands) {
  if (group.size() != 1)
    return unimplemented("'" + std::string(op_info(instr.op).text) +
                         "' needs participants that this run does not have");
  return std::vector<std::vector<Literal>>{{operands.begin(), operands.end()}};
}

Status EvalContext::send(int64_t, int64_t, Literal) {
  return unimplemented("send needs channels that this run does not have");
}

Expected<Literal> EvalContext::receive(int64_t) {
  return unimplemented("recv needs channels that this run does not have");
}

Expected<Literal> EvalContext::custom_call(const Instruction& instr, std::span<const Literal>) {
  return unimplemented("no custom call '" + std::string(instr.as<CustomCallAttrs>().target) + "' is registered");
}

Expected<Literal> EvalContext::infeed(const Shape&) {
  return unimplemented("infeed needs a queue that this run does not have");
}

Status EvalContext::outfeed(const Literal&) {
  return unimplemented("outfeed needs a queue that this run does not have");
}

Expected<Literal> evaluate(const EvalInput& input) {
  switch (input.instr.op) {
#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record, REGIONS, TYPES, traits, ulp, since) \
  case Op::NAME:                                                                                       \
    return evaluate_##family(input);
#include <collet/ops.def>
    case Op::INVALID:
      break;
  }
  return internal_error("no such op");
}

}  // namespace collet::hlo
