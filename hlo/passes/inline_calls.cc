// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

// Calls of calls multiply; a text of a hundred lines can ask for more than any machine has.
constexpr size_t kLimit = size_t{1} << 24;

bool stays(const Module& module, InstrId id, const PassContext& context) {
  return module[id].as<CallAttrs>().is_composite && context.keep_composite && context.keep_composite(module, id);
}

}  // namespace

Expected<bool> inline_calls(Module& module, PassContext& context) {
  bool changed = false;
  std::vector<bool> wrapper(module.computation_limit());  // of an asynchronous op: holds one instruction
  for (CompId computation : module.computations())
    for (InstrId id : module[computation].order)
      if (op_info(module[id].op).family == Family::asynchronous)
        for (CompId called : module[id].called) wrapper[index_of(called)] = true;
  for (CompId computation : post_order(module)) {
    if (wrapper[index_of(computation)]) continue;
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
      if (module[computation].order.size() + module[instr.called[0]].order.size() > kLimit) {
        rewriter.finish();
        return resource_exhausted("inlining the calls of computation " + std::string(module[computation].name) +
                                  " makes more than " + std::to_string(kLimit) + " instructions");
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
