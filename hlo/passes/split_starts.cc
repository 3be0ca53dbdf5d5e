// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {

size_t position_of_starts(const Module& module, const Instruction& instr) {
  const size_t first = instr.op == Op::DYNAMIC_SLICE ? 1 : instr.op == Op::DYNAMIC_UPDATE_SLICE ? 2 : 0;
  return first != 0 && instr.operands.size() == first + 1 && module[instr.operand(first)].shape.rank() == 1 ? first : 0;
}

Expected<bool> split_starts(Module& module, PassContext&) {
  bool changed = false;
  // Asynchronous computations may hold parameters and one op only.
  const std::vector<bool> asynchronous = asynchronous_computations(module);
  for (CompId computation : post_order(module)) {
    if (asynchronous[index_of(computation)]) continue;
    const auto has_array = [&](InstrId id) { return position_of_starts(module, module[id]) != 0; };
    if (std::ranges::none_of(module[computation].order, has_array)) continue;
    Rewriter rewriter(module, computation);
    Builder& b = rewriter.builder();
    for (InstrId id : rewriter.instructions()) {
      Instruction& instr = rewriter.enter(id);
      if (const size_t first = position_of_starts(module, instr)) {
        const InstrId starts = instr.operand(first);
        const int rank = module[instr.operand(0)].shape.rank();
        std::vector<InstrId> operands(instr.operands.begin(), instr.operands.begin() + first);
        b.set_origin(&instr);
        for (int64_t i = 0; i < rank; ++i) operands.push_back(b.reshape(b.slice_dim(starts, 0, i, i + 1), {}));
        instr.operands = module.arena().list<InstrId>(std::span<const InstrId>(operands));
        changed = true;
      }
      rewriter.keep(id);
    }
    rewriter.finish();
    COLLET_TRY(b.status());
  }
  return changed;
}

}  // namespace collet::hlo
