// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"
#include "hlo/ops/markers.h"

namespace collet::hlo {
namespace {

Status check_operand_layouts(const Module& module, const Instruction& instr) {
  const auto& a = instr.as<CustomCallAttrs>();
  if (a.operand_layouts.empty() || a.target == "LayoutConstraint") return ok_status();
  if (a.operand_layouts.size() != instr.operands.size())
    return broken(instr.op, "", "operand_layout_constraints has ", a.operand_layouts.size(), " shapes, but there are ",
                  instr.operands.size(), " operands");
  for (size_t i = 0; i < instr.operands.size(); ++i) {
    const Shape& operand = module[instr.operand(i)].shape;
    if (!a.operand_layouts[i]->compatible(operand))
      return broken(instr.op, "", "operand_layout_constraints says that operand ", i, " is ", *a.operand_layouts[i],
                    ", but it is ", operand);
  }
  return ok_status();
}

Status check_marker(const Instruction& instr) {
  const std::string_view target = instr.as<CustomCallAttrs>().target;
  if (!is_marker_target(target) || instr.operands.size() == 1) return ok_status();
  if (instr.shape.is_tuple() && instr.shape.elements().size() == instr.operands.size()) return ok_status();
  return broken(instr.op, "", "'", target, "' gives its operands back: it has ", instr.operands.size(),
                " of them, but its result is ", instr.shape);
}

}  // namespace

Expected<Shape> infer_custom_call(const InferInput& in) {
  if (!in.declared) return broken(in.op, "", "the result's shape must be stated");
  return in.declared->without_layout();
}

Status verify_custom_call(const Module& module, const Instruction& instr) {
  COLLET_TRY(check_operand_layouts(module, instr));
  COLLET_TRY(check_marker(instr));
  for (CompId computation : instr.called) COLLET_TRY(signature(module, instr.op, computation).status());
  return check_aliasing(module, instr, instr.as<CustomCallAttrs>().aliasing);
}

}  // namespace collet::hlo
