// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

bool stays(const Module& module, InstrId id, const PassContext& context) {
  return module[id].as<CallAttrs>().is_composite && context.keep_composite && context.keep_composite(module, id);
}

}  // namespace

Expected<bool> inline_calls(Module& module, PassContext& context) {
  bool changed = false;
  const size_t most = module.instruction_limit() + kMostInlined;
  const std::vector<bool> asynchronous = asynchronous_computations(module);
  for (CompId computation : post_order(module)) {
    if (asynchronous[index_of(computation)]) continue;
    bool calls = false;
    for (InstrId id : module[computation].order) calls |= module[id].op == Op::CALL;
    if (!calls) continue;
    Rewriter rewriter(module, computation);
    for (InstrId id : rewriter.instructions()) {
      Instruction& instr = rewriter.enter(id);
      if (instr.op != Op::CALL || stays(module, id, context)) {
        rewriter.keep(id);
        continue;
      }
      if (module.instruction_limit() + module[instr.called[0]].order.size() > most) {
        rewriter.finish();
        return resource_exhausted("inlining the calls of computation " + std::string(module[computation].name) +
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
