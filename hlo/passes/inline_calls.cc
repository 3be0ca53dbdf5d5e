// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

// Puts the called computation in place of every instruction with opcode `op`, unless stays(id) is true. Asynchronous
// computations are left alone, because they may hold nothing but their one instruction. `what` is for the message.
template <typename Stays>
Expected<bool> inline_all(Module& module, Op op, std::string_view what, const Stays& stays) {
  bool changed = false;
  const size_t most = module.instruction_limit() + kMostInlined;
  const std::vector<bool> asynchronous = asynchronous_computations(module);
  for (CompId computation : post_order(module)) {
    if (asynchronous[index_of(computation)]) continue;
    bool any = false;
    for (InstrId id : module[computation].order) any |= module[id].op == op;
    if (!any) continue;
    Rewriter rewriter(module, computation);
    for (InstrId id : rewriter.instructions()) {
      const Instruction& instr = rewriter.enter(id);
      if (instr.op != op || stays(id)) {
        rewriter.keep(id);
        continue;
      }
      if (module.instruction_limit() + module[instr.called[0]].order.size() > most) {
        rewriter.finish();
        return resource_exhausted(std::string(what) + " of computation " + std::string(module[computation].name) +
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

}  // namespace

Expected<bool> inline_calls(Module& module, PassContext& context) {
  return inline_all(module, Op::CALL, "inlining the calls", [&](InstrId id) {
    return module[id].as<CallAttrs>().is_composite && context.keep_composite && context.keep_composite(module, id);
  });
}

Expected<bool> dissolve_fusions(Module& module, PassContext&) {
  return inline_all(module, Op::FUSION, "dissolving the fusions", [](InstrId) { return false; });
}

}  // namespace collet::hlo
