// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {

Expected<bool> dissolve_fusions(Module& module, PassContext&) {
  bool changed = false;
  const size_t most = module.instruction_limit() + kMostInlined;
  const std::vector<bool> asynchronous = asynchronous_computations(module);
  for (CompId computation : post_order(module)) {
    if (asynchronous[index_of(computation)]) continue;  // it may hold nothing but the fusion
    bool any = false;
    for (InstrId id : module[computation].order) any |= module[id].op == Op::FUSION;
    if (!any) continue;
    Rewriter rewriter(module, computation);
    for (InstrId id : rewriter.instructions()) {
      const Instruction& instr = rewriter.enter(id);
      if (instr.op != Op::FUSION) {
        rewriter.keep(id);
        continue;
      }
      if (module.instruction_limit() + module[instr.called[0]].order.size() > most) {
        rewriter.finish();
        return resource_exhausted("dissolving the fusions of computation " + std::string(module[computation].name) +
                                  " makes more than " + std::to_string(kMostInlined) + " instructions");
      }
      rewriter.replace(id, inline_computation(rewriter.builder(), instr.called[0], instr.operands));
    }
    changed |= rewriter.finish();
    COLLET_TRY(rewriter.builder().status());
  }
  if (changed) order_computations(module);
  return changed;
}

}  // namespace collet::hlo
