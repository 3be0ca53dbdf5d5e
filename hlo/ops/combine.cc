// SPDX-License-Identifier: Apache-2.0
#include <collet/program.h>

#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

// Returns the number of the parameter that `id` is, or -1.
int64_t parameter_number(const Module& module, InstrId id) {
  const Instruction& instr = module[id];
  return instr.op == Op::PARAMETER ? instr.as<ParameterAttrs>().number : -1;
}

uint32_t commutative_kind(Op op) {
  switch (op) {
    case Op::ADD:
      return COLLET_COMBINE_ADD;
    case Op::MULTIPLY:
      return COLLET_COMBINE_MULTIPLY;
    case Op::MINIMUM:
      return COLLET_COMBINE_MINIMUM;
    case Op::MAXIMUM:
      return COLLET_COMBINE_MAXIMUM;
    case Op::AND:
      return COLLET_COMBINE_AND;
    case Op::OR:
      return COLLET_COMBINE_OR;
    case Op::XOR:
      return COLLET_COMBINE_XOR;
    default:
      return COLLET_COMBINE_OTHER;
  }
}

uint32_t compare_kind(const Instruction& root, bool swapped) {
  const Direction direction = root.as<CompareAttrs>().direction;
  if (direction == Direction::LT) return swapped ? COLLET_COMBINE_GREATER : COLLET_COMBINE_LESS;
  if (direction == Direction::GT) return swapped ? COLLET_COMBINE_LESS : COLLET_COMBINE_GREATER;
  return COLLET_COMBINE_OTHER;
}

/// Returns how `instr` combines these two scalars, in any order; OTHER if it does not.
uint32_t commutative_kind(const Instruction& instr, InstrId a, InstrId b) {
  if (instr.operands.size() != 2 || a == b) return COLLET_COMBINE_OTHER;
  const InstrId x = instr.operand(0), y = instr.operand(1);
  return (x == a && y == b) || (x == b && y == a) ? commutative_kind(instr.op)
                                                  : static_cast<uint32_t>(COLLET_COMBINE_OTHER);
}

}  // namespace

bool combines_each_alone(const Module& module, CompId computation) {
  const Computation& c = module[computation];
  const Instruction& root = module[c.root];
  if (root.op != Op::TUPLE) return combine_kind(module, computation) != COLLET_COMBINE_OTHER;
  const size_t count = root.operands.size();
  for (size_t i = 0; i < count; ++i) {
    const uint32_t kind = commutative_kind(module[root.operand(i)], c.parameters[i], c.parameters[count + i]);
    if (kind == COLLET_COMBINE_OTHER) return false;
  }
  return true;
}

uint32_t combine_kind(const Module& module, CompId computation) {
  if (index_of(computation) >= module.computation_limit()) return COLLET_COMBINE_OTHER;
  const Computation& c = module[computation];
  if (index_of(c.root) >= module.instruction_limit()) return COLLET_COMBINE_OTHER;
  const Instruction& root = module[c.root];
  const size_t parameters = c.parameters.size();
  if (root.op == Op::PARAMETER) {
    if (parameters != 2 || !root.shape.is_scalar()) return COLLET_COMBINE_OTHER;
    return parameter_number(module, c.root) == 0 ? COLLET_COMBINE_FIRST : COLLET_COMBINE_SECOND;
  }
  if (root.operands.size() != 2 || !root.shape.is_scalar()) return COLLET_COMBINE_OTHER;
  const int64_t a = parameter_number(module, root.operand(0)), b = parameter_number(module, root.operand(1));
  if (a == b || a < 0 || b < 0 || a > 1 || b > 1) return COLLET_COMBINE_OTHER;
  if (root.op == Op::COMPARE) return compare_kind(root, a == 1);
  return parameters == 2 ? commutative_kind(root.op) : static_cast<uint32_t>(COLLET_COMBINE_OTHER);
}

}  // namespace collet::hlo
