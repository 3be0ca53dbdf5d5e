// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/loops.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {

Expected<bool> eliminate_dead(Module& module, PassContext&) {
  const std::vector<bool> effects = computations_with_effects(module);
  const size_t before = module.computations().size();
  bool changed = false;
  const std::vector<uint32_t> callers = count_callers(module);
  std::vector<bool> live(module.instruction_limit());
  for (CompId c : module.computations()) {
    Computation& computation = module[c];
    // Callees come first: a fusion must not keep an operand that its body does not read.
    for (InstrId id : computation.order)
      if (module[id].op == Op::FUSION && module[id].as<FusionAttrs>().aliasing.empty() &&
          callers[index_of(module[id].called[0])] == 1)
        changed |= drop_operands(module, id, false);
    const auto mark = [&](InstrId id) { live[index_of(id)] = true; };
    mark(computation.root);
    for (InstrId id : computation.order) {
      const Instruction& instr = module[id];
      if (instr.op == Op::PARAMETER || has_effect(module, instr, effects)) mark(id);
    }
    for (size_t i = computation.order.size(); i-- > 0;) {
      const Instruction& instr = module[computation.order[i]];
      if (!live[index_of(computation.order[i])]) continue;
      for (InstrId o : instr.operands) mark(o);
      if (instr.extras)
        for (InstrId p : instr.extras->control_predecessors) mark(p);
    }
    changed |= std::erase_if(computation.order, [&](InstrId id) { return !live[index_of(id)]; }) > 0;
  }
  order_computations(module);
  return changed || module.computations().size() != before;
}

}  // namespace collet::hlo
