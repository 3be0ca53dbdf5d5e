// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {

Expected<bool> remove_barriers(Module& module, PassContext& context) {
  bool changed = false;
  for (CompId computation : post_order(module)) {
    Rewriter rewriter(module, computation);
    for (InstrId id : rewriter.instructions()) {
      const Instruction& instr = rewriter.enter(id);
      if (instr.op == Op::OPT_BARRIER)
        rewriter.replace(id, instr.operand(0));
      else if (instr.op == Op::GET_TUPLE_ELEMENT && module[instr.operand(0)].op == Op::TUPLE)
        rewriter.replace(id, module[instr.operand(0)].operand(static_cast<size_t>(instr.as<TupleIndexAttrs>().index)));
      else
        rewriter.keep(id);
    }
    changed |= rewriter.finish();
  }
  // A fusion must not contain unused instructions, so tuples that are no longer read and parameters that only these
  // tuples read are removed.
  if (!changed) return false;
  COLLET_TRY(eliminate_dead(module, context).status());
  COLLET_TRY(drop_parameters(module, context).status());
  return true;
}

}  // namespace collet::hlo
