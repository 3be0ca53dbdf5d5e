// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {

Expected<bool> dissolve_fusions(Module& module, PassContext&) {
  bool changed = false;
  for (CompId computation : post_order(module)) {
    bool any = false;
    for (InstrId id : module[computation].order) any |= module[id].op == Op::FUSION;
    if (!any) continue;
    Rewriter rewriter(module, computation);
    for (InstrId id : rewriter.instructions()) {
      const Instruction& instr = rewriter.enter(id);
      if (instr.op == Op::FUSION)
        rewriter.replace(id, inline_computation(rewriter.builder(), instr.called[0], instr.operands));
      else
        rewriter.keep(id);
    }
    changed |= rewriter.finish();
    COLLET_TRY(rewriter.builder().status());
  }
  if (changed) order_computations(module);
  return changed;
}

}  // namespace collet::hlo
